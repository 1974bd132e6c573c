package keyword_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vesti.nixg.ru/classify/keyword"
	"vesti.nixg.ru/ledger"
)

func TestParseErrors(t *testing.T) {
	const head = "version: 1\ndirections:\n  linux:\n"
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"empty", "", []string{"is empty"}},
		{"no version", "directions: {}\n", []string{"version is 0"}},
		{"no rules yet", "version: 1\n", []string{"line 1", "directions: {}"}},
		{"nothing below", "version: 1\ndirections:\n", []string{"line 2", "directions: {}"}},
		{"null", "version: 1\ndirections: ~ # soon\n", []string{"line 2", "directions: {}"}},
		{"nothing below a direction", head, []string{"line 3", "linux: []"}},
		{"nothing below keywords", head + "    - rule: a\n      keywords: [x1]\n      sources:\n", []string{"line 6", "sources: []"}},
		{"not YAML", "version: 1\n  a: [\n", []string{"line "}},
		{"unknown key", head + "    - rule: a\n      keyword: [x]\n", []string{"line 5", "keyword"}},
		{"unknown direction", "version: 1\ndirections:\n  cooking:\n    - rule: a\n      keywords: [x1]\n", []string{"line 4", "cooking", "linux, games"}},
		{"no name", head + "    - keywords: [x1]\n", []string{"line 4", "no name"}},
		{"no keywords", head + "    - rule: a\n", []string{"line 4", `rule "a"`, "no keywords"}},
		{"twice", head + "    - rule: a\n      keywords: [x1]\n    - rule: a\n      keywords: [y1]\n", []string{"line 6", `rule "a"`, "line 4"}},
		{"five words", head + "    - rule: a\n      keywords:\n        - x1\n        - a1 b1 c1 d1 e1\n", []string{"line 7", `rule "a"`, "5 words"}},
		{"only signs", head + "    - rule: a\n      keywords: ['!!']\n", []string{"line 5", "no letter"}},
		{"weight of words", head + "    - rule: a\n      weight: much\n      keywords: [x1]\n", []string{"line 5", "much"}},
		{"weight too large", head + "    - rule: a\n      weight: 11\n      keywords: [x1]\n", []string{"line 5", `rule "a"`, "11"}},
		{"weight zero", head + "    - rule: a\n      weight: 0\n      keywords: [x1]\n", []string{"line 5", "not 0"}},
		{"weight NaN", head + "    - rule: a\n      weight: .nan\n      keywords: [x1]\n", []string{"line 5"}},
		{"source", head + "    - rule: a\n      keywords: [x1]\n      sources: ['A B']\n", []string{"line 6", `rule "a"`, "A B"}},
		{"list for a keyword", head + "    - rule: a\n      keywords: [[x1]]\n", []string{"line 5"}},
		{"map for a list", head + "    - rule: a\n      keywords: {x: y}\n", []string{"line 5"}},
		{"min_score", "version: 1\nmin_score: -1\n", []string{"min_score"}},
		{"elsewhere is a direction", "version: 1\nelsewhere:\n  games:\n    - rule: a\n      keywords: [x1]\n", []string{"line 4", "games"}},
		{"several at once", head + "    - rule: a\n    - rule: b\n      weight: 99\n      keywords: ['?']\n", []string{"line 4", "line 6", "line 7"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := keyword.Parse("rules.yaml", []byte(tt.text), []ledger.Direction{"linux", "games"})
			if !errors.Is(err, ledger.ErrInvalid) {
				t.Fatalf("error %v, want one matching ErrInvalid", err)
			}
			for _, part := range append(tt.want, "rules.yaml") {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not have %q", err, part)
				}
			}
		})
	}
}

func TestHash(t *testing.T) {
	a := parse(t, small)
	same := parse(t, "# a comment\n"+strings.ReplaceAll(small, "[ядро, linux]", "\n        - Ядра # inflected\n        - linux\n        - linuxes"))
	if a.Hash() != same.Hash() {
		t.Error("layout, comments and other forms of the same words change the hash")
	}
	for old, changed := range map[string]string{"weight: 3": "weight: 4", "ядро, ": "", "[opennet]": "[lwn]", "[атом]": "[нейтрон]", "min_score: 0.5": "min_score: 1"} {
		if b := parse(t, strings.Replace(small, old, changed, 1)); b.Hash() == a.Hash() {
			t.Errorf("%q instead of %q does not change the hash", changed, old)
		}
	}
}

