package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"vesti.nixg.ru/ledger"
)

func testRecord(t *testing.T, e Engine) {
	got := appendOne(t, e, Item("a", "1"))
	head := e.Head()
	review := ledger.NewEvent(ledger.ActorEditor, got.Post, "", ledger.PostReviewed{Direction: "llm"})
	missing := ledger.NewEvent(ledger.ActorEditor, 999, "", ledger.PostReviewed{Direction: "llm"})
	if _, err := e.Record(t.Context(), review, missing); !errors.Is(err, ledger.ErrNotFound) {
		t.Fatalf("got %v", err)
	}
	if e.Head() != head || state(t, e, got.Post).Reviewed {
		t.Fatal("half of a set was written")
	}
	for _, bad := range []ledger.Event{
		{},
		ledger.NewEvent(ledger.ActorEditor, 0, "", ledger.PostReviewed{}),
		ledger.NewEvent(ledger.ActorCrawler, 0, "", ledger.SourceReset{}),
		ledger.NewEvent(ledger.ActorCrawler, 0, "a", ledger.PostFetched{}),
		ledger.NewEvent(ledger.ActorWorker, got.Post, "", ledger.PostFailed{}),
	} {
		if _, err := e.Record(t.Context(), bad); !errors.Is(err, ledger.ErrInvalid) {
			t.Fatalf("%s: %v", bad.Type, err)
		}
	}
	views := int64(10)
	at := time.Date(2025, 1, 2, 3, 4, 5, 6789, time.UTC)
	measured := ledger.NewEvent(ledger.ActorCrawler, got.Post, "a", ledger.PostMeasured{Measures: ledger.Measures{Views: &views}})
	measured.At = at
	seqs := must[[]ledger.Seq](t)(e.Record(t.Context(), review, measured))
	if !slices.Equal(seqs, []ledger.Seq{head + 1, head + 2}) {
		t.Fatalf("got %v", seqs)
	}
	events := must[[]ledger.Event](t)(e.Read(t.Context(), head+1, 10))
	if p, ok := events[0].Payload.(ledger.PostMeasured); !ok || *p.Measures.Views != 10 || !events[0].At.Equal(at.Truncate(time.Microsecond)) {
		t.Fatalf("got %+v", events[0])
	}
	if s := state(t, e, got.Post); s.EffectiveDirection() != "llm" || !s.Reviewed {
		t.Fatalf("got %+v", s)
	}
	// A return takes a post out of a worker's hands.
	c := claim(t, e)
	must[[]ledger.Seq](t)(e.Record(t.Context(), ledger.NewEvent(ledger.ActorEditor, got.Post, "", ledger.PostReturned{Reason: ledger.ReturnEditor, Lane: ledger.LaneEditor})))
	wantStale(t, e.Complete(t.Context(), c, Decision("linux")))
	complete(t, e, claim(t, e))
}

func testSource(t *testing.T, e Engine) {
	if s := must[ledger.SourceState](t)(e.Source(t.Context(), "a")); s != (ledger.SourceState{}) {
		t.Fatalf("a source that was never seen: %+v", s)
	}
	for i := range 7 {
		must[[]ledger.Seq](t)(e.Record(t.Context(), ledger.NewEvent(ledger.ActorCrawler, 0, "a", ledger.SourceFailed{
			Run: ledger.Run{Trigger: ledger.TriggerSchedule}, Cause: ledger.CauseDNS, Message: fmt.Sprint("no such host ", i),
		})))
		must[[]ledger.Seq](t)(e.Record(t.Context(), Run("ab", i)))
	}
	s := must[ledger.SourceState](t)(e.Source(t.Context(), "a"))
	if s.Status != ledger.SourceDead || s.ErrorCount != 7 || s.LastError != "no such host 6" {
		t.Fatalf("got %+v", s)
	}
	events := must[[]ledger.Event](t)(e.SourceEvents(t.Context(), "a", 3))
	if len(events) != 3 || events[2].Payload.(ledger.SourceFailed).Message != "no such host 6" || events[0].Seq > events[1].Seq {
		t.Fatalf("got %+v", events)
	}
	must[[]ledger.Seq](t)(e.Record(t.Context(), ledger.NewEvent(ledger.ActorOperator, 0, "a", ledger.SourceReset{})))
	if s := must[ledger.SourceState](t)(e.Source(t.Context(), "a")); s.Status != ledger.SourceAlive || s.ErrorCount != 0 || s.LastError != "" {
		t.Fatalf("after the reset: %+v", s)
	}
	if s := must[ledger.SourceState](t)(e.Source(t.Context(), "ab")); s.Runs != 7 || s.New != 21 {
		t.Fatalf("got %+v", s)
	}
}

