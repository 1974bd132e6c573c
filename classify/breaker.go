package classify

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"vesti.nixg.ru/ledger"
)

const (
	breakerPause    = time.Second
	maxBreakerPause = time.Minute
	// timeoutsToOpen is how many posts in a row may time out before the server
	// counts as away.
	timeoutsToOpen = 3
)

// BreakerOptions are what NewBreaker needs; all are optional.
type BreakerOptions struct {
	// Probe asks what does the work whether it is there and ready; it may take as
	// long as loading a model takes. Nil means that it is asked by trying.
	Probe  func(context.Context) error
	Pause  time.Duration    // after the first failure; doubles with each further one; 0 means 1 s
	Limit  time.Duration    // of the pause, unless a server asks for a longer one; 0 means 1 min
	Now    func() time.Time // nil means time.Now
	Logger *slog.Logger     // nil logs nothing
}

// Breaker is a circuit breaker: it opens when what a stage depends on is away,
// so that the stage's posts wait in the queue instead of failing, and closes
// when a probe succeeds. It is safe for concurrent use. It starts open and due,
// so that the first worker probes (and so warms up) before it claims.
type Breaker struct {
	options BreakerOptions

	mu       sync.Mutex
	open     bool
	since    time.Time // of the present state
	reason   string
	retry    time.Time // the next probe
	failures int       // in a row
	timeouts int       // in a row
	probing  bool
	changed  chan struct{} // closed and replaced at each change
}

// BreakerStatus is what pages show of a Breaker.
type BreakerStatus struct {
	Open   bool      // the stage is paused
	Since  time.Time // of the present state; zero before the first probe
	Reason string    // why it is open, for a person; "" when closed
	Retry  time.Time // when it is asked again; zero when closed
}

// NewBreaker returns a breaker that is open and due.
func NewBreaker(o BreakerOptions) *Breaker {
	o.Pause = cmp.Or(o.Pause, breakerPause)
	o.Limit = cmp.Or(o.Limit, maxBreakerPause)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Breaker{options: o, open: true, changed: make(chan struct{})}
}

// Status returns the present state.
func (b *Breaker) Status() BreakerStatus {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := BreakerStatus{Open: b.open && !b.since.IsZero(), Since: b.since}
	if b.open {
		s.Reason, s.Retry = b.reason, b.retry
	}
	return s
}

// Wait waits until the breaker is closed, probing when it is due. It returns
// false when ctx ended before.
func (b *Breaker) Wait(ctx context.Context) bool {
	for ctx.Err() == nil {
		due, changed, closed := b.state()
		switch {
		case closed:
			return true
		case due <= 0 && b.tryProbe(ctx):
			continue
		}
		var retry <-chan time.Time // none while somebody else probes
		if due > 0 {
			retry = time.After(due)
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-retry:
		}
	}
	return false
}

// Ready reports whether the breaker is closed, probing first when it is due or
// was never probed.
func (b *Breaker) Ready(ctx context.Context) bool {
	for {
		due, changed, closed := b.state()
		switch {
		case closed:
			return ctx.Err() == nil
		case due > 0 || ctx.Err() != nil:
			return false
		case b.tryProbe(ctx):
			continue
		}
		select { // somebody else is probing
		case <-ctx.Done():
			return false
		case <-changed:
		}
	}
}

// Report tells the breaker how a piece of work went. Any answer, even a bad
// one, says that the server is there; a missing one opens the breaker, and so
// do several timeouts in a row.
func (b *Breaker) Report(err error) {
	var f *Failure
	timeout := errors.As(err, &f) && f.Cause == ledger.CauseTimeout
	away := f != nil && f.Cause == ledger.CauseUnavailable
	b.mu.Lock()
	defer b.mu.Unlock()
	if timeout {
		b.timeouts++
		away = b.timeouts >= timeoutsToOpen
	}
	switch {
	case away && !b.open:
		b.trip(err)
	case !away && !timeout:
		b.failures, b.timeouts = 0, 0
	}
}

func (b *Breaker) state() (due time.Duration, changed <-chan struct{}, closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.retry.Sub(b.options.Now()), b.changed, !b.open
}

// tryProbe probes unless somebody else does, and reports whether it did.
func (b *Breaker) tryProbe(ctx context.Context) bool {
	b.mu.Lock()
	if b.probing || !b.open {
		b.mu.Unlock()
		return false
	}
	b.probing = true
	b.mu.Unlock()

	var err error
	if b.options.Probe != nil {
		err = b.options.Probe(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.probing = false
	switch {
	case err != nil && ctx.Err() != nil: // the prober stops, which says nothing of the server
		b.notify()
	case err != nil:
		b.trip(err)
	default:
		if !b.since.IsZero() {
			b.options.Logger.Info("stage resumes", slog.String("stage", ledger.StageLLM.String()),
				slog.Duration("paused", b.options.Now().Sub(b.since)))
		}
		b.open, b.since, b.reason, b.timeouts = false, b.options.Now(), "", 0
		b.notify()
	}
	return true
}

// trip opens the breaker, or keeps it open for longer.
func (b *Breaker) trip(err error) {
	now := b.options.Now()
	if !b.open || b.since.IsZero() {
		b.since = now
		b.options.Logger.Warn("stage pauses", slog.String("stage", ledger.StageLLM.String()), slog.Any("error", err))
	}
	pause := b.options.Limit
	if b.failures < 16 {
		pause = min(b.options.Pause<<b.failures, b.options.Limit)
	}
	b.failures++
	failure := failureOf(err)
	pause = max(pause, failure.RetryAfter)
	b.open, b.reason, b.retry = true, failure.Err.Error(), now.Add(pause)
	b.notify()
}

func (b *Breaker) notify() {
	close(b.changed)
	b.changed = make(chan struct{})
}
