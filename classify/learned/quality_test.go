package learned_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"vesti.nixg.ru/classify/keyword"
	"vesti.nixg.ru/classify/learned"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/ledgertest/cases"
	"vesti.nixg.ru/ledger/ledgertest/quality"
)

// TestQuality trains on the even lines of each labelled set that have a
// direction and measures on the odd ones.
func TestQuality(t *testing.T) {
	quality.Wanted(t)
	rules, err := keyword.ParseStarter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []string{"telegram_ru", "agnews_en", "bbc_en"} {
		even, odd := labelled(t, set, rules)
		m, err := learned.Fit(even, rules.Hash(), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		quality.Report(t, map[string]float64{"classify." + set + ".macro_f1": macroF1(m, odd)})
	}
}

// labelled reads a set; lines count from 1.
func labelled(t *testing.T, set string, rules *keyword.Rules) (even, odd []learned.Example) {
	t.Helper()
	f, err := os.Open(filepath.Join(cases.Corpora(t, "classify"), set+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, ledger.MaxText)
	for n := 1; lines.Scan(); n++ {
		var r struct{ ID, Text, Direction string }
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatalf("%s, line %d: %v", set, n, err)
		}
		if r.Direction == "" {
			continue
		}
		e := learned.Example{
			ID: ledger.PostID(ledger.HashOf(r.ID)), Item: ledger.Item{Text: r.Text}, Direction: ledger.Direction(r.Direction), ByEditor: true,
		}
		c, _ := rules.Explain(&e.Item)
		e.Reasons = c.Reasons
		if n%2 == 0 {
			even = append(even, e)
		} else {
			odd = append(odd, e)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return even, odd
}

func macroF1(m *learned.Model, examples []learned.Example) float64 {
	right, wrong, missed := map[ledger.Direction]float64{}, map[ledger.Direction]float64{}, map[ledger.Direction]float64{}
	for _, e := range examples {
		if v := m.Judge(&e.Item, e.Reasons); v.Direction == e.Direction {
			right[e.Direction]++
		} else {
			wrong[v.Direction]++
			missed[e.Direction]++
		}
	}
	sum := 0.0
	for _, d := range m.Classes {
		sum += 2 * right[d] / (2*right[d] + wrong[d] + missed[d])
	}
	return sum / float64(len(m.Classes))
}
