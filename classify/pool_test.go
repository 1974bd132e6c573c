package classify_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"vesti.nixg.ru/classify"
	"vesti.nixg.ru/classify/keyword"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
	"vesti.nixg.ru/ledger/ledgertest"
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
	l := ledgertest.Open(t, ledgertest.Lease(120*time.Millisecond))
	post := fill(t, l, 1)[0]
	var calls atomic.Int32
	p := pool(t, classify.Options{Queue: l, Decider: decide(func(ctx context.Context, _ ledger.Claim) (classify.Decision, error) {
		calls.Add(1)
		select {
		case <-time.After(500 * time.Millisecond):
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

func TestTwoStagesLimit(t *testing.T) {
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
