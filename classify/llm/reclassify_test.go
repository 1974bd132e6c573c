package llm_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"vesti.nixg.ru/classify"
	"vesti.nixg.ru/classify/keyword"
	"vesti.nixg.ru/classify/llm"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
	"vesti.nixg.ru/ledger/ledgertest"
)

// judgedByRules is a ledger of n posts that rules have judged, of which every
// second one gives them nothing to go by.
func judgedByRules(t *testing.T, n int) (*badgerlog.Log, *keyword.Rules) {
	t.Helper()
	rules, err := keyword.Parse("test", []byte("version: 1\ndirections:\n  linux:\n    - {rule: linux, weight: 9, keywords: [linux]}\n"), ledger.DefaultDirections())
	if err != nil {
		t.Fatal(err)
	}
	l := ledgertest.Open(t)
	for i := range n {
		text := fmt.Sprintf("Вышло ядро Linux номер %d, в нём много нового и старого", i)
		if i%2 == 1 {
			text = fmt.Sprintf("Сегодня вышло нечто под номером %d, в нём много нового", i)
		}
		appendOne(t, l, ledger.Item{Source: "s", Key: ledger.NewItemKey("s", fmt.Sprint(i)), Text: text, Direction: "tech"})
	}
	p, err := classify.New(classify.Options{Queue: l, Decider: classify.NewCascade(classify.CascadeOptions{Keyword: keyword.New(rules)})})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := p.Drain(t.Context(), 0, 4, nil); err != nil || s.Classified != n {
		t.Fatalf("%+v, %v", s, err)
	}
	return l, rules
}

// TestReclassifyByModel: a dry run asks nothing and says for how long the model
// would be busy; the run asks about what rules are not sure of; a second one
// asks nothing; another prompt asks again.
func TestReclassifyByModel(t *testing.T) {
	l, rules := judgedByRules(t, 10)
	d := newDouble(t, said(strings.Replace(valid, `"linux"`, `"games"`, 1)))
	model := classifier(t, d)
	run := func(model *llm.Classifier, dry bool) classify.Diff {
		t.Helper()
		diff, err := classify.Reclassify(t.Context(), l, l, classify.ReclassifyOptions{Keyword: rules, LLM: model, DryRun: dry, LLMWorkers: 2})
		if err != nil {
			t.Fatal(err)
		}
		return diff
	}
	head := l.Head()
	dry := run(model, true)
	if dry.ToAsk != 5 || dry.Asked != 0 || dry.Changed != 0 || dry.EstimatedSeconds <= 0 || len(d.asked()) != 0 || d.loads != 0 || l.Head() != head {
		t.Errorf("dry run: %+v; asked %d times", dry, len(d.asked()))
	}
	first := run(model, false)
	if first.Asked != 5 || first.Moved != 5 || first.Written != 5 || len(d.asked()) != 5 {
		t.Errorf("first: %+v", first)
	}
	p, err := l.Post(t.Context(), 2)
	if err != nil || p.Decision.Stage != "llm" || p.Decision.ModelDigest != "0123abcd" || p.Decision.RawReply == "" || p.State.Direction != "games" {
		t.Errorf("decision %+v, %v", p.Decision, err)
	}
	head = l.Head()
	second := run(model, false)
	if second.Asked != 0 || second.Written != 0 || second.LLMKept != 5 || l.Head() != head {
		t.Errorf("second: %+v", second)
	}
	if byRules := run(nil, false); byRules.Changed != 0 || byRules.LLMKept != 5 {
		t.Errorf("without a model: %+v", byRules)
	}
	other := classifier(t, d, func(o *llm.Options) { o.Descriptions = map[ledger.Direction]string{"linux": "penguins"} })
	if again := run(other, false); again.Asked != 5 || again.Changed != 0 {
		t.Errorf("another prompt: %+v", again)
	}
	if again := run(other, false); again.Asked != 0 {
		t.Errorf("another prompt, again: %+v", again)
	}
}

// TestReclassifyModelFails: an answer that does not hold leaves its post as it
// is; a server that goes away ends the run with what was decided by then, and
// the next run does the rest.
func TestReclassifyModelFails(t *testing.T) {
	l, rules := judgedByRules(t, 8)
	good := said(strings.Replace(valid, `"linux"`, `"games"`, 1))
	away := step{status: 503, body: `{"error":"server busy"}`}
	d := newDouble(t, said("What?"), said("What?"), good, away)
	o := classify.ReclassifyOptions{Keyword: rules, LLM: classifier(t, d)}
	diff, err := classify.Reclassify(t.Context(), l, l, o)
	if cause(err) != ledger.CauseUnavailable || diff.AskFailed != 1 || diff.Asked != 1 || diff.Written != 1 {
		t.Errorf("%+v, %v", diff, err)
	}
	d.mu.Lock()
	d.script = []step{good}
	d.requests = nil
	d.mu.Unlock()
	diff, err = classify.Reclassify(t.Context(), l, l, o)
	if err != nil || diff.Asked != 3 || diff.Written != 3 || diff.LLMKept != 1 {
		t.Errorf("the rest: %+v, %v", diff, err)
	}
	gone, err := llm.New(llm.Options{URL: "http://127.0.0.1:1", Model: "tiny2", Directions: ledger.DefaultDirections(), LoadTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	o.LLM = gone
	head := l.Head()
	if _, err := classify.Reclassify(t.Context(), l, l, o); cause(err) != ledger.CauseUnavailable || !strings.Contains(err.Error(), "not ready") || l.Head() != head {
		t.Errorf("a server that is away from the start: %v", err)
	}
}
