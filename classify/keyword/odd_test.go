package keyword_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"vesti.nixg.ru/classify/keyword"
	"vesti.nixg.ru/ledger"
)

// TestOddFiles: files as editors and other systems write them are read alike;
// what is no rules file is refused with its line, at once, whatever it would
// unfold to.
func TestOddFiles(t *testing.T) {
	for name, text := range map[string]string{
		"line ends of Windows":  strings.ReplaceAll(small, "\n", "\r\n"),
		"a byte order mark":     "\ufeff" + small,
		"both":                  "\ufeff" + strings.ReplaceAll(small, "\n", "\r\n"),
		"document marks":        "---\n" + small + "...\n",
		"no newline at the end": strings.TrimRight(small, "\n"),
		"blank at line ends":    strings.ReplaceAll(small, "\n", "  \n"),
	} {
		t.Run(name, func(t *testing.T) {
			r, err := keyword.Parse("rules.yaml", []byte(text), nil)
			if err != nil {
				t.Fatal(err)
			}
			if r.Hash() != parse(t, small).Hash() {
				t.Error("the rules differ")
			}
		})
	}
	bomb := "version: 1\na: &a [x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'l'; c++ {
		bomb += fmt.Sprintf("%c: &%[1]c [%s]\n", c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", c-1), 9), ", "))
	}
	for name, tt := range map[string]struct{ text, says string }{
		"aliases that unfold":           {bomb + "directions:\n  linux: *k\n", "line "},
		"aliases that unfold, as words": {"version: 1\ndirections:\n  linux:\n    - rule: r\n      keywords: &a [x, y]\n      negative: [*a, *a]\n", "line 5"},
		"brackets without end":          {"version: 1\ndirections: " + strings.Repeat("[", 200_000), ""},
		"braces without end":            {"version: 1\ndirections: " + strings.Repeat("{a: ", 50_000), ""},
		"UTF-16":                        {"\xff\xfev\x00e\x00r\x00s\x00i\x00o\x00n\x00:\x00 \x001\x00", "UTF-8"},
		"binary":                        {"\x00\x01\x02\x03", ""},
		"windows-1251":                  {"version: 1\ndirections:\n  linux:\n    - rule: r\n      keywords: [\xff\xe4\xf0\xee]\n", "UTF-8"},
		"a list":                        {"- version: 1\n", "line 1"},
		"a word":                        {"rules\n", "line 1"},
		"two documents":                 {small + "---\nversion: 1\n", "document"},
		"a key twice":                   {"version: 1\nversion: 1\n", "line 2"},
		"a direction twice":             {"version: 1\ndirections:\n  linux: []\n  linux: []\n", "line 4"},
		"a pattern":                     {"version: 1\ndirections:\n  linux:\n    - rule: r\n      keywords: ['консол*']\n", "line 5"},
		"a regular expression":          {"version: 1\ndirections:\n  linux:\n    - rule: r\n      keywords: ['^(linux|bsd)$']\n", "match in all their forms"},
		"null for keywords":             {"version: 1\ndirections:\n  linux:\n    - rule: r\n      keywords: [null]\n", ""},
		"a number for directions":       {"version: 1\ndirections: 7\n", "line 2"},
		"a date for a version":          {"version: 2026-01-02\n", "line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			_, err := keyword.Parse("rules.yaml", []byte(tt.text), nil)
			if err == nil || !strings.Contains(err.Error(), tt.says) || !errors.Is(err, ledger.ErrInvalid) {
				t.Errorf("error %.300v, want one that says %q", err, tt.says)
			}
			if err != nil && len(err.Error()) > 4000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("refused after %v", took)
			}
		})
	}
}

// TestAnchors: what YAML has to spare repetition works.
func TestAnchors(t *testing.T) {
	r, err := keyword.Parse("rules.yaml", []byte(`version: 1
directions:
  linux:
    - rule: distributions
      keywords: &distributions [debian, fedora]
  games:
    - rule: distributions for games
      weight: 3
      keywords: *distributions
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if v := r.Judge(&ledger.Item{Text: "Debian 13"}); v.Direction != "games" {
		t.Errorf("%+v", v)
	}
}

// TestManyKeywords: a file of 50,000 keywords, all of one rule, compiles soon,
// finds what it should and judges no slower than a small one does.
func TestManyKeywords(t *testing.T) {
	var b strings.Builder
	b.WriteString("version: 1\ndirections:\n  linux:\n    - rule: many\n      keywords:\n")
	for i := range 50_000 {
		fmt.Fprintf(&b, "        - новый word%d\n", i) // all begin with one word
	}
	began := time.Now()
	r, err := keyword.Parse("rules.yaml", []byte(b.String()), nil)
	if err != nil {
		t.Fatal(err)
	}
	compiled := time.Since(began)
	item := &ledger.Item{Text: strings.Repeat("Новый день и новое ядро. ", 400) + "Новый word49999"}
	began = time.Now()
	const judgements = 20
	for range judgements {
		if v := r.Judge(item); v.Direction != "linux" {
			t.Fatalf("%+v", v)
		}
	}
	judged := time.Since(began) / judgements
	if compiled > 30*time.Second || judged > 50*time.Millisecond {
		t.Errorf("compiled in %v, judged in %v", compiled, judged)
	}
	t.Logf("compiled in %v, judged a text of %d bytes in %v", compiled, len(item.Text), judged)
}

// TestOddTexts: what people and machines put between and into the letters of
// words does not hide them.
func TestOddTexts(t *testing.T) {
	r, err := keyword.Parse("rules.yaml", []byte(`version: 1
directions:
  linux:
    - rule: words
      keywords: [ёлка, ядро linux, "ё-мобиль", казино, "'OpenAI'", "rock'n'roll", C++, онлайн-игра]
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"Елка": true, "ЁЛКИ": true, "е\u0308лкой": true, "ёл\u00adка": true, "ёл\u200bка": true, "ёл\u2060ка": true, "\ufeffёлка": true,
		"🎄ёлка🎄": true, "«ёлка»": true, "#ёлка": true, "ёлка\u0301": true, "посёлка": false, "ёлкаа": false,
		"ядро\u00a0Linux": true, "ядро  \n": false, "ядро\nLinux": false, "ядро. Linux": false, "ядро (Linux)": true, "ядра Linux'а": true, "ядро-Linux": true,
		"кaзинo": true, "КAЗИHО": true, "ядро Linuх": true, "ядро 𝗟𝗶𝗻𝘂𝘅": true, "ядро Ｌｉｎｕｘ": true,
		"Е-мобиль": true, "ё мобиль": true, "емобиль": false,
		"openai": true, "OpenAI’s": true, "Open AI": false,
		"Rock’n’Roll": true, "rock 'n' roll": true, "rock and roll": false,
		"С++20": false, "на С++ и": true, "C++": true, "c": false, "онлайн-игры": true, "онлайн игр": true, "онлайн‑игра": true,
	} {
		if v := r.Judge(&ledger.Item{Text: text}); v.Matched != want {
			t.Errorf("%q: matched %v, want %v", text, v.Matched, want)
		}
	}
}
