package projections

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"vesti.nixg.ru/ledger"
)

const (
	batchEvents = 1000
	retryMin    = time.Second
	retryMax    = time.Minute
	sayEvery    = 10 * time.Second // while a projection is being built
)

// Errors of a Runner.
var (
	// ErrUnknown: no projection has this name.
	ErrUnknown = errors.New("no such projection")
	// ErrRebuilding: a new generation is being built already.
	ErrRebuilding = errors.New("projection is being rebuilt already")
)

// Log is the ledger as the runner reads it.
type Log interface {
	Head() ledger.Seq
	Wait(ctx context.Context, after ledger.Seq) error
	Read(ctx context.Context, after ledger.Seq, limit int) ([]ledger.Event, error)
}

// Options are what a Runner needs.
type Options struct {
	Log         Log
	Stores      Stores // where the runner notes which generation serves
	Projections []Projection
	// Space is asked before many events are applied at once, as in a build: an
	// error, of a disk that is nearly full, makes it wait. Nil is never asked.
	Space      func() error
	Logger     *slog.Logger          // nil discards
	Registerer prometheus.Registerer // nil registers nothing
}

// Runner feeds projections. Its methods are safe for concurrent use.
type Runner struct {
	log      Log
	logger   *slog.Logger
	space    func() error
	slots    []*slot
	progress *broadcast
	metrics  *metrics
}

// New returns a runner of the projections, whose names must differ.
func New(o Options) (*Runner, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Space == nil {
		o.Space = func() error { return nil }
	}
	r := &Runner{log: o.Log, logger: o.Logger, space: o.Space, progress: newBroadcast()}
	r.metrics = newMetrics(o.Registerer, r.Status)
	catalogue := catalogue{store: o.Stores(ledger.DerivedNamespace + "generations")}
	names := map[string]bool{}
	for _, p := range o.Projections {
		name := p.Spec().Name
		if names[name] {
			return nil, fmt.Errorf("%w: two projections are called %q", ledger.ErrInvalid, name)
		}
		names[name] = true
		r.slots = append(r.slots, &slot{
			runner: r, projection: p, spec: p.Spec(), catalogue: catalogue,
			logger: o.Logger.With("projection", name), opened: make(chan struct{}), replaced: make(chan struct{}, 1),
		})
	}
	return r, nil
}

// Run opens the projections and feeds them until ctx ends, then closes them
// and returns nil. A projection that fails is tried again; the others go on.
// It is called once.
func (r *Runner) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for _, s := range r.slots {
		all.Go(func() { s.run(ctx) })
	}
	all.Wait()
	return nil
}

// Status tells how far each projection is.
func (r *Runner) Status() []Status {
	head := r.log.Head()
	all := make([]Status, 0, len(r.slots))
	for _, s := range r.slots {
		st := s.status()
		if head > st.Seq {
			st.Lag = uint64(head - st.Seq)
		}
		all = append(all, st)
	}
	return all
}

// CatchUp waits until every projection has applied seq.
func (r *Runner) CatchUp(ctx context.Context, seq ledger.Seq) error {
	for {
		moved := r.progress.wait()
		behind := ""
		for _, s := range r.slots {
			if s.status().Seq < seq {
				behind = s.spec.Name
			}
		}
		if behind == "" {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("wait for projection %s to reach event %d: %w", behind, seq, ctx.Err())
		}
	}
}

// Rebuild builds a new generation of the named projection from the first event
// on while the old one serves, and switches to it once it has caught up. It
// needs Run beside it. progress, if not nil, hears how far it is. Where ctx
// ends first, the old generation stays. It returns ErrUnknown or ErrRebuilding.
func (r *Runner) Rebuild(ctx context.Context, name string, progress func(done, head ledger.Seq)) error {
	for _, s := range r.slots {
		if s.spec.Name == name {
			if err := s.rebuild(ctx, false, progress); err != nil {
				return fmt.Errorf("rebuild %s: %w", name, err)
			}
			return nil
		}
	}
	return fmt.Errorf("%w: %q", ErrUnknown, name)
}

// Names lists the projections.
func (r *Runner) Names() []string {
	var names []string
	for _, s := range r.slots {
		names = append(names, s.spec.Name)
	}
	return names
}

// broadcast wakes whoever waits for the next change.
type broadcast struct {
	mu sync.Mutex
	ch chan struct{}
}

func newBroadcast() *broadcast { return &broadcast{ch: make(chan struct{})} }

func (b *broadcast) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ch
}

func (b *broadcast) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.ch)
	b.ch = make(chan struct{})
}
