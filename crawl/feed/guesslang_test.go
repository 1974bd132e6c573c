package feed

import "testing"

func TestGuessLanguage(t *testing.T) {
	for text, want := range map[string]string{
		"Новый туннель под рекой открыли для движения.":                    "ru",
		"Вышла новая версия ядра Linux 6.14 с поддержкой Rust в драйверах": "ru",
		"Новий міст через річку відкрили для руху в понеділок":             "",
		"The new tunnel under the river was opened for traffic.":           "en",
		"Der neue Tunnel unter dem Fluss wurde am Montag eröffnet.":        "",
		"Short": "",
		"":      "",
	} {
		if got := guessLanguage(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestWithoutHeadline(t *testing.T) {
	for _, c := range []struct{ text, title, want string }{
		{"Tunnel opens!\n\nThe tunnel.", "Tunnel opens", "The tunnel."},
		{"TUNNEL  OPENS\nThe tunnel.", "Tunnel opens", "The tunnel."},
		{"The tunnel opens today.\nMore.", "Tunnel opens", "The tunnel opens today.\nMore."},
		{"Tunnel opens", "Tunnel opens", "Tunnel opens"},
		{"a\nb", "", "a\nb"},
	} {
		if got := withoutHeadline(c.text, c.title); got != c.want {
			t.Errorf("%q, %q: %q, want %q", c.text, c.title, got, c.want)
		}
	}
}