func testRead(t *testing.T, e Engine) {
	items := Items("a", 50)
	must[[]ledger.Appended](t)(e.Append(t.Context(), items))
	var seen []ledger.Event
	for after := ledger.Seq(0); ; {
		events := must[[]ledger.Event](t)(e.ReadTexts(t.Context(), after, 7))
		if len(events) == 0 {
			break
		}
		after = events[len(events)-1].Seq
		seen = append(seen, events...)
	}
	if len(seen) != len(items) {
		t.Fatalf("%d events, want %d", len(seen), len(items))
	}
	for i, ev := range seen {
		f := ev.Payload.(ledger.PostFetched)
		if f.Item.Text != items[i].Text || f.TextLen != len(items[i].Text) || ev.Source != "a" || f.Item.Source != "a" || ev.At.IsZero() {
			t.Fatalf("event %d: %+v", i, ev)
		}
	}
	if ev := must[[]ledger.Event](t)(e.Read(t.Context(), 0, 1)); ev[0].Payload.(ledger.PostFetched).Item.Text != "" {
		t.Fatal("Read gave a text")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := e.Wait(ctx, e.Head()-1); err != nil {
		t.Fatal(err)
	}
	head := e.Head()
	woken := make(chan error)
	go func() { woken <- e.Wait(ctx, head) }()
	appendOne(t, e, Item("b", "1"))
	if err := <-woken; err != nil || e.Head() <= head {
		t.Fatalf("wait: %v, head %d", err, e.Head())
	}
}

func testFind(t *testing.T, e Engine) {
	posts := must[[]ledger.Appended](t)(e.Append(t.Context(), Items("a", 5)))
	for _, p := range posts {
		id := p.ID.String()
		for _, form := range []string{id, id[:8], id[:9], " " + id[:16], fmt.Sprint(p.Post)} {
			if n := must[ledger.PostNum](t)(e.FindPost(t.Context(), form)); n != p.Post {
				t.Fatalf("find %q: %d, want %d", form, n, p.Post)
			}
		}
	}
	for form, want := range map[string]error{
		"999": ledger.ErrNotFound, "00000000000": ledger.ErrNotFound, "ffffffffff": ledger.ErrNotFound,
		"abc": ledger.ErrInvalid, "": ledger.ErrInvalid, "not a post": ledger.ErrInvalid,
	} {
		if _, err := e.FindPost(t.Context(), form); !errors.Is(err, want) {
			t.Errorf("find %q: %v, want %v", form, err, want)
		}
	}
	if _, err := e.Post(t.Context(), 999); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("post 999: %v", err)
	}
	if _, err := e.PostEvents(t.Context(), 999); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("events of post 999: %v", err)
	}
}

func testStore(t *testing.T, e Engine) {
	ctx := t.Context()
	a, b := e.Store("a"), e.Store("ab")
	set := func(s ledger.Store, key, value string) {
		t.Helper()
		if err := s.Update(ctx, func(tx ledger.Tx) error { return tx.Set([]byte(key), []byte(value)) }); err != nil {
			t.Fatal(err)
		}
	}
	for _, k := range []string{"x1", "x2", "x3", "y"} {
		set(a, k, "a"+k)
	}
	set(b, "x2", "other")
	err := a.Update(ctx, func(tx ledger.Tx) error {
		if err := tx.Delete([]byte("x1")); err != nil {
			return err
		}
		return context.DeadlineExceeded
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	var keys []string
	err = a.View(ctx, func(tx ledger.Tx) error {
		if v, err := tx.Get([]byte("x1")); err != nil || string(v) != "ax1" {
			t.Errorf("x1: %q, %v", v, err)
		}
		if _, err := tx.Get([]byte("none")); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("none: %v", err)
		}
		if err := tx.Set([]byte("x"), nil); err == nil {
			t.Error("a view can write")
		}
		return tx.Scan([]byte("x"), []byte("x2"), func(k, v []byte) (bool, error) {
			keys = append(keys, string(k)+"="+string(v))
			return true, nil
		})
	})
	if err != nil || !slices.Equal(keys, []string{"x2=ax2", "x3=ax3"}) {
		t.Fatalf("scan: %v, %v", keys, err)
	}
	// Increments at the same time: none is lost.
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				err := a.Update(ctx, func(tx ledger.Tx) error {
					v, err := tx.Get([]byte("n"))
					if err != nil && !errors.Is(err, ledger.ErrNotFound) {
						return err
					}
					return tx.Set([]byte("n"), append(v, '.'))
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	err = a.View(ctx, func(tx ledger.Tx) error {
		if v, err := tx.Get([]byte("n")); len(v) != 160 || err != nil {
			t.Errorf("%d increments of 160, %v", len(v), err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
