package badgerlog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	badger "github.com/dgraph-io/badger/v4"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/codec"
)

// Claim grants a post to a worker until its lease ends: of the lane whose turn
// it is the oldest. It waits until there is one or ctx ends; with r.NoWait it
// returns ledger.ErrQueueEmpty instead. Below the floor of free space it returns
// ErrNoSpace.
//
// The claim is granted at once and recorded in the next transaction, before
// anything that its holder does with it. Should the record not bear it out
// there, because the post was revised meanwhile, the claim is void: its
// completion is refused with ErrStale and the post is granted anew.
func (l *Log) Claim(ctx context.Context, r ledger.ClaimRequest) (ledger.Claim, error) {
	for _, s := range r.Stages {
		if s >= ledger.StageCount {
			return ledger.Claim{}, fmt.Errorf("%w: stage %d", ledger.ErrInvalid, s)
		}
	}
	stages := stageSet(r.Stages)
	for {
		c, err := l.tryClaim(ctx, stages, r.Worker)
		if !errors.Is(err, ledger.ErrQueueEmpty) || r.NoWait {
			return c, err
		}
		w := l.queue.wait(stages)
		select {
		case <-w.woken:
			l.queue.leave(w, true)
		case <-ctx.Done():
			l.queue.leave(w, false)
			return ledger.Claim{}, context.Cause(ctx)
		}
	}
}

func (l *Log) tryClaim(ctx context.Context, stages uint8, worker string) (ledger.Claim, error) {
	if err := context.Cause(ctx); err != nil {
		return ledger.Claim{}, err
	}
	release, err := l.acquire()
	if err != nil {
		return ledger.Claim{}, err
	}
	defer release()
	if err := l.Err(); err != nil {
		return ledger.Claim{}, err
	}
	if err := l.space.check(l.opts); err != nil {
		return ledger.Claim{}, err
	}
	for {
		started := time.Now()
		post, h, ok, err := l.queue.next(stages, worker, l.now().Add(l.opts.Lease))
		if err != nil {
			return ledger.Claim{}, err
		}
		if !ok {
			return ledger.Claim{}, ledger.ErrQueueEmpty
		}
		c, err := l.grant(ctx, post, h)
		if err == nil {
			l.metrics.claimed(h.place.queue, time.Since(started))
			return c, nil
		}
		if !errors.Is(err, errNoGrant) {
			l.queue.abandon(post, h.claim, true)
			return ledger.Claim{}, fmt.Errorf("claim post %d: %w", post, err)
		}
	}
}

// errNoGrant: this post cannot be claimed, the next one may.
var errNoGrant = errors.New("not to be granted")

// basis is what a claim was granted on.
type basis struct {
	rec     postRecord
	version uint64 // of the record in the store; 0 where it was not noted
	item    ledger.Item
}

// grant reads the post for its claim and queues the claim's record.
func (l *Log) grant(ctx context.Context, post ledger.PostNum, h hand) (ledger.Claim, error) {
	b, err := l.basis(post, h)
	rec := b.rec
	switch {
	case errors.Is(err, ledger.ErrNotFound) || err == nil && !l.grantable(rec, h):
		// An entry that nothing stands behind, or one that is settled by now.
		l.queue.abandon(post, h.claim, false)
		return ledger.Claim{}, errNoGrant
	case err != nil:
		return ledger.Claim{}, l.park(ctx, post, h, ledger.CauseInternal, err.Error())
	}
	if rec.claim != 0 && int(rec.deaths)+1 >= l.opts.MaxAttempts {
		return ledger.Claim{}, l.park(ctx, post, h, ledger.CauseLease,
			fmt.Sprintf("the process died %d times while it was in hand", l.opts.MaxAttempts))
	}
	if err := l.appender.submit(ctx, one(0, func(g *group) error { return g.claim(h, b) })); err != nil {
		return ledger.Claim{}, err
	}
	failpoint("claim.granted")
	return ledger.Claim{
		Post: post, ID: rec.id, Worker: h.worker, Token: uint64(h.claim), Lease: h.lease,
		Attempt: rec.state.Attempt + 1, Revision: rec.state.Revision, Lane: rec.state.Lane, Stage: rec.state.Stage,
		Item: b.item,
	}, nil
}

// grantable reports whether a record bears a grant out.
func (l *Log) grantable(rec postRecord, h hand) bool {
	return rec.where() == h.place && !l.queue.live(rec.claim)
}

