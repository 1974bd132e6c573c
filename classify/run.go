package classify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"vesti.nixg.ru/ledger"
)

// outcomeTimeout bounds what a worker still writes about a post when its own
// time is over.
const outcomeTimeout = 5 * time.Second

// run is one Run or Drain of a pool.
type run struct {
	pool        *Pool
	completions sync.WaitGroup // queued and not yet durable
	tally       tally
}

// handle judges one post and writes what came of it. work is the context of the
// work in hand, which outlives that of the run by the grace period.
func (r *run) handle(work context.Context, claim ledger.Claim) {
	p := r.pool
	p.metrics.inHand.WithLabelValues(claim.Stage.String()).Inc()
	defer p.metrics.inHand.WithLabelValues(claim.Stage.String()).Dec()
	ctx, h := p.hold(work, claim)
	started := p.now()
	decision, err := p.decide(ctx, claim)
	took := p.now().Sub(started)
	claim, lost := h.end()
	p.metrics.judged(decision, err)
	switch {
	case lost:
		r.tally.stale.Add(1)
		p.log.Info("claim lost: its answer is dropped", slog.Uint64("post", uint64(claim.Post)), slog.String("worker", claim.Worker))
	case err != nil && work.Err() != nil:
		r.release(work, claim, ledger.PostReturned{Reason: ledger.ReturnShutdown, Stage: claim.Stage, Lane: claim.Lane})
	case err != nil:
		r.fail(work, claim, failureOf(err))
	case decision.HandOn:
		r.handOn(work, claim, decision, took)
	default:
		r.complete(work, claim, decision, took)
	}
	if err == nil && claim.Stage == ledger.StageLLM {
		p.breaker.Report(nil)
	}
}

// decide calls the decider and makes a failure of its panic.
func (p *Pool) decide(ctx context.Context, claim ledger.Claim) (d Decision, err error) {
	defer func() {
		if v := recover(); v != nil {
			p.log.Error("classifier panicked", slog.Uint64("post", uint64(claim.Post)), slog.Any("panic", v),
				slog.String("stack", string(debug.Stack())))
			err = &Failure{Cause: ledger.CauseInternal, Err: fmt.Errorf("panic: %v", v)}
		}
	}()
	d, err = p.decider.Decide(ctx, claim)
	if err != nil {
		return Decision{Spent: d.Spent}, fmt.Errorf("judge post %d: %w", claim.Post, err)
	}
	return d, nil
}

func (r *run) complete(work context.Context, claim ledger.Claim, d Decision, took time.Duration) {
	r.queueCompletion(work, claim, ledger.PostClassified{Classification: timed(d, took), Revision: claim.Revision}, func(err error) {
		r.settle(claim, err, &r.tally.classified)
	})
}

// handOn sends the post to the next stage, with the guess so far where that is
// worth showing. The claim lasts through a provisional completion.
func (r *run) handOn(work context.Context, claim ledger.Claim, d Decision, took time.Duration) {
	if d.Provisional {
		guess := ledger.PostClassified{Classification: timed(d, took), Revision: claim.Revision, Provisional: true}
		r.queueCompletion(work, claim, guess, func(error) {}) // what stops it stops the release after it as well
	}
	ctx, cancel := outcomeContext(work)
	defer cancel()
	r.tally.expect(claim.Post)
	if err := r.pool.queue.Release(ctx, claim, ledger.PostReturned{Reason: ledger.ReturnStage, Stage: ledger.StageLLM, Lane: claim.Lane}); err != nil {
		r.tally.takeHanded(claim.Post)
		r.settle(claim, err, nil)
		return
	}
	r.tally.handOver()
}

func (r *run) queueCompletion(work context.Context, claim ledger.Claim, p ledger.PostClassified, done func(error)) {
	ctx := context.WithoutCancel(work)
	r.completions.Add(1)
	err := r.pool.queue.CompleteLater(ctx, claim, p, func(err error) {
		defer r.completions.Done()
		done(err)
	})
	if err != nil {
		r.completions.Done()
		done(err)
	}
}

func (r *run) fail(work context.Context, claim ledger.Claim, f *Failure) {
	if claim.Stage == ledger.StageLLM {
		r.pool.breaker.Report(f)
	}
	r.pool.metrics.failures.WithLabelValues(claim.Stage.String(), string(f.Cause)).Inc()
	if f.Cause == ledger.CauseUnavailable && claim.Stage == ledger.StageLLM && r.pool.options.LLMWorkers > 0 {
		// The breaker keeps the stage from claiming it at once again.
		r.release(work, claim, ledger.PostReturned{Reason: ledger.ReturnAway, Stage: claim.Stage, Lane: claim.Lane, Note: f.Error()})
		return
	}
	ctx, cancel := outcomeContext(work)
	defer cancel()
	parked, err := r.pool.queue.Fail(ctx, claim, ledger.Failure{Cause: f.Cause, Message: f.Err.Error(), Final: f.Final})
	r.tally.failed.Add(1)
	if parked {
		r.settle(claim, err, &r.tally.parked)
		return
	}
	r.settle(claim, err, &r.tally.returned)
}

func (r *run) release(work context.Context, claim ledger.Claim, back ledger.PostReturned) {
	ctx, cancel := outcomeContext(work)
	defer cancel()
	r.settle(claim, r.pool.queue.Release(ctx, claim, back), &r.tally.returned)
}

// settle counts an outcome that was written, or says why it was not. Nothing is
// lost then: the post's claim ends with its lease.
func (r *run) settle(claim ledger.Claim, err error, counted counter) {
	switch {
	case err == nil:
		if counted != nil {
			counted.Add(1)
		}
	case errors.Is(err, ledger.ErrStale):
		r.tally.stale.Add(1)
	default:
		r.tally.stale.Add(1)
		r.pool.troubles.tell(slog.LevelError, "outcome not written: the post comes back when its lease ends", err,
			slog.Uint64("post", uint64(claim.Post)), slog.String("worker", claim.Worker))
	}
}

func outcomeContext(work context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(work), outcomeTimeout)
}

func timed(d Decision, took time.Duration) ledger.Classification {
	c := d.Classification
	if c.Duration == 0 {
		c.Duration = took
	}
	return c
}
