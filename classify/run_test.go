package classify_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"vesti.nixg.ru/classify"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/ledgertest"
)

func run(t *testing.T, p *classify.Pool) (stop func(), done <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(cancel)
	return cancel, ended
}

// TestRunEnds: work in hand may finish within the grace period; what does not
// goes back to the queue.
func TestRunEnds(t *testing.T) {
	l := ledgertest.Open(t)
	posts := fill(t, l, 3)
	quick, slow := posts[0], posts[1]
	begun := make(chan struct{}, len(posts))
	finish := make(chan struct{})
	p := pool(t, classify.Options{
		Queue: l, Workers: 2, Grace: 300 * time.Millisecond,
		Decider: decide(func(ctx context.Context, c ledger.Claim) (classify.Decision, error) {
			begun <- struct{}{}
			if c.Post == quick {
				<-finish
				return settled("linux")
			}
			<-ctx.Done()
			return classify.Decision{}, fmt.Errorf("stopped: %w", ctx.Err())
		}),
	})
	stop, done := run(t, p)
	<-begun
	<-begun
	stop()
	close(finish)
	if err := <-done; err != nil {
		t.Errorf("Run returned %v", err)
	}
	if st := state(t, l, quick); st.Status != ledger.StatusClassified {
		t.Errorf("the quick one: %+v", st)
	}
	for _, post := range []ledger.PostNum{slow, posts[2]} {
		if st := state(t, l, post); st.Status != ledger.StatusPending || st.Attempt != 0 {
			t.Errorf("post %d: %+v, want it pending without an attempt", post, st)
		}
	}
	if n := count(t, l, ledger.TypePostReturned); n[slow] != 1 || n[posts[2]] != 0 {
		t.Errorf("returned %v, want the slow one once", n)
	}
	if g := l.Queue(); g.Processing != 0 {
		t.Errorf("%d claims still in hand", g.Processing)
	}
}

// TestRunStress starts and stops pools on one queue: every post is classified
// once.
func TestRunStress(t *testing.T) {
	l := ledgertest.Open(t)
	posts := fill(t, l, 300)
	for range 10 {
		stop, done := run(t, pool(t, classify.Options{Queue: l, Decider: rules(t), Workers: 4, Grace: time.Second}))
		eventually(t, "some posts", func() bool {
			return l.Queue().Processing > 0 || len(count(t, l, ledger.TypePostClassified)) == len(posts)
		})
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pool(t, classify.Options{Queue: l, Decider: rules(t)}).Drain(t.Context(), 0, 8, nil); err != nil {
		t.Fatal(err)
	}
	n := count(t, l, ledger.TypePostClassified)
	for _, post := range posts {
		if n[post] != 1 {
			t.Errorf("post %d was classified %d times", post, n[post])
		}
	}
}

// TestRunWhenTheStoreCloses: a pool ends with the error when its queue is gone.
func TestRunWhenTheStoreCloses(t *testing.T) {
	l := ledgertest.Open(t)
	_, done := run(t, pool(t, classify.Options{Queue: l, Decider: rules(t), Workers: 2}))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if !errors.Is(err, ledger.ErrClosed) {
			t.Errorf("Run returned %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("Run goes on without a queue")
	}
}
