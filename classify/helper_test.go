package classify_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"vesti.nixg.ru/classify"
	"vesti.nixg.ru/classify/keyword"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
)

// decide is a Decider of one function: the tests' own classifier.
type decide func(ctx context.Context, claim ledger.Claim) (classify.Decision, error)

func (d decide) Decide(ctx context.Context, claim ledger.Claim) (classify.Decision, error) {
	return d(ctx, claim)
}

func settled(direction ledger.Direction) (classify.Decision, error) {
	return classify.Decision{Classification: ledger.Classification{Direction: direction, Relevance: 1, Stage: "keyword"}}, nil
}

func handedOn(ctx context.Context, claim ledger.Claim, llm decide) (classify.Decision, error) {
	if claim.Stage == ledger.StageLLM {
		return llm(ctx, claim)
	}
	d, err := settled("tech")
	d.HandOn, d.Provisional = true, true
	return d, err
}

// fill appends n posts on Linux and returns the numbers they got.
func fill(t testing.TB, l *badgerlog.Log, n int) []ledger.PostNum {
	t.Helper()
	items := make([]ledger.Item, n)
	for i := range items {
		items[i] = ledger.Item{
			Source: "s", Key: ledger.NewItemKey("s", fmt.Sprint(i)), Lane: ledger.LaneP1, Direction: "tech",
			Text: fmt.Sprintf("Вышло ядро Linux номер %d, распространяемое в исходных текстах", i),
		}
	}
	appended, err := l.Append(t.Context(), items)
	if err != nil {
		t.Fatal(err)
	}
	nums := make([]ledger.PostNum, n)
	for i, a := range appended {
		if a.Outcome != ledger.OutcomeNew {
			t.Fatalf("post %d: %v", i, a.Outcome)
		}
		nums[i] = a.Post
	}
	return nums
}

func pool(t testing.TB, o classify.Options) *classify.Pool {
	t.Helper()
	p, err := classify.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func rules(t testing.TB) classify.Decider {
	t.Helper()
	k, err := keyword.Open("", ledger.DefaultDirections())
	if err != nil {
		t.Fatal(err)
	}
	return classify.NewCascade(classify.CascadeOptions{Keyword: k})
}

// count counts the events of a type by post.
func count(t testing.TB, l *badgerlog.Log, typ ledger.Type) map[ledger.PostNum]int {
	t.Helper()
	n := make(map[ledger.PostNum]int)
	for after := ledger.Seq(0); ; {
		events, err := l.Read(t.Context(), after, 500)
		if err != nil {
			t.Fatal(err)
		}
		if len(events) == 0 {
			return n
		}
		for _, e := range events {
			if e.Type == typ {
				n[e.Post]++
			}
			after = e.Seq
		}
	}
}

func state(t testing.TB, l *badgerlog.Log, post ledger.PostNum) ledger.PostState {
	t.Helper()
	p, err := l.Post(t.Context(), post)
	if err != nil {
		t.Fatal(err)
	}
	return p.State
}

// eventually waits for what other goroutines are about to do.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !f() {
		select {
		case <-deadline:
			t.Fatalf("timed out waiting for: %s", what)
		case <-tick.C:
		}
	}
}
