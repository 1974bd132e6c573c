package keyword_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"vesti.nixg.ru/classify/keyword"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/ledgertest/cases"
)

// TestPublicCases runs the cases on keywords: which of them match which texts.
func TestPublicCases(t *testing.T) {
	cases.Run(t, cases.Keyword, func(t *testing.T, c cases.Case) error {
		var in struct{ Keywords, Texts []string }
		var want struct {
			Matches  map[string][]int
			Optional map[string][]int `json:"optional_matches"`
		}
		c.Decode(t, c.Input, &in)
		c.Decode(t, c.Expect, &want)
		var errs []error
		for _, k := range in.Keywords {
			rules := oneKeyword(t, k)
			for i, text := range in.Texts {
				got := rules.Judge(&ledger.Item{Text: text}).Matched
				switch {
				case slices.Contains(want.Optional[k], i):
				case got != slices.Contains(want.Matches[k], i):
					errs = append(errs, fmt.Errorf("keyword %q in %q: matched %v", k, text, got))
				}
			}
		}
		return errors.Join(errs...)
	})
}

// oneKeyword is a rule set that has nothing but k.
func oneKeyword(t testing.TB, k string) *keyword.Rules {
	t.Helper()
	r, err := keyword.Parse("test", []byte("version: 1\ndirections:\n  d:\n    - rule: r\n      keywords: ["+quote(k)+"]\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

func parse(t testing.TB, text string) *keyword.Rules {
	t.Helper()
	r, err := keyword.Parse("test.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestKeywords(t *testing.T) {
	for _, tt := range []struct {
		keyword string
		yes, no []string
	}{
		{"уязвимость", []string{"Уязвимости найдены", "с уязвимостью", "УЯЗВИМОСТЬ"}, []string{"уязвлённый"}},
		{`"рак"`, []string{"рак", "РАК!"}, []string{"раком", "раки"}},
		{"рак", []string{"рак", "раком"}, []string{"ракета", "барак", "дурак"}},
		{"ИИ", []string{"ии", "ИИ-агент", "«ИИ»"}, []string{"и", "Ии2"}},
		{"GPU", []string{"gpu", "GPU."}, []string{"gpus2", "egpu"}},
		{"linux kernel", []string{"the Linux kernels", "linux-kernel"}, []string{"linux. Kernel", "linux the kernel", "linux\nkernel", "kernel linux"}},
		{"языковая модель", []string{"большие языковые модели", "языковую модель"}, []string{"модель языка", "языковая новая модель"}},
		{`"open source"`, []string{"Open Source"}, []string{"open sources"}},
		{"c++", []string{"на C++.", "c++"}, []string{"c", "c+"}},
		{"try", []string{"tries", "try", "tried"}, []string{"trial"}},
		{"ёлка", []string{"елки", "ЁЛКА"}, []string{"ель"}},
		{"5090", []string{"rtx 5090"}, []string{"50900"}},
		{"ядро", []string{"ядер", "ядром", "в ядре"}, []string{"ядерный"}},
		{"атом", []string{"атом", "атома", "атомов"}, []string{"атаман", "ата"}},
		{"Лавров", []string{"Лавров", "Лаврова", "Лавровым", "Лаврову"}, []string{"лавка"}},
		{"Киев", []string{"Киев", "Киева", "Киеве"}, []string{"кит"}},
		{"глава МИД Лавров", []string{"главы МИД Лаврова"}, []string{"глава МИД"}},
		{"дети", []string{"ребёнка", "детьми"}, nil},
		{"Pokémon", []string{"pokemon", "POKÉMON"}, nil},
		{"один два три четыре", []string{"один, два, три, четыре"}, []string{"один два три"}},
	} {
		rules := oneKeyword(t, tt.keyword)
		for _, text := range tt.yes {
			if !rules.Judge(&ledger.Item{Text: text}).Matched {
				t.Errorf("keyword %s does not match %q", tt.keyword, text)
			}
		}
		for _, text := range tt.no {
			if rules.Judge(&ledger.Item{Text: text}).Matched {
				t.Errorf("keyword %s matches %q", tt.keyword, text)
			}
		}
	}
}

const small = `version: 1
source_weight: 1
min_score: 0.5
directions:
  linux:
    - rule: kernel
      weight: 3
      keywords: [ядро, linux]
      negative: [атом]
    - rule: only here
      weight: 5
      keywords: [новости]
      sources: [opennet]
    - rule: against
      weight: -2
      keywords: [виндовс]
  games:
    - rule: play
      weight: 1
      keywords: [игра]
elsewhere:
  sport:
    - rule: ball
      weight: 2
      keywords: [мяч, матч]
interest:
  - rule: hot
    weight: 0.2
    keywords: [срочно]
`

func TestJudge(t *testing.T) {
	r := parse(t, small)
	for _, tt := range []struct {
		name    string
		item    ledger.Item
		want    ledger.Direction
		matched bool
	}{
		{"one rule", ledger.Item{Text: "новое ядро"}, "linux", true},
		{"silenced", ledger.Item{Text: "ядро атома", Direction: "games"}, "games", false},
		{"scoped elsewhere", ledger.Item{Text: "новости", Source: "other"}, "", false},
		{"scoped here", ledger.Item{Text: "новости", Source: "opennet"}, "linux", true},
		{"against", ledger.Item{Text: "виндовс и игра"}, "games", true},
		{"the source's direction decides a tie", ledger.Item{Text: "игра", Direction: "games"}, "games", true},
		{"another subject wins", ledger.Item{Text: "игра, матч, мяч", Direction: "linux"}, "linux", false},
		{"nothing matches", ledger.Item{Text: "погода", Direction: "games"}, "games", false},
		{"nothing at all", ledger.Item{}, "", false},
		{"title", ledger.Item{Title: "Linux", Text: "и ничего больше"}, "linux", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := r.Judge(&tt.item)
			if v.Direction != tt.want || v.Matched != tt.matched {
				t.Errorf("direction %q, matched %v; want %q, %v", v.Direction, v.Matched, tt.want, tt.matched)
			}
			c, again := r.Explain(&tt.item)
			if c.Direction != v.Direction || again.Relevance != v.Relevance || again.Confidence != v.Confidence {
				t.Errorf("Explain says %+v, Judge %+v", again, v)
			}
			if len(c.Reasons) == 0 || c.RuleSet != r.Hash() {
				t.Errorf("reasons %v of rule set %q", c.Reasons, c.RuleSet)
			}
			if !v.Matched && (c.Stage != "default" || c.Confidence > 0.3) {
				t.Errorf("undecided, yet stage %q with confidence %v", c.Stage, c.Confidence)
			}
		})
	}
}

func TestReasons(t *testing.T) {
	c, _ := parse(t, small).Explain(&ledger.Item{Title: "Срочно: Ядра!", Text: "Срочно: вышло ядро Linux.", Direction: "linux"})
	var got []string
	for _, reason := range c.Reasons {
		got = append(got, reason.Rule+"="+reason.Matched+" "+reason.Note+" "+strconv.FormatBool(reason.Weight > 0))
	}
	want := []string{"kernel=Ядра linux true", "kernel=Linux linux true", "hot=Срочно interest true", "source= linux true"}
	if !slices.Equal(got, want) {
		t.Errorf("reasons %q, want %q", got, want)
	}
	if c.Summary == "" || c.Stage != "keyword" || c.Relevance < 0.8 {
		t.Errorf("classification %+v", c)
	}
}

func TestInterest(t *testing.T) {
	r := parse(t, small)
	views := int64(500_000)
	plain := r.Judge(&ledger.Item{Text: "ядро"}).Interest
	for name, item := range map[string]ledger.Item{
		"rule":  {Text: "срочно, ядро"},
		"own":   {Text: "ядро", IsOwn: true},
		"views": {Text: "ядро", Measures: ledger.Measures{Views: &views}},
	} {
		if got := r.Judge(&item).Interest; got <= plain || got > 1 {
			t.Errorf("%s: interest %v, without %v", name, got, plain)
		}
	}
}
