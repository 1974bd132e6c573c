package words_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"vesti.nixg.ru/classify/words"
)

func scan(text string) (folded []string) {
	var s words.Scanner
	s.Reset(text)
	for s.Next() {
		folded = append(folded, string(s.Folded()))
	}
	return folded
}

func TestScanner(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"empty", "", nil},
		{"no word", " — !? ", nil},
		{"case and ё", "Ёлки И ЁЖИК", []string{"елки", "и", "ежик"}},
		{"boundaries", "«рак», ракета (барак)", []string{"рак", "ракета", "барак"}},
		{"hyphen and apostrophe", "е-мобиль don't", []string{"е", "мобиль", "don", "t"}},
		{"digits", "Go 1.25 rtx5090", []string{"go", "1", "25", "rtx5090"}},
		{"signs", "C++, C# и F#; Disney+ a+b c#x", []string{"c++", "c#", "и", "f#", "disney", "a", "b", "c", "x"}},
		{"й in two characters", "Новыи\u0306 Йод", []string{"новый", "йод"}},
		{"stress", "за\u0301мок", []string{"замок"}},
		{"accents", "Pokémon cafe\u0301", []string{"pokemon", "cafe"}},
		{"invisible characters", "элек\u00adтро\u200bника", []string{"электроника"}},
		{"links", "читать https://habr.com/ru/post/1?x=linux и www.kernel.org/a t.me/chan (http://a.b/c) httpd", []string{"читать", "и", "httpd"}},
		{"broken bytes", "a\xffb", []string{"a", "b"}},
		{"broken Cyrillic", "а\xd0", []string{"а"}},
		{"other alphabets", "Straße Київ 日本", []string{"straße", "київ", "日本"}},
		{"look-alikes in a Russian word", "Cмартфон кaзинo ТЕСТ", []string{"смартфон", "казино", "тест"}},
		{"look-alikes in an English word", "Linuх аpple kernеl", []string{"linux", "apple", "kernel"}},
		{"look-alikes, half and half", "IТ", []string{"it"}},
		{"truly mixed", "VPNщик SIMки", []string{"vpnщик", "simки"}},
		{"Cyrillic С++", "С++ и С#", []string{"c++", "и", "c#"}},
		{"painted letters", "𝐋𝐢𝐧𝐮𝐱 Ｋｅｒｎｅｌ 𝓛𝓛𝓜", []string{"linux", "kernel", "llm"}},
		{"emoji", "🔥Ядро🔥Linux👩‍💻6.12", []string{"ядро", "linux", "6", "12"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := scan(tt.text); !slices.Equal(got, tt.want) {
				t.Errorf("words of %q: %q, want %q", tt.text, got, tt.want)
			}
		})
	}
}

func TestScannerBreaks(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []bool
	}{
		{"ядро Linux", []bool{true, false}},
		{"Ядро. Linux", []bool{true, true}},
		{"node.js", []bool{true, false}},
		{"ядро\nlinux", []bool{true, true}},
		{"(«ядро.») linux", []bool{true, true}},
		{"ядро, linux", []bool{true, false}},
		{"ядро … linux", []bool{true, true}},
	} {
		var s words.Scanner
		s.Reset(tt.text)
		var got []bool
		for s.Next() {
			got = append(got, s.Break())
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("breaks of %q: %v, want %v", tt.text, got, tt.want)
		}
	}
}

func TestScannerScript(t *testing.T) {
	var s words.Scanner
	s.Reset("ядро kernel rtx5090 Київ vpnщик straße 12 cмесь Linuх")
	want := []words.Script{words.Cyrillic, words.Latin, words.Other, words.Other, words.Other, words.Other, words.Other, words.Cyrillic, words.Latin}
	var got []words.Script
	for s.Next() {
		got = append(got, s.Script())
	}
	if !slices.Equal(got, want) {
		t.Errorf("scripts: %v, want %v", got, want)
	}
}

