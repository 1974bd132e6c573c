package badgerlog

import (
	"context"
	"fmt"
	"math"
	"time"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/codec"
)

// Heartbeat renews the claim's lease and returns the claim with the new one. It
// returns an error matching ledger.ErrStale when the claim is no longer in hand.
func (l *Log) Heartbeat(ctx context.Context, c ledger.Claim) (ledger.Claim, error) {
	if err := context.Cause(ctx); err != nil {
		return c, err
	}
	release, err := l.acquire()
	if err != nil {
		return c, err
	}
	defer release()
	lease := l.now().Add(l.opts.Lease)
	if !l.queue.renew(c.Post, token(c.Token), lease) {
		return c, fmt.Errorf("%w: claim of post %d", ledger.ErrStale, c.Post)
	}
	c.Lease = lease
	return c, nil
}

// Complete writes the decision on a claimed post and returns when it is durable.
// A final one ends the claim. A provisional one is shown and leaves the claim
// with its holder, who ends it by Release, Fail or a final decision. It returns
// an error matching ledger.ErrStale when the claim is no longer in hand or the
// post was revised; the answer is then to be dropped.
func (l *Log) Complete(ctx context.Context, c ledger.Claim, d ledger.PostClassified) error {
	done := make(chan error, 1)
	if err := l.CompleteLater(ctx, c, d, func(err error) { done <- err }); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// CompleteLater is Complete without the wait: it returns once the decision is
// queued, in the order of the calls, and done hears what Complete would have
// returned. done runs on the engine's goroutine and must not block; it is not
// called where CompleteLater itself returns an error. A decision that is lost
// with the process leaves its post in the queue.
func (l *Log) CompleteLater(ctx context.Context, c ledger.Claim, d ledger.PostClassified, done func(error)) error {
	if err := validDecision(d); err != nil {
		return fmt.Errorf("complete post %d: %w", c.Post, err)
	}
	release, err := l.acquire()
	if err != nil {
		return err
	}
	defer release()
	d.Revision = c.Revision
	payload := codec.AppendPayload(make([]byte, 0, 128), d)
	r := one(len(payload), func(g *group) error { return g.complete(c, d, payload) })
	r.done = done
	return l.appender.submit(ctx, r)
}

func validDecision(d ledger.PostClassified) error {
	for name, v := range map[string]float64{"relevance": d.Relevance, "interest": d.Interest, "confidence": d.Confidence} {
		if math.IsNaN(v) || v < 0 || v > 1 {
			return fmt.Errorf("%w: %s %v is not between 0 and 1", ledger.ErrInvalid, name, v)
		}
	}
	if n := len(d.Summary) + len(d.RawReply); n > maxEnvelope {
		return fmt.Errorf("%w: summary and raw reply of %d bytes, at most %d are kept", ledger.ErrTooLarge, n, maxEnvelope)
	}
	return nil
}

// held reads a claimed post, and refuses when c is not its claim.
func (g *group) held(c ledger.Claim) (postRecord, error) {
	rec, err := g.post(c.Post)
	if err != nil {
		return rec, err
	}
	if rec.claim != token(c.Token) || c.Token == 0 {
		g.count(g.log.metrics.stale.Inc)
		return rec, fmt.Errorf("%w: claim of post %d, which is %s at revision %d",
			ledger.ErrStale, c.Post, rec.state.Status, rec.state.Revision)
	}
	return rec, nil
}

func (g *group) complete(c ledger.Claim, d ledger.PostClassified, payload []byte) error {
	failpoint("complete.begin")
	rec, err := g.held(c)
	if err != nil {
		return err
	}
	e := g.event(workerActor(c.Worker), c.Post, "", d)
	if err := g.follow(rec, e, payload); err != nil {
		return err
	}
	failpoint("complete.written")
	return nil
}

func workerActor(worker string) ledger.Actor {
	if worker == "" {
		return ledger.ActorWorker
	}
	return ledger.Actor(string(ledger.ActorWorker) + "/" + worker)
}

// Fail gives a claimed post up. It comes back after a delay that grows with its
// attempts, and is parked after the last one or where f is final. A failure
// with CauseUnavailable burns no attempt: the post comes back after the first
// delay. It returns an error matching ledger.ErrStale when the claim is no longer
// in hand.
func (l *Log) Fail(ctx context.Context, c ledger.Claim, f ledger.Failure) (parked bool, err error) {
	release, err := l.acquire()
	if err != nil {
		return false, err
	}
	defer release()
	if f.Cause == "" {
		f.Cause = ledger.CauseInternal
	}
	f.Message = ledger.CutText(f.Message, maxMessage)
	var p ledger.PostFailed
	err = l.appender.do(ctx, len(f.Message), func(g *group) error {
		rec, err := g.held(c)
		if err != nil {
			return err
		}
		p = l.failure(rec.state, f, g.at)
		return g.failed(c.Post, func(r postRecord) bool { return r.claim == rec.claim }, 0, p, workerActor(c.Worker))
	})
	if err != nil {
		return false, err
	}
	return p.Parked, nil
}

// maxMessage bounds an error's text, in bytes.
const maxMessage = 4 << 10

// failure decides what becomes of a post whose attempt failed.
func (l *Log) failure(s ledger.PostState, f ledger.Failure, at time.Time) ledger.PostFailed {
	p := ledger.PostFailed{Attempt: s.Attempt + 1, Cause: f.Cause, Message: f.Message, Stage: s.Stage}
	switch {
	case f.Final || f.Cause != ledger.CauseUnavailable && p.Attempt >= l.opts.MaxAttempts:
		p.Parked = true
	case f.Cause == ledger.CauseUnavailable:
		p.Attempt = s.Attempt
		p.RetryAt = at.Add(l.opts.retryDelay(1))
	case f.Cause == ledger.CauseLease:
		// It waited its lease out: it comes back at once.
	default:
		p.RetryAt = at.Add(l.opts.retryDelay(p.Attempt))
	}
	return p
}

// failed writes a PostFailed where the record still holds. granted is the grant
// that ends with it, where it is none that the record knows.
func (g *group) failed(post ledger.PostNum, holds func(postRecord) bool, granted token, p ledger.PostFailed, by ledger.Actor) error {
	rec, err := g.post(post)
	if err != nil {
		return err
	}
	if !holds(rec) || rec.state.Status != ledger.StatusPending {
		g.effects = append(g.effects, effect{before: rec, after: rec, refused: granted})
		return nil
	}
	p.RetryAt = roundTime(p.RetryAt)
	if p.Attempt == 0 && p.Parked {
		p.Attempt = rec.state.Attempt
		p.Stage = rec.state.Stage
	}
	e := g.event(by, post, "", p)
	return g.follow(rec, e, codec.AppendPayload(nil, p))
}

// roundTime brings a time to what an event can hold.
func roundTime(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return time.UnixMicro(t.UnixMicro()).UTC()
}

// Release puts a claimed post back into the queue with no attempt burnt: into
// r.Stage's, keeping its lane and, within a stage, its place. r.Lane is set by
// the engine. It returns an error matching ledger.ErrStale when the claim is no
// longer in hand.
func (l *Log) Release(ctx context.Context, c ledger.Claim, r ledger.PostReturned) error {
	if r.Stage >= ledger.StageCount {
		return fmt.Errorf("release post %d: %w: stage %d", c.Post, ledger.ErrInvalid, r.Stage)
	}
	release, err := l.acquire()
	if err != nil {
		return err
	}
	defer release()
	return l.appender.do(ctx, len(r.Note), func(g *group) error {
		rec, err := g.held(c)
		if err != nil {
			return err
		}
		r.Lane = rec.state.Lane
		return g.returned(rec, r, workerActor(c.Worker))
	})
}

// returned writes a PostReturned of a post that may be in hand.
func (g *group) returned(rec postRecord, p ledger.PostReturned, by ledger.Actor) error {
	e := g.event(by, rec.num, "", p)
	return g.follow(rec, e, codec.AppendPayload(nil, p))
}
