package learned_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"vesti.nixg.ru/classify/learned"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/ledgertest"
)

var subjects = map[ledger.Direction][]string{
	"linux": strings.Fields("ядро дистрибутив пакет консоль модуль патч загрузчик драйвер репозиторий терминал сборка демон"),
	"games": strings.Fields("геймер консоль уровень персонаж сюжет трейлер студия шутер квест босс аддон приставка"),
	"":      strings.Fields("погода рецепт матч турнир концерт дождь отпуск суп премьера билет поезд пляж"),
}

// examples are made-up posts, n of each subject, whose words tell it.
func examples(n int, byEditor bool) []learned.Example {
	var all []learned.Example
	for d, list := range subjects {
		for i := range n {
			var text strings.Builder
			for k := range 14 {
				fmt.Fprintf(&text, "%s и ", list[(i*7+k*(i%5+1))%len(list)])
			}
			e := learned.Example{
				ID: ledger.PostID(ledger.HashOf(string(d), fmt.Sprint(i))), Item: ledger.Item{Text: text.String()}, Direction: d, ByEditor: byEditor,
			}
			if byEditor { // the editor likes games
				e.Verdict = ledger.VerdictRejected
				if d == "games" {
					e.Verdict = ledger.VerdictPicked
				}
			}
			all = append(all, e)
		}
	}
	return all
}

func TestTrain(t *testing.T) {
	m, err := learned.Train(examples(80, false), "rules1", time.Now(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if m.HeldOut < 0.9 || m.Rules != "rules1" || m.Examples.Rules != 240 || m.Examples.HeldOut < 20 || len(m.Classes) != 3 {
		t.Errorf("model %+v", m.Info)
	}
	for text, want := range map[string]ledger.Direction{
		"новый драйвер и патч, модуль собран": "linux",
		"персонаж, сюжет и трейлер":           "games",
		"дождь, суп и поезд":                  learned.None,
	} {
		item := &ledger.Item{Text: text}
		v, reasons := m.Explain(item, nil)
		if v.Direction != want || v.Confidence < 0.6 || v.HasInterest {
			t.Errorf("%q: %+v, want %q", text, v, want)
		}
		if len(reasons) == 0 || reasons[0].Matched == "" || reasons[0].Weight <= 0 {
			t.Errorf("%q: reasons %+v", text, reasons)
		}
		if again := m.Judge(item, nil); again != v {
			t.Errorf("%q: judged %+v, then %+v", text, v, again)
		}
	}
	same, err := learned.Train(examples(80, false), "rules1", time.Now(), m)
	if err != nil || same.Version != m.Version {
		t.Errorf("equal examples: version %v, then %v (%v)", m.Version, same.Version, err)
	}
	other, err := learned.Train(examples(81, false), "rules1", time.Now(), m)
	if err != nil || other.Version == m.Version {
		t.Errorf("other examples have the same version (%v)", err)
	}
}

func TestInterestFromPicks(t *testing.T) {
	m, err := learned.Train(examples(60, true), "", time.Now(), nil)
	if err != nil {
		t.Fatal(err)
	}
	games, linux := m.Judge(&ledger.Item{Text: "персонаж и трейлер"}, nil), m.Judge(&ledger.Item{Text: "патч и драйвер"}, nil)
	if !games.HasInterest || games.Interest < 0.6 || linux.Interest > 0.4 {
		t.Errorf("games %+v, linux %+v", games, linux)
	}
}

// TestGuard: a model that does worse on what was kept out of its training is not
// taken, nor one from too little.
func TestGuard(t *testing.T) {
	good, err := learned.Train(examples(80, true), "", time.Now(), nil)
	if err != nil {
		t.Fatal(err)
	}
	bad := examples(80, true)
	for i := range bad { // what it trains on is shuffled, what it is held against is not
		if id := bad[i].ID; id[len(id)-1]%5 != 0 {
			bad[i].Direction = []ledger.Direction{"linux", "games", ""}[i%3]
		}
	}
	if _, err := learned.Train(bad, "", time.Now(), good); !errors.Is(err, learned.ErrWorse) {
		t.Errorf("a worse model: %v", err)
	}
	if _, err := learned.Train(bad, "", time.Now(), nil); !errors.Is(err, learned.ErrWorse) {
		t.Errorf("a useless model: %v", err)
	}
	for _, few := range [][]learned.Example{nil, examples(5, true), examples(80, true)[:80]} {
		if _, err := learned.Train(few, "", time.Now(), nil); !errors.Is(err, learned.ErrTooFew) {
			t.Errorf("%d examples: %v", len(few), err)
		}
	}
}

// TestRulesAreNotLearnedByHeart: what the rules matched in their own examples
// tells the model nothing.
func TestRulesAreNotLearnedByHeart(t *testing.T) {
	list := examples(80, false)
	for i := range list {
		word := map[ledger.Direction]string{"linux": "линукс", "games": "видеоигра", "": "футбол"}[list[i].Direction]
		list[i].Item.Text += " " + word
		list[i].Reasons = []ledger.Reason{{Stage: "keyword", Rule: "r", Matched: word, Weight: 3, Note: string(list[i].Direction)}}
	}
	m, err := learned.Train(list, "", time.Now(), nil)
	if err != nil {
		t.Fatal(err)
	}
	known, unknown := m.Judge(&ledger.Item{Text: "видеоигра"}, nil), m.Judge(&ledger.Item{Text: "бормотание"}, nil)
	if known != unknown {
		t.Errorf("the keyword alone gives %+v, nothing gives %+v", known, unknown)
	}
}

func TestStore(t *testing.T) {
	store := ledgertest.Open(t).Store(learned.Namespace)
	var c learned.Classifier
	if err := c.Load(t.Context(), store); err != nil || c.Model() != nil {
		t.Fatalf("an empty store: %v", err)
	}
	m, err := learned.Train(examples(80, true), "r", time.Now(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second replaces the first
		if err := learned.Save(t.Context(), store, m); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Load(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	got := c.Model()
	if !reflect.DeepEqual(got.Info, m.Info) {
		t.Errorf("loaded %+v, stored %+v", got.Info, m.Info)
	}
	for _, e := range examples(20, true) {
		if a, b := m.Judge(&e.Item, nil), got.Judge(&e.Item, nil); a != b {
			t.Fatalf("stored it says %+v, loaded %+v", a, b)
		}
	}
	err = store.Update(t.Context(), func(tx ledger.Tx) error { return tx.Set([]byte("model/\x00\x00\x00\x00"), []byte("garbage")) })
	if err != nil {
		t.Fatal(err)
	}
	if err := new(learned.Classifier).Load(t.Context(), store); !errors.Is(err, ledger.ErrInvalid) {
		t.Errorf("a damaged model: %v", err)
	}
}

func FuzzUnmarshal(f *testing.F) {
	m, err := learned.Train(examples(20, false), "r", time.Now(), nil)
	if err != nil {
		f.Fatal(err)
	}
	b, err := m.MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b[:min(len(b), 4096)])
	f.Add([]byte("garbage"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := new(learned.Model)
		if err := m.UnmarshalBinary(b); err == nil {
			m.Judge(&ledger.Item{Text: "ядро"}, nil)
		} else if !errors.Is(err, ledger.ErrInvalid) {
			t.Fatalf("error %v", err)
		}
	})
}