func TestStarter(t *testing.T) {
	r, err := keyword.Parse("starter.yaml", keyword.Starter(), ledger.DefaultDirections())
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]ledger.Direction{
		"Вышел дистрибутив Debian 13 с ядром Linux 6.12":                                    "linux",
		"GNOME 48 desktop released with Wayland improvements":                               "linux",
		"Apple представила новый iPhone и MacBook":                                          "tech",
		"Hackers exploit a vulnerability in Chrome, Google says":                            "tech",
		"Госдума приняла в третьем чтении законопроект о выборах":                           "politics",
		"The prime minister lost a vote in parliament over sanctions":                       "politics",
		"Вышел трейлер новой игры для PlayStation 5 и Xbox":                                 "games",
		"Elden Ring DLC gets a release date on Steam":                                       "games",
		"TSMC начала выпуск чипов по техпроцессу 2 нм, микросхемы получит AMD":              "electronics",
		"A weather station on ESP32 with an OLED display: schematic and PCB":                "electronics",
		"OpenAI выпустила новую языковую модель GPT-5 для ChatGPT":                          "llm",
		"Fine-tuning Llama 3 with LoRA: prompts, context window and hallucinations of LLMs": "llm",
	} {
		if v := r.Judge(&ledger.Item{Text: text}); v.Direction != want || v.Confidence < 0.5 {
			t.Errorf("%q: %s with confidence %v, want %s", text, v.Direction, v.Confidence, want)
		}
	}
	if v := r.Judge(&ledger.Item{Text: "Спартак обыграл Зенит в матче чемпионата по футболу", Direction: "tech"}); v.Matched || v.Elsewhere != "sport" {
		t.Errorf("a match: %+v", v)
	}
}

// TestStarterDirections: a subject that the starter rules have under elsewhere
// counts where it is a direction, one that is no direction here does not.
func TestStarterDirections(t *testing.T) {
	r, err := keyword.ParseStarter([]ledger.Direction{"sport", "linux", "cooking"})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]ledger.Direction{
		"Спартак обыграл Зенит в матче чемпионата по футболу": "sport",
		"Вышел дистрибутив Debian 13":                         "linux",
		"Вышел трейлер новой игры для Xbox":                   "",
	} {
		if v := r.Judge(&ledger.Item{Text: text}); v.Direction != want {
			t.Errorf("%q: %q, want %q", text, v.Direction, want)
		}
	}
}

func TestReload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := keyword.Open(path, nil)
	if err != nil || len(c.Rules().Directions()) == 0 {
		t.Fatalf("without a file there are no starter rules: %v", err)
	}
	if changed, err := c.Reload(); changed || err != nil {
		t.Errorf("still without a file: changed %v, error %v", changed, err)
	}
	write(small)
	if changed, err := c.Reload(); !changed || err != nil {
		t.Fatalf("the file that came: changed %v, error %v", changed, err)
	}
	item := &ledger.Item{Text: "нейтрон"}
	if d, _ := c.Classify(item); d.Stage != "default" {
		t.Fatalf("judged %+v", d)
	}
	write(strings.Replace(small, "[игра]", "[игра, нейтрон]", 1))
	if changed, err := c.Reload(); !changed || err != nil {
		t.Fatalf("changed %v, error %v", changed, err)
	}
	if d, _ := c.Classify(item); d.Direction != "games" {
		t.Errorf("after the reload: %+v", d)
	}
	if changed, err := c.Reload(); changed || err != nil {
		t.Errorf("the same file again: changed %v, error %v", changed, err)
	}
	write("version: 1\ndirections: [")
	if _, err := c.Reload(); !errors.Is(err, ledger.ErrInvalid) {
		t.Errorf("a broken file: %v", err)
	}
	if d, _ := c.Classify(item); d.Direction != "games" {
		t.Errorf("after a broken file: %+v", d)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Reload(); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("a file that has gone: %v", err)
	}
	if r, err := keyword.Open("", []ledger.Direction{"linux"}); err != nil || !slices.Equal(r.Rules().Directions(), []ledger.Direction{"linux"}) {
		t.Errorf("the starter rules: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(small), "ядро Linux")
	f.Add([]byte("version: 1\ndirections:\n  a:\n    - rule: b\n      keywords: ['\"x\"', \"\xff\"]\n"), "x")
	f.Fuzz(func(t *testing.T, file []byte, text string) {
		r, err := keyword.Parse("fuzz", file, nil)
		if err != nil {
			if !errors.Is(err, ledger.ErrInvalid) {
				t.Fatalf("error %v does not match ErrInvalid", err)
			}
			return
		}
		again, err := keyword.Parse("fuzz", file, nil)
		if err != nil || again.Hash() != r.Hash() {
			t.Fatalf("the same file parsed twice: %v, hashes %s and %s", err, r.Hash(), again.Hash())
		}
		item := &ledger.Item{Text: text, Title: "t"}
		if v := r.Judge(item); !(v.Relevance >= 0 && v.Relevance <= 1 && v.Interest >= 0 && v.Interest <= 1 && v.Confidence >= 0 && v.Confidence <= 1) {
			t.Fatalf("out of range: %+v", v)
		}
		r.Explain(item)
	})
}

func FuzzText(f *testing.F) {
	r, err := keyword.ParseStarter(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add("Linux", "ядро Linux 6.12, C++ и игры на PlayStation")
	f.Add("", "\xd0\xff Pokémon é́ https://a b")
	f.Fuzz(func(t *testing.T, title, text string) {
		item := &ledger.Item{Title: title, Text: text}
		c, v := r.Explain(item)
		if w := r.Judge(item); w.Direction != v.Direction || w.Confidence != v.Confidence {
			t.Fatalf("judged twice: %+v and %+v", v, w)
		}
		for _, reason := range c.Reasons {
			if !strings.Contains(title, reason.Matched) && !strings.Contains(text, reason.Matched) {
				t.Fatalf("matched %q, which is not in the post", reason.Matched)
			}
		}
	})
}
