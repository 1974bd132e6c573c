package ledger_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"vesti.nixg.ru/ledger"
)

func TestNormalise(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"empty", "", ""},
		{"only space", " \t\u00a0\u2003\n", ""},
		{"runs", "  a \n\n b\u00a0\u2009c ", "a b c"},
		{"kept as it is", "Новый ёж уехал", "Новый ёж уехал"},
		{"NFD", "Новыи\u0306 е\u0308ж", "Новый ёж"},
		{"zero width inside", "уе\u200bхал\ufeff", "уехал"},
		{"zero width between letter and accent", "и\u200d\u0306", "й"},
		{"soft hyphen", "элек\u00adтро", "электро"},
		{"bidi", "a\u202eb\u2066c", "abc"},
		{"case and compatibility stay", "ПОСТ ﬁ", "ПОСТ ﬁ"},
		{"broken bytes", "a\xff\xfeb", "a\ufffdb"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := ledger.Normalise(tt.in); got != tt.want {
				t.Errorf("Normalise(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func TestIdentifyText(t *testing.T) {
	long := "Вышла новая версия ядра Linux"
	if ledger.IdentifyText(long, "a") != ledger.IdentifyText(" Вышла  новая\nверсия ядра Linux ", "b") {
		t.Error("the same text at two items has two IDs")
	}
	if ledger.IdentifyText("Photo", "a") == ledger.IdentifyText("Photo", "b") {
		t.Error("a bare caption at two items has one ID")
	}
	if ledger.IdentifyText("Photo", "a") != ledger.IdentifyText(" Photo", "a") {
		t.Error("a bare caption at one item has two IDs")
	}
	if ledger.IdentifyText("", "a") == ledger.IdentifyText("", "b") {
		t.Error("two pictures without text have one ID")
	}
}

func TestChangedWords(t *testing.T) {
	for _, tt := range []struct {
		before, after string
		want          float64
	}{
		{"", "", 0},
		{"a b c d", "d c b a", 0},
		{"a b c d", "a, b. c: d!", 0},
		{"a b", "c d", 1},
		{"a a a a", "a a b b", 0.5},
		{"", "a", 1},
	} {
		if got := ledger.ChangedWords(tt.before, tt.after); got != tt.want {
			t.Errorf("ChangedWords(%q, %q) = %v, want %v", tt.before, tt.after, got, tt.want)
		}
	}
}

func FuzzNormalise(f *testing.F) {
	f.Add("Новыи\u0306 е\u0308ж\u200b уехал \xff")
	f.Add("\u1100\u1161\u11a8 \u0344 \u2126")
	f.Add("  два \n\n слова \u00a0\u2026 ")
	f.Fuzz(func(t *testing.T, s string) {
		n := ledger.Normalise(s)
		// A character that is not plain sends the same text the long way round.
		if long := strings.TrimSuffix(ledger.Normalise(s+" \u4e00"), "\u4e00"); strings.TrimSuffix(long, " ") != n {
			t.Fatalf("Normalise(%q) = %q, the long way %q", s, n, long)
		}
		if again := ledger.Normalise(n); again != n {
			t.Fatalf("not idempotent: %q -> %q -> %q", s, n, again)
		}
		if !utf8.ValidString(n) || n != strings.TrimSpace(n) {
			t.Fatalf("Normalise(%q) = %q", s, n)
		}
	})
}

func TestHeadline(t *testing.T) {
	for _, tt := range []struct {
		item ledger.Item
		want string
	}{
		{ledger.Item{Title: " A  title\n", Text: "A text."}, "A title"},
		{ledger.Item{Title: " ", Text: "\nFirst line.\nSecond line."}, "First line."},
		{ledger.Item{Text: strings.Repeat("слово ", 40)}, strings.TrimSpace(strings.Repeat("слово ", 14)) + "…"},
		{ledger.Item{Text: strings.Repeat("я", 200)}, strings.Repeat("я", 80) + "…"},
		{ledger.Item{Media: []string{"photo"}}, ""},
	} {
		if got := tt.item.Headline(); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.item, got, tt.want)
		}
	}
}
