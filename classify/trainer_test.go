package classify_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"vesti.nixg.ru/classify"
	"vesti.nixg.ru/classify/keyword"
	"vesti.nixg.ru/classify/learned"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
	"vesti.nixg.ru/ledger/ledgertest"
)

// told are texts by subject: the keyword of the rules, and the words that keep
// it company.
var told = map[string][]string{
	"linux":    {"драйвер", "модуль", "патч", "сборка", "репозиторий", "пакет", "терминал", "загрузчик"},
	"игра":     {"персонаж", "сюжет", "уровень", "трейлер", "босс", "квест", "аддон", "шутер"},
	"смартфон": {"камера", "экран", "корпус", "батарея", "зарядка", "чехол", "звонок", "динамик"},
}

func teach(t *testing.T, l *badgerlog.Log, n int) {
	t.Helper()
	var items []ledger.Item
	for _, key := range slices.Sorted(maps.Keys(told)) {
		company := told[key]
		for i := range n {
			text := key
			for k := range 6 {
				text += " " + company[(i+k*(1+i/8))%len(company)]
			}
			items = append(items, ledger.Item{
				Source: "s", Key: ledger.NewItemKey("s", fmt.Sprint(key, i)), Lane: ledger.LaneP1, Text: fmt.Sprintf("%s, номер %d", text, i),
			})
		}
	}
	if _, err := l.Append(t.Context(), items); err != nil {
		t.Fatal(err)
	}
}

func trainer(t *testing.T, l *badgerlog.Log) (*classify.Trainer, *learned.Classifier, *classify.Pool) {
	t.Helper()
	k := keyword.New(ruleSet(t, oldRules))
	c := new(learned.Classifier)
	tr := classify.NewTrainer(classify.TrainerOptions{History: l, Store: l.Store(learned.Namespace), Keyword: k, Learned: c})
	p := pool(t, classify.Options{Queue: l, Decider: classify.NewCascade(classify.CascadeOptions{Keyword: k, Learned: c, KeywordSettles: 0.6})})
	return tr, c, p
}

func drain(t *testing.T, p *classify.Pool) {
	t.Helper()
	if _, err := p.Drain(t.Context(), 0, 4, nil); err != nil {
		t.Fatal(err)
	}
}

// TestTrainer: from the posts that the rules are sure of it learns the company
// that their keywords keep, and settles posts that no rule matches.
func TestTrainer(t *testing.T) {
	l := ledgertest.Open(t)
	tr, c, p := trainer(t, l)
	if _, err := tr.Train(t.Context(), false); !errors.Is(err, learned.ErrTooFew) {
		t.Fatalf("an empty ledger: %v", err)
	}
	teach(t, l, 60)
	drain(t, p)
	m, err := tr.Train(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if m.Examples.Rules != 180 || m.Examples.Editor != 0 || c.Model() != m {
		t.Errorf("model %+v", m.Info)
	}
	appended, err := l.Append(t.Context(), []ledger.Item{{Source: "s", Key: "s\x1fnew", Text: "Персонаж, сюжет, босс, квест и трейлер", Direction: "linux", Lane: ledger.LaneP1}})
	if err != nil {
		t.Fatal(err)
	}
	drain(t, p)
	post, err := l.Post(t.Context(), appended[0].Post)
	if err != nil {
		t.Fatal(err)
	}
	if d := post.Decision; d.Stage != classify.WayLearned || d.Direction != "games" || d.ModelDigest != m.Version || d.RuleSet == "" || len(d.Reasons) < 2 {
		t.Errorf("decision %+v", d)
	}

	again, err := tr.Train(t.Context(), false)
	if err != nil || again != m {
		t.Errorf("nothing new: %v, %v", again, err)
	}
	// After a restart the stored model is in force, without another training.
	tr, c, _ = trainer(t, l)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- tr.Run(ctx) }()
	eventually(t, "the stored model", func() bool { return c.Model() != nil })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := c.Model(); got.Version != m.Version || !got.Trained.Equal(m.Trained.Truncate(time.Nanosecond)) {
		t.Errorf("loaded %+v, stored %+v", got.Info, m.Info)
	}
}

// TestTrainerHearsEditors: decisions of editors are examples, until they are
// taken back.
func TestTrainerHearsEditors(t *testing.T) {
	l := ledgertest.Open(t)
	tr, _, p := trainer(t, l)
	teach(t, l, 50)
	drain(t, p)
	review := func(first, last ledger.PostNum, r ledger.PostReviewed) {
		t.Helper()
		for n := first; n <= last; n++ {
			if _, err := l.Record(t.Context(), ledger.NewEvent(ledger.ActorEditor, n, "", r)); err != nil {
				t.Fatal(err)
			}
		}
	}
	review(1, 30, ledger.PostReviewed{Verdict: ledger.VerdictPicked})
	review(31, 60, ledger.PostReviewed{Verdict: ledger.VerdictRejected})
	review(61, 70, ledger.PostReviewed{Direction: "linux"})
	review(71, 80, ledger.PostReviewed{Direction: "linux"})
	review(71, 80, ledger.PostReviewed{}) // taken back
	m, err := tr.Train(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	// 30 picks and 10 corrections have a direction, 30 rejections have none; the
	// other 80 are the rules'.
	if m.Examples.Editor != 40 || m.Examples.Picks != 60 || m.Examples.Rules != 80 {
		t.Errorf("examples %+v", m.Examples)
	}
	if v := m.Judge(&ledger.Item{Text: "персонаж и сюжет"}, nil); !v.HasInterest {
		t.Errorf("no interest after %d picks and rejections: %+v", m.Examples.Picks, v)
	}
}
