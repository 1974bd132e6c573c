package classify_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"vesti.nixg.ru/classify"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/ledgertest"
)

// TestTwoStages: a post that is handed on has its guess meanwhile, and goes to
// the other workers.
func TestTwoStages(t *testing.T) {
	l := ledgertest.Open(t)
	posts := fill(t, l, 20)
	guesses := make(chan ledger.PostState, len(posts))
	p := pool(t, classify.Options{Queue: l, Workers: 4, LLMWorkers: 2, Decider: decide(func(ctx context.Context, c ledger.Claim) (classify.Decision, error) {
		return handedOn(ctx, c, func(context.Context, ledger.Claim) (classify.Decision, error) {
			guesses <- state(t, l, c.Post)
			return settled("llm")
		})
	})})
	s, err := p.Drain(t.Context(), 0, 4, nil)
	if err != nil || s.Claimed != 20 || s.Classified != 20 || s.Returned != 0 {
		t.Errorf("summary %+v, %v", s, err)
	}
	for range posts {
		if g := <-guesses; !g.Provisional || g.Direction != "tech" || g.Status != ledger.StatusPending {
			t.Errorf("meanwhile %+v", g)
		}
	}
	for _, post := range posts {
		if st := state(t, l, post); st.Provisional || st.Direction != "llm" || st.Status != ledger.StatusClassified {
			t.Errorf("in the end %+v", st)
		}
	}
}

// TestTwoStagesLimit: as many posts are claimed as the limit says, whichever
// worker comes first to the last of them.
func TestTwoStagesLimit(t *testing.T) {
	for range 10 {
		l := ledgertest.Open(t)
		fill(t, l, 20)
		p := pool(t, classify.Options{Queue: l, Workers: 4, LLMWorkers: 2, Decider: decide(func(ctx context.Context, c ledger.Claim) (classify.Decision, error) {
			return handedOn(ctx, c, func(context.Context, ledger.Claim) (classify.Decision, error) { return settled("llm") })
		})})
		for _, want := range []int{7, 7, 6, 0} {
			if s, err := p.Drain(t.Context(), 7, 4, nil); err != nil || s.Claimed != want || s.Classified != want {
				t.Errorf("summary %+v, %v; want %d", s, err, want)
			}
		}
	}
}

// TestAway: what needs a server that is away waits, burns no attempt, holds up
// nobody, and goes on when the server is back.
func TestAway(t *testing.T) {
	l := ledgertest.Open(t, ledgertest.Retry(2, time.Millisecond, time.Millisecond))
	posts := fill(t, l, 12)
	var up atomic.Bool
	up.Store(true)
	breaker := classify.NewBreaker(classify.BreakerOptions{
		Pause: 5 * time.Millisecond, Limit: 20 * time.Millisecond,
		Probe: func(context.Context) error {
			if !up.Load() {
				return errors.New("connection refused")
			}
			return nil
		},
	})
	if breaker.Status().Open {
		t.Error("the stage shows as paused before anything was asked")
	}
	var asked atomic.Int32
	p := pool(t, classify.Options{
		Queue: l, Workers: 2, LLMWorkers: 2, Breaker: breaker,
		Decider: decide(func(ctx context.Context, c ledger.Claim) (classify.Decision, error) {
			if c.Post%2 == 0 {
				return settled("linux")
			}
			return handedOn(ctx, c, func(context.Context, ledger.Claim) (classify.Decision, error) {
				if asked.Add(1) > 2 && !up.Load() || asked.Load() == 2 {
					up.Store(false)
					return classify.Decision{}, &classify.Failure{Cause: ledger.CauseUnavailable, Err: errors.New("connection refused")}
				}
				return settled("llm")
			})
		}),
	})
	stop, done := run(t, p)
	eventually(t, "the pause", func() bool { return breaker.Status().Open })
	eventually(t, "posts that need no server", func() bool {
		n := count(t, l, ledger.TypePostReturned)
		for _, post := range posts {
			if post%2 == 0 && state(t, l, post).Status != ledger.StatusClassified || post%2 == 1 && n[post] == 0 {
				return false
			}
		}
		return true
	})
	if s := breaker.Status(); s.Reason == "" || s.Retry.IsZero() {
		t.Errorf("status %+v does not say why and until when", s)
	}
	s, err := p.Drain(t.Context(), 0, 2, nil) // "vesti work" beside it ends at once
	if err != nil {
		t.Error(err)
	}
	t.Logf("beside it: %+v", s)
	up.Store(true)
	eventually(t, "all posts", func() bool {
		return len(count(t, l, ledger.TypePostClassified)) == len(posts) && l.Queue().Processing == 0
	})
	eventually(t, "the last decisions", func() bool {
		for _, post := range posts {
			if st := state(t, l, post); st.Status != ledger.StatusClassified {
				return false
			}
		}
		return true
	})
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := count(t, l, ledger.TypePostFailed); len(n) != 0 {
		t.Errorf("attempts were burnt: %v", n)
	}
}

// TestDrainWhileAway: a run ends although posts wait for a server.
func TestDrainWhileAway(t *testing.T) {
	l := ledgertest.Open(t)
	fill(t, l, 5)
	breaker := classify.NewBreaker(classify.BreakerOptions{Probe: func(context.Context) error { return errors.New("connection refused") }})
	p := pool(t, classify.Options{Queue: l, Workers: 2, LLMWorkers: 2, Breaker: breaker, Decider: decide(func(ctx context.Context, c ledger.Claim) (classify.Decision, error) {
		return handedOn(ctx, c, nil)
	})})
	s, err := p.Drain(t.Context(), 0, 2, nil)
	if err != nil || s.Claimed != 5 || s.Returned != 5 || s.Classified != 0 {
		t.Errorf("summary %+v, %v", s, err)
	}
	again, err := p.Drain(t.Context(), 0, 2, nil)
	if err != nil || again.Claimed != 0 {
		t.Errorf("again: %+v, %v", again, err)
	}
}
