package badgerlog

import (
	"context"
	"errors"
	"fmt"
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
