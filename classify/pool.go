package classify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"vesti.nixg.ru/ledger"
)

const (
	defaultWorkers = 8
	defaultGrace   = 20 * time.Second

	// claimPause is the first pause after a claim that failed for the store's sake,
	// such as a full disk; it doubles up to maxClaimPause.
	claimPause    = 100 * time.Millisecond
	maxClaimPause = 10 * time.Second
)

// Queue is what a pool needs of the ledger's engine. The contracts are in
// ledger/DESIGN.md.
type Queue interface {
	Claim(ctx context.Context, req ledger.ClaimRequest) (ledger.Claim, error)
	Heartbeat(ctx context.Context, claim ledger.Claim) (ledger.Claim, error)
	CompleteLater(ctx context.Context, claim ledger.Claim, p ledger.PostClassified, done func(error)) error
	Fail(ctx context.Context, claim ledger.Claim, f ledger.Failure) (parked bool, err error)
	Release(ctx context.Context, claim ledger.Claim, r ledger.PostReturned) error
}

// Options are what New needs. Queue and Decider are required.
type Options struct {
	Queue   Queue
	Decider Decider
	// Workers is the number of workers for ledger.StageFirst; 0 means 8.
	Workers int
	// LLMWorkers is the number of workers for ledger.StageLLM. With 0 there is no
	// language model, and the first workers settle what waits for one as well.
	LLMWorkers int
	// Breaker pauses the workers of ledger.StageLLM while what does their work is
	// away; nil means one that knows of no probe.
	Breaker *Breaker
	// Grace is how long work in hand may take when Run is told to end; 0 means 20 s.
	Grace      time.Duration
	Logger     *slog.Logger          // nil logs nothing
	Registerer prometheus.Registerer // nil keeps the metrics to itself
	Now        func() time.Time      // nil means time.Now
}

// Pool is a set of workers. It is safe for concurrent use: Drain may run beside
// Run, and the two share the queue.
type Pool struct {
	queue   Queue
	decider Decider
	options Options
	breaker *Breaker
	log     *slog.Logger
	metrics *metrics
	now     func() time.Time

	troubles troubles
}

// New returns a pool. It fails when its metrics are registered already.
func New(o Options) (*Pool, error) {
	o.Workers = cmp.Or(o.Workers, defaultWorkers)
	o.Grace = cmp.Or(o.Grace, defaultGrace)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Breaker == nil {
		o.Breaker = NewBreaker(BreakerOptions{Now: o.Now, Logger: o.Logger})
	}
	m, err := newMetrics(o.Registerer, o.Breaker)
	if err != nil {
		return nil, fmt.Errorf("register metrics of classify: %w", err)
	}
	return &Pool{
		queue: o.Queue, decider: o.Decider, options: o, breaker: o.Breaker,
		log: o.Logger, metrics: m, now: o.Now, troubles: troubles{log: o.Logger, now: o.Now},
	}, nil
}

// Run works until ctx ends. It then claims nothing more, gives the work in hand
// the grace period, returns what is unfinished to the queue, and returns nil
// when every goroutine of its own has ended. It returns early only with an
// error matching ledger.ErrClosed.
func (p *Pool) Run(ctx context.Context) error {
	r, work, end := p.begin(ctx)
	defer end()
	var wg sync.WaitGroup
	errs := make(chan error, p.options.Workers+p.options.LLMWorkers)
	for _, g := range p.groups(p.options.Workers) {
		for i := range g.size {
			wg.Go(func() { errs <- p.serve(ctx, work, r, g, g.worker(i)) })
		}
	}
	wg.Wait()
	close(errs)
	var all []error
	for err := range errs {
		all = append(all, err)
	}
	return errors.Join(all...)
}

// group is a number of workers that claim the same stages.
type group struct {
	prefix string
	size   int
	stages []ledger.Stage
	gated  bool // by the breaker
}

func (g group) worker(i int) string { return g.prefix + strconv.Itoa(i+1) }

// groups lists the groups, that of StageFirst before that of StageLLM.
func (p *Pool) groups(workers int) []group {
	if p.options.LLMWorkers <= 0 {
		return []group{{size: workers, stages: []ledger.Stage{ledger.StageFirst, ledger.StageLLM}}}
	}
	return []group{
		{size: workers, stages: []ledger.Stage{ledger.StageFirst}},
		{prefix: "llm/", size: p.options.LLMWorkers, stages: []ledger.Stage{ledger.StageLLM}, gated: true},
	}
}

// serve is one worker's life within Run.
func (p *Pool) serve(ctx, work context.Context, r *run, g group, worker string) error {
	pause := claimPause
	for ctx.Err() == nil {
		if g.gated && !p.breaker.Wait(ctx) {
			break
		}
		claim, err := p.queue.Claim(ctx, ledger.ClaimRequest{Worker: worker, Stages: g.stages})
		switch {
		case err == nil:
			pause = claimPause
			r.handle(work, claim)
		case ctx.Err() != nil:
		case errors.Is(err, ledger.ErrClosed):
			return fmt.Errorf("claim a post: %w", err)
		default:
			p.troubles.tell(slog.LevelWarn, "cannot claim", err)
			wait(ctx, pause)
			pause = min(2*pause, maxClaimPause)
		}
	}
	return nil
}

// begin returns the state of one Run or Drain and the context of its work in
// hand, which outlives ctx by the grace period. end waits for what is under way.
func (p *Pool) begin(ctx context.Context) (r *run, work context.Context, end func()) {
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	r = &run{pool: p}
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-over:
			return
		case <-ctx.Done():
		}
		grace := time.NewTimer(p.options.Grace)
		defer grace.Stop()
		select {
		case <-over:
		case <-grace.C:
			stopWork()
		}
	})
	return r, work, func() {
		r.completions.Wait()
		close(over)
		wg.Wait()
		stopWork()
	}
}

// wait returns after d or when ctx ends.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
