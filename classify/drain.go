package classify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"vesti.nixg.ru/ledger"
)

const (
	progressInterval = 500 * time.Millisecond
	// maxClaimErrors is how often in a row a worker of Drain may fail to claim.
	maxClaimErrors = 5
)

// Summary is what a Drain has done. A claimed post is classified, returned,
// parked or stale; failed counts the attempts that failed, whose posts are
// among the returned and the parked.
type Summary struct {
	Claimed    int           `json:"claimed"` // posts, however many stages they went through
	Classified int           `json:"classified"`
	Failed     int           `json:"failed"`
	Returned   int           `json:"returned"`
	Parked     int           `json:"parked"`
	Stale      int           `json:"stale"` // revised or taken over meanwhile, or the outcome could not be written
	DurationMS int64         `json:"duration_ms"`
	Duration   time.Duration `json:"-"`
}

// Drain works until the queue has nothing to claim or limit posts were claimed
// (0 means no limit), with the given number of workers for ledger.StageFirst (0
// means the pool's). Posts that wait for a language model are worked on unless
// it is away. A post that fails does not end the run. progress, where it is not
// nil, hears now and then how far it is, and once at the end; it is not called
// concurrently. When ctx ends Drain behaves as Run does and returns ctx's error.
func (p *Pool) Drain(ctx context.Context, limit, workers int, progress func(Summary)) (Summary, error) {
	if workers <= 0 {
		workers = p.options.Workers
	}
	started := p.now()
	r, work, end := p.begin(ctx)
	d := &drain{run: r, allowance: newAllowance(limit), firstDone: make(chan struct{})}
	r.tally.handed = make(map[ledger.PostNum]struct{})
	r.tally.changed = make(chan struct{}, 1)
	summary := func() Summary { return r.tally.summary(p.now().Sub(started)) }
	stopProgress := report(progress, summary)

	var first, all sync.WaitGroup
	for _, g := range p.groups(workers) {
		for i := range g.size {
			if g.gated {
				all.Go(func() { d.later(ctx, work, g, g.worker(i)) })
				continue
			}
			first.Go(func() { d.first(ctx, work, g, g.worker(i)) })
		}
	}
	first.Wait()
	close(d.firstDone)
	all.Wait()
	end()
	stopProgress()
	s := summary()
	if progress != nil {
		progress(s)
	}
	if err := ctx.Err(); err != nil {
		return s, fmt.Errorf("work stopped: %w", err)
	}
	return s, d.failure()
}

// drain is a run that ends by itself.
type drain struct {
	*run
	allowance *allowance
	firstDone chan struct{}

	mu  sync.Mutex
	err error
}

// first is a worker that ends when the queue of its stages is empty.
func (d *drain) first(ctx, work context.Context, g group, worker string) {
	for d.goesOn(ctx) && d.allowance.wait() {
		claim, ok := d.claim(ctx, g, worker)
		d.allowance.settle(ok)
		if !ok {
			return
		}
		d.tally.claimed.Add(1)
		d.handle(work, claim)
	}
}

// later is a worker of StageLLM: it ends when its queue is empty and nothing
// more can come, or when the language model is away.
func (d *drain) later(ctx, work context.Context, g group, worker string) {
	for d.pool.breaker.Ready(ctx) {
		over := closed(d.firstDone)
		fresh := d.goesOn(ctx) && d.allowance.try()
		if !fresh && !d.tally.anyHanded() && over {
			return
		}
		claim, ok := d.claim(ctx, g, worker)
		if fresh {
			d.allowance.settle(ok && !d.tally.wasHanded(claim.Post))
		}
		if !ok {
			if over || d.failure() != nil {
				return
			}
			select {
			case <-d.firstDone:
			case <-d.tally.changed:
			case <-ctx.Done():
				return
			}
			continue
		}
		if !d.tally.takeHanded(claim.Post) {
			d.tally.claimed.Add(1)
		}
		d.handle(work, claim)
	}
}

func (d *drain) goesOn(ctx context.Context) bool { return ctx.Err() == nil && d.failure() == nil }

func (d *drain) claim(ctx context.Context, g group, worker string) (ledger.Claim, bool) {
	pause := claimPause
	for n := 1; ; n++ {
		claim, err := d.pool.queue.Claim(ctx, ledger.ClaimRequest{Worker: worker, Stages: g.stages, NoWait: true})
		switch {
		case err == nil:
			return claim, true
		case errors.Is(err, ledger.ErrQueueEmpty) || ctx.Err() != nil:
			return ledger.Claim{}, false
		case errors.Is(err, ledger.ErrClosed) || n == maxClaimErrors:
			d.setFailure(fmt.Errorf("claim a post: %w", err))
			return ledger.Claim{}, false
		}
		d.pool.troubles.tell(slog.LevelWarn, "cannot claim", err)
		wait(ctx, pause)
		pause *= 2
	}
}

func (d *drain) setFailure(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil {
		d.err = err
	}
}

func (d *drain) failure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// report calls progress at intervals until the returned function is called.
func report(progress func(Summary), summary func() Summary) (stop func()) {
	if progress == nil {
		return func() {}
	}
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(progressInterval)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				progress(summary())
			}
		}
	})
	return func() {
		close(over)
		wg.Wait()
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// allowance counts the posts that a drain may still claim. A worker takes one
// before it claims, without knowing whether it will find a post that counts.
type allowance struct {
	limit   int // 0 for none
	mu      sync.Mutex
	settled *sync.Cond
	claimed int
	open    int // taken by workers that have not settled yet
}

func newAllowance(limit int) *allowance {
	a := &allowance{limit: limit}
	a.settled = sync.NewCond(&a.mu)
	return a
}

// try takes one, if there is one now. Who got it settles.
func (a *allowance) try() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.take()
}

// wait takes one, and while others have the last ones in hand waits whether they
// claim with them. Who got it settles.
func (a *allowance) wait() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for !a.take() {
		if a.open == 0 {
			return false
		}
		a.settled.Wait()
	}
	return true
}

func (a *allowance) take() bool {
	if a.limit > 0 && a.claimed+a.open >= a.limit {
		return false
	}
	a.open++
	return true
}

// settle uses up what was taken, or gives it back.
func (a *allowance) settle(used bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open--
	if used {
		a.claimed++
	}
	a.settled.Broadcast()
}