// basis reads what a claim needs: what was read ahead where that is fresh
// enough, else from the shared view, and from the present where that view says
// something against the claim.
func (l *Log) basis(post ledger.PostNum, h hand) (basis, error) {
	if h.ahead == nil || h.ahead.asOf < h.asOf {
		l.readAhead(h.place.queue) // for those that follow
	}
	if h.ahead != nil && h.ahead.asOf >= h.asOf {
		if b, err := l.unpackAhead(post, h.ahead); err == nil && l.grantable(b.rec, h) {
			return b, nil
		}
	}
	b, err := l.readForClaim(post, h.asOf, false)
	if err != nil || !l.grantable(b.rec, h) {
		return l.readForClaim(post, h.asOf, true)
	}
	return b, nil
}

func (l *Log) unpackAhead(post ledger.PostNum, a *ahead) (basis, error) {
	b := basis{version: a.version}
	var err error
	if b.rec, err = decodePost(post, a.record); err != nil {
		return b, err
	}
	f, ok := codec.DecodeEvent(ledger.Seq(post), a.event).Payload.(ledger.PostFetched)
	if !ok {
		return b, errUnreadable
	}
	b.item = f.Item
	if a.text != nil {
		b.item.Text, err = l.texts.unpack(a.text, f.TextLen)
	}
	return b, err
}

// park takes a post that cannot be worked on out of the queue.
func (l *Log) park(ctx context.Context, post ledger.PostNum, h hand, cause ledger.Cause, message string) error {
	l.opts.Logger.Warn("post parked", "post", uint64(post), "cause", string(cause), "message", message)
	err := l.appender.submit(ctx, one(len(message), func(g *group) error {
		return g.failed(post, func(rec postRecord) bool { return rec.where() == h.place }, h.claim, ledger.PostFailed{
			Cause: cause, Message: message, Parked: true,
		}, ledger.ActorLedger)
	}))
	if err != nil {
		return err
	}
	return errNoGrant
}

// readForClaim reads a post's record and what is needed to judge it.
func (l *Log) readForClaim(post ledger.PostNum, upTo ledger.Seq, fresh bool) (b basis, err error) {
	err = l.snapshot.view(l, upTo, fresh, func(txn *badger.Txn) error {
		if b.rec, err = readPost(txn, post); err != nil {
			return err
		}
		b.item, err = l.readItem(txn, b.rec)
		return err
	})
	return b, err
}

// errUnreadable: an event that is needed does not decode.
var errUnreadable = ledger.ErrUnreadable

// readItem returns the item as first fetched, with the newest title and text.
func (l *Log) readItem(txn *badger.Txn, rec postRecord) (ledger.Item, error) {
	e, err := readEvent(txn, ledger.Seq(rec.num))
	if err != nil {
		// A post without its event is damage, not an entry without a post.
		return ledger.Item{}, fmt.Errorf("%w: %s", errUnreadable, err.Error())
	}
	f, ok := e.Payload.(ledger.PostFetched)
	if !ok {
		return ledger.Item{}, fmt.Errorf("event %d: %w", rec.num, errUnreadable)
	}
	item := f.Item
	if rec.revised != 0 {
		e, err := readEvent(txn, rec.revised)
		if err != nil {
			return ledger.Item{}, err
		}
		r, ok := e.Payload.(ledger.PostRevised)
		if !ok {
			return ledger.Item{}, fmt.Errorf("event %d: %w", rec.revised, errUnreadable)
		}
		item.Title = r.Title
		if r.URL != "" {
			item.URL, item.CanonicalURL = r.URL, r.CanonicalURL
		}
		if r.TextChanged {
			item.TextFrom = r.TextFrom
		}
	}
	item.Text, err = readText(txn, l.texts, rec.text)
	return item, err
}

// claim records a grant, or refuses it where the post is not as it was read.
func (g *group) claim(h hand, b basis) error {
	rec, err := g.unchanged(b)
	if err != nil {
		return err
	}
	if !g.log.grantable(rec, h) || rec.state.Revision != b.rec.state.Revision {
		g.effects = append(g.effects, effect{before: rec, after: rec, refused: h.claim})
		g.count(g.log.metrics.refused.Inc)
		return nil
	}
	after := rec
	if rec.claim != 0 {
		after.deaths++ // its process died with it in hand
	}
	after.claim = h.claim
	failpoint("claim.recorded")
	return g.putPost(rec, after)
}

// unchanged returns the post's record as it is now: the one that was read, where
// the version in the store is still the same, else it reads it.
func (g *group) unchanged(b basis) (postRecord, error) {
	if rec, ok := g.posts[b.rec.num]; ok {
		return rec, nil
	}
	if b.version != 0 {
		item, err := g.txn.Get(postKey(b.rec.num))
		if err == nil && item.Version() == b.version {
			return b.rec, nil
		}
	}
	return g.post(b.rec.num)
}

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
