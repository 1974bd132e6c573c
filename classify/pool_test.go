package classify_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"vesti.nixg.ru/classify"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/ledgertest"
)

func TestDrain(t *testing.T) {
	l := ledgertest.Open(t)
	posts := fill(t, l, 100)
	p := pool(t, classify.Options{Queue: l, Decider: rules(t)})
	var last classify.Summary
	s, err := p.Drain(t.Context(), 0, 8, func(s classify.Summary) { last = s })
	if err != nil {
		t.Fatal(err)
	}
	if s.Claimed != 100 || s.Classified != 100 || s.Failed+s.Returned+s.Parked+s.Stale != 0 || last != s {
		t.Errorf("summary %+v, last progress %+v", s, last)
	}
	n := count(t, l, ledger.TypePostClassified)
	for _, post := range posts {
		if n[post] != 1 {
			t.Errorf("post %d was classified %d times", post, n[post])
		}
		if st := state(t, l, post); st.Direction != "linux" || st.Status != ledger.StatusClassified {
			t.Errorf("post %d: %+v", post, st)
		}
	}
	again, err := p.Drain(t.Context(), 0, 8, nil)
	if err != nil || again.Claimed != 0 || again.Classified != 0 {
		t.Errorf("a second run: %+v, %v", again, err)
	}
}

func TestDrainLimit(t *testing.T) {
	l := ledgertest.Open(t)
	fill(t, l, 50)
	p := pool(t, classify.Options{Queue: l, Decider: rules(t)})
	for _, want := range []int{20, 20, 10, 0} {
		if s, err := p.Drain(t.Context(), 20, 8, nil); err != nil || s.Claimed != want || s.Classified != want {
			t.Errorf("summary %+v, %v; want %d", s, err, want)
		}
	}
}

// TestFailingClassifier: a failure returns its post, the run goes on, and the
// last attempt parks.
func TestFailingClassifier(t *testing.T) {
	l := ledgertest.Open(t, ledgertest.Retry(3, time.Millisecond, time.Millisecond))
	posts := fill(t, l, 30)
	bad, panics := posts[3], posts[7]
	reg := prometheus.NewRegistry()
	p := pool(t, classify.Options{Queue: l, Registerer: reg, Decider: decide(func(_ context.Context, c ledger.Claim) (classify.Decision, error) {
		switch c.Post {
		case bad:
			return classify.Decision{}, &classify.Failure{Cause: ledger.CauseBadReply, Err: errors.New("nonsense")}
		case panics:
			panic("boom")
		}
		return settled("linux")
	})})
	total := classify.Summary{}
	eventually(t, "both posts parked", func() bool {
		s, err := p.Drain(t.Context(), 0, 8, nil)
		if err != nil {
			t.Fatal(err)
		}
		if s.Claimed != s.Classified+s.Returned+s.Parked {
			t.Fatalf("the counts do not add up: %+v", s)
		}
		total.Classified += s.Classified
		total.Failed += s.Failed
		total.Parked += s.Parked
		return total.Parked == 2
	})
	if total.Classified != 28 || total.Failed != 6 {
		t.Errorf("in all %+v, want 28 classified and 6 failed attempts", total)
	}
	for post, cause := range map[ledger.PostNum]ledger.Cause{bad: ledger.CauseBadReply, panics: ledger.CauseInternal} {
		if st := state(t, l, post); st.Status != ledger.StatusParked || st.Cause != cause || st.Attempt != 3 {
			t.Errorf("post %d: %+v, want it parked for %s", post, st, cause)
		}
	}
	if n := testutil.CollectAndCount(reg, "vesti_classify_failures_total"); n != int(ledger.StageCount)*len(ledger.PostCauses()) {
		t.Errorf("%d series of failures", n)
	}
}

// TestLeaseIsRenewed: work longer than the lease keeps its claim.
func TestLeaseIsRenewed(t *testing.T) {
	t.Parallel()
	l := ledgertest.Open(t, ledgertest.Lease(2*time.Second)) // a busy machine may stop for a while
	post := fill(t, l, 1)[0]
	var calls atomic.Int32
	p := pool(t, classify.Options{Queue: l, Decider: decide(func(ctx context.Context, _ ledger.Claim) (classify.Decision, error) {
		calls.Add(1)
		select {
		case <-time.After(5 * time.Second):
			return settled("linux")
		case <-ctx.Done():
			return classify.Decision{}, ctx.Err()
		}
	})})
	s, err := p.Drain(t.Context(), 0, 4, nil)
	if err != nil || s.Classified != 1 || calls.Load() != 1 {
		t.Errorf("summary %+v, %v after %d calls", s, err, calls.Load())
	}
	if st := state(t, l, post); st.Status != ledger.StatusClassified {
		t.Errorf("state %+v", st)
	}
}

// TestRevisedMeanwhile: an answer to an older text is dropped, the new text is
// judged.
func TestRevisedMeanwhile(t *testing.T) {
	l := ledgertest.Open(t)
	post := fill(t, l, 1)[0]
	var calls atomic.Int32
	p := pool(t, classify.Options{Queue: l, Decider: decide(func(ctx context.Context, c ledger.Claim) (classify.Decision, error) {
		if calls.Add(1) == 1 {
			item := c.Item
			item.Text = "Совсем другой текст о новых играх для приставок и о том, что в них нового"
			if _, err := l.Append(ctx, []ledger.Item{item}); err != nil {
				return classify.Decision{}, err
			}
			return settled("linux")
		}
		return settled("games")
	})})
	var s classify.Summary
	eventually(t, "the new text judged", func() bool {
		one, err := p.Drain(t.Context(), 0, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.Classified += one.Classified
		s.Stale += one.Stale
		return s.Classified > 0
	})
	if st := state(t, l, post); st.Direction != "games" || s.Classified != 1 || s.Stale != 1 {
		t.Errorf("state %+v, summary %+v", st, s)
	}
}

func TestDrainIsStopped(t *testing.T) {
	l := ledgertest.Open(t)
	fill(t, l, 50)
	ctx, cancel := context.WithCancel(t.Context())
	p := pool(t, classify.Options{Queue: l, Decider: decide(func(context.Context, ledger.Claim) (classify.Decision, error) {
		cancel()
		return settled("linux")
	})})
	s, err := p.Drain(ctx, 0, 2, nil)
	if !errors.Is(err, context.Canceled) || s.Claimed == 0 || s.Claimed > 10 || s.Claimed != s.Classified {
		t.Errorf("summary %+v, %v", s, err)
	}
}

// refusing is a queue on a full disk.
type refusing struct {
	classify.Queue
	free atomic.Int64
}

func (q *refusing) Claim(context.Context, ledger.ClaimRequest) (ledger.Claim, error) {
	return ledger.Claim{}, fmt.Errorf("claim: %w: %d bytes free", ledger.ErrNoSpace, q.free.Add(1))
}

// TestTroubleIsToldOnce: not by each worker, at each try.
func TestTroubleIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer // the bubble's goroutines have ended when it is read
		p := pool(t, classify.Options{
			Queue: &refusing{}, Decider: rules(t), Workers: 32, Logger: slog.New(slog.NewTextHandler(&logged, nil)),
		})
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
		defer cancel()
		if err := p.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(logged.String(), "cannot claim"); n != 3 {
			t.Errorf("told %d times in two and a half minutes, want 3:\n%s", n, logged.String())
		}
	})
}
