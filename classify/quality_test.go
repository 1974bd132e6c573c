package classify_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"vesti.nixg.ru/classify"
	"vesti.nixg.ru/classify/keyword"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/ledgertest/cases"
	"vesti.nixg.ru/ledger/ledgertest/quality"
)

// TestQuality measures the starter rules on all lines of each labelled set that
// have a direction. The sets know fewer directions than vesti: what they call
// tech covers Linux, electronics and language models (in agnews_en science, in
// bbc_en games as well), so these count as tech there.
func TestQuality(t *testing.T) {
	quality.Wanted(t)
	for set, labels := range map[string][]ledger.Direction{
		"telegram_ru": {"science", "economy", "ads"},
		"agnews_en":   {"science", "economy", "sport"},
		"bbc_en":      {"economy", "sport", "culture"},
	} {
		directions := append(ledger.DefaultDirections(), labels...)
		as := map[ledger.Direction]ledger.Direction{"linux": "tech", "electronics": "tech", "llm": "tech"}
		switch set {
		case "agnews_en":
			as["science"] = "tech"
		case "bbc_en":
			as["games"] = "tech"
		}
		e := evaluate(t, filepath.Join(cases.Corpora(t, "classify"), set+".jsonl"), directions, as)
		quality.Report(t, map[string]float64{"classify." + set + ".rules_macro_f1": e.MacroF1})
	}
}

func evaluate(t *testing.T, path string, directions []ledger.Direction, as map[ledger.Direction]ledger.Direction) classify.Evaluation {
	t.Helper()
	rules, err := keyword.ParseStarter(slices.Compact(directions))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cascade := classify.NewCascade(classify.CascadeOptions{Keyword: keyword.New(rules)})
	e, err := classify.Evaluate(t.Context(), onlyWithDirection(f), cascade, directions, classify.EvalOptions{As: as})
	if err != nil {
		t.Fatal(err)
	}
	return e
}
