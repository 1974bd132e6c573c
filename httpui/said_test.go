package httpui

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"vesti.nixg.ru/httpui/i18n"
)

func loadSayings(t *testing.T) (sayings, *i18n.Language) {
	t.Helper()
	words, err := i18n.Load()
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSayings(words)
	if err != nil {
		t.Fatal(err)
	}
	return s, words.Match("ru", "")
}

func TestSayings(t *testing.T) {
	said, russian := loadSayings(t)
	for message, want := range map[string]string{
		"":                             "",
		"no JSON object in the answer": "в ответе нет объекта JSON",
		"EOF":                          "EOF",
		"who knows: no answer in time": "who knows: ответ не пришёл вовремя",
		"a summary of 9000 characters, at most 300 were asked for":                                                                      "изложение в 9000 знаков, просили не больше 300",
		`direction "sport" is not among linux, tech`:                                                                                    `направления "sport" нет среди linux, tech`,
		"ask the language model: the server cannot be reached: dial tcp 127.0.0.1:1: connect: connection refused":                       "вопрос языковой модели: сервер недоступен: dial tcp 127.0.0.1:1: connect: connection refused",
		"apply events 7 to 12: write to the index: not enough free disk space: 5 MiB free in /srv/a: b, ledger.free_space wants 64 MiB": "применение событий с 7 по 12: запись в поисковый указатель: не хватает места на диске: в /srv/a: b свободно 5 МиБ, а ledger.free_space требует 64 МиБ",
		`model "x" not found: try it: install it there (ollama pull), or change the setting`:                                            `model "x" not found: try it: установите её там (ollama pull) или смените настройку`,
		"the server refuses the key: 401 no: really":                                                                                    "сервер не принимает ключ: 401 no: really",
		"an empty answer (stop)\nand more":                                                                                              "an empty answer (stop)\nand more",
	} {
		if got, err := said.in(russian, message); err != nil || got != want {
			t.Errorf("%q: %q, %v\nwant %q", message, got, err, want)
		}
	}
}

// TestSayingsKeepUp: whatever the packages below call a post that the model
// could not judge is known in every language, so that a text changed there is
// changed here.
func TestSayingsKeepUp(t *testing.T) {
	said, russian := loadSayings(t)
	verbs := regexp.MustCompile(`%[a-z]`)
	seen := 0
	check := func(lit ast.Expr) {
		l, ok := lit.(*ast.BasicLit)
		if !ok || l.Kind != token.STRING {
			return
		}
		format, err := strconv.Unquote(l.Value)
		if err != nil {
			t.Fatal(err)
		}
		seen++
		message := strings.TrimSuffix(verbs.ReplaceAllString(format, "7"), ": ")
		if got, err := said.in(russian, message); err != nil || got == message {
			t.Errorf("%q has no words in Russian (said.… in the catalogue): %v", format, err)
		}
	}
	InspectSources(t, "../classify/llm/*.go", func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			switch name, _ := n.Fun.(*ast.Ident); {
			case name == nil:
			case name.Name == "fail" && len(n.Args) > 1:
				check(n.Args[1])
			case name.Name == "trouble" && len(n.Args) > 0:
				check(n.Args[0])
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && key.Name == "text" {
				if sum, ok := n.Value.(*ast.BinaryExpr); ok {
					check(sum.X)
				}
				check(n.Value)
			}
		}
		return true
	})
	if seen < 30 {
		t.Errorf("only %d texts found in classify/llm", seen)
	}
}

// TestSayingsHaveTheSamePlaces: a place that a translation lacks loses what was
// said.
func TestSayingsHaveTheSamePlaces(t *testing.T) {
	said, russian := loadSayings(t)
	for _, one := range said {
		text, err := russian.Text(one.key)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, name := range one.places {
			if !strings.Contains(text, "{"+name+"}") {
				t.Errorf("%s lacks {%s}", one.key, name)
			}
		}
	}
}