// TestStem: the forms of a word have one stem, words that only look alike have
// not.
func TestStem(t *testing.T) {
	var st words.Stemmer
	stem := func(w string) string {
		script := words.Latin
		if w[0] >= utf8.RuneSelf {
			script = words.Cyrillic
		}
		return st.Stem(w, script)
	}
	for _, forms := range []string{
		"ядро ядра ядер ядрами", "микросхема микросхем микросхемами", "игра игр играх", "уязвимость уязвимости уязвимостями",
		"процессор процессоры процессорах", "дистрибутив дистрибутивы дистр", "игрок игрока игроков", "день дня днем", "ребенок детей",
		"release released releases releasing", "vulnerability vulnerabilities", "sky skies", "policy policies", "die dying", "cry cries",
	} {
		list := strings.Fields(forms)
		for _, f := range list[1:] {
			if stem(f) != stem(list[0]) {
				t.Errorf("%s has the stem %q, %s has %q", f, stem(f), list[0], stem(list[0]))
			}
		}
	}
	for _, pair := range [][2]string{{"university", "universe"}, {"minister", "mini"}, {"после", "посол"}, {"server", "serve"}, {"политик", "полиция"}} {
		if stem(pair[0]) == stem(pair[1]) {
			t.Errorf("%s and %s have one stem, %q", pair[0], pair[1], stem(pair[0]))
		}
	}
}

func TestSentences(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"two", "Вышло ядро. Оно лучше!", []string{"Вышло ядро.", "Оно лучше!"}},
		{"lines", "Заголовок\nТекст без точки\n\n", []string{"Заголовок", "Текст без точки"}},
		{"abbreviations", "В 2024 г. Рим, т.е. столица, купил на 5 млн. Рублей нет.", []string{"В 2024 г. Рим, т.е. столица, купил на 5 млн. Рублей нет."}},
		{"initials", "Его написал А. С. Пушкин. Давно.", []string{"Его написал А. С. Пушкин.", "Давно."}},
		{"English", "Mr. Smith of the U.S. Army left. He went home.", []string{"Mr. Smith of the U.S. Army left.", "He went home."}},
		{"versions", "Linux 6.12 вышел. Go 1.26 тоже.", []string{"Linux 6.12 вышел.", "Go 1.26 тоже."}},
		{"quotes", "«Мы готовы!» — сказал он. Все ушли.", []string{"«Мы готовы!» — сказал он.", "Все ушли."}},
		{"ellipsis", "Ну… ладно. Да?! Нет.", []string{"Ну… ладно.", "Да?!", "Нет."}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := slices.Collect(words.Sentences(tt.text)); !slices.Equal(got, tt.want) {
				t.Errorf("sentences %q, want %q", got, tt.want)
			}
		})
	}
}

func TestLead(t *testing.T) {
	for _, tt := range []struct {
		name, title, text string
		limit             int
		want              string
	}{
		{"whole sentences", "", "Первое. Второе. Третье предложение длиннее.", 20, "Первое. Второе."},
		{"three at most", "", "А вот. Б вот. В вот. Г вот.", 300, "А вот. Б вот. В вот."},
		{"title left out", "Вышло ядро", "Вышло ядро.\nВ нём много нового.", 300, "В нём много нового."},
		{"links and tags left out", "", "#linux #kernel\nhttps://a.example/b\nСуть дела.", 300, "Суть дела."},
		{"cut between words", "", "Очень длинное предложение, которое никак не кончается", 30, "Очень длинное предложение…"},
		{"nothing but a title", "Заголовок", "", 300, "Заголовок"},
		{"nothing", "", "", 300, ""},
		{"one long word", "", strings.Repeat("а", 50), 10, strings.Repeat("а", 9) + "…"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := words.Lead(tt.title, tt.text, tt.limit); got != tt.want {
				t.Errorf("lead %q, want %q", got, tt.want)
			}
		})
	}
}

func FuzzScanner(f *testing.F) {
	for _, s := range []string{"Новыи\u0306 C++ https://x", "\xd0\x90\xff", "ﬁ İstanbul ẞ", "a\u00adb.\nc"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var s words.Scanner
		s.Reset(text)
		last := 0
		for s.Next() {
			start, end := s.Span()
			if start < last || end <= start || end > len(text) || !utf8.Valid(s.Folded()) {
				t.Fatalf("%q: word %q at %d to %d after %d", text, s.Folded(), start, end, last)
			}
			last = end
		}
		for sentence := range words.Sentences(text) {
			if sentence == "" || !strings.Contains(text, sentence) {
				t.Fatalf("%q: sentence %q", text, sentence)
			}
		}
		if lead := words.Lead("", text, 40); utf8.RuneCountInString(lead) > 40 {
			t.Fatalf("%q: lead of %d characters: %q", text, utf8.RuneCountInString(lead), lead)
		}
	})
}
