package badgerlog

import (
	"errors"
	"fmt"

	badger "github.com/dgraph-io/badger/v4"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/codec"
)

// postEvents reads all events of a post in order, without texts.
func postEvents(txn *badger.Txn, num ledger.PostNum) ([]ledger.Event, error) {
	var events []ledger.Event
	for _, seq := range append([]ledger.Seq{ledger.Seq(num)}, indexed(txn, postIdxPrefix(num), 0)...) {
		e, err := readEvent(txn, seq)
		if err != nil {
			return nil, err
		}
		if e.Post != num {
			return nil, fmt.Errorf("event %d is of post %d: %w", seq, e.Post, errRecord)
		}
		events = append(events, e)
	}
	return events, nil
}

// foldPost makes a post's record from its events, without a claim.
func foldPost(events []ledger.Event) (postRecord, error) {
	rec := postRecord{}
	for _, e := range events {
		if _, unknown := e.Payload.(ledger.Unknown); unknown {
			continue
		}
		var err error
		if rec, err = rec.apply(e); err != nil {
			return rec, err
		}
	}
	return rec, nil
}

// foldSource makes a source's state from its events.
func foldSource(txn *badger.Txn, slug ledger.Slug) (ledger.SourceState, error) {
	var s ledger.SourceState
	for _, seq := range indexed(txn, srcIdxPrefix(slug), 0) {
		e, err := readEvent(txn, seq)
		if err != nil {
			return s, err
		}
		s = s.Apply(e)
	}
	return s, nil
}

// refold writes a post's record anew from its events, and its entry in the
// queue. Whoever has the post in hand loses it.
func (c *checker) refold(num ledger.PostNum) func(*group) error {
	return func(g *group) error {
		events, err := postEvents(g.txn, num)
		if err != nil {
			return err
		}
		rec, err := foldPost(events)
		if err != nil {
			return err
		}
		before, err := g.post(num)
		if err != nil {
			before = postRecord{num: num}
		}
		if err := g.putPost(before, rec); err != nil {
			return err
		}
		return g.requeue(rec)
	}
}

// requeue gives a pending post a fresh place in its queue, since reading may
// have passed its old one.
func (c *checker) requeue(rec postRecord) func(*group) error {
	return func(g *group) error {
		rec, err := g.post(rec.num)
		if err != nil {
			return err
		}
		return g.requeue(rec)
	}
}

func (g *group) requeue(rec postRecord) error {
	if rec.where().kind != keyReady {
		return nil
	}
	e := g.event(ledger.ActorLedger, rec.num, "", ledger.PostReturned{
		Reason: ledger.ReturnRepair, Stage: rec.state.Stage, Lane: rec.state.Lane,
	})
	return g.follow(rec, e, codec.AppendPayload(nil, e.Payload))
}

func (c *checker) refoldSource(slug ledger.Slug) func(*group) error {
	return func(g *group) error {
		s, err := foldSource(g.txn, slug)
		if err != nil {
			return err
		}
		return g.set(sourceKey(slug), codec.AppendSourceState(nil, s))
	}
}

// unreadable notes a key whose value is damaged.
func (c *checker) unreadable(key []byte, err error) {
	switch key[0] {
	case keyBody:
		c.problem(key, c.giveUp(ledger.Seq(seqOf(key))), "a text is lost: %v", err)
	case keyPost:
		c.problem(key, c.refold(ledger.PostNum(seqOf(key))), "cannot be read: %v", err)
	case keySource:
		c.problem(key, c.refoldSource(ledger.Slug(key[1:])), "cannot be read: %v", err)
	case keyStore:
		c.problem(key, deleteFix(key), "is lost: %v", err)
	default:
		c.problem(key, nil, "cannot be read: %v", err)
	}
}

// giveUp removes a text that cannot be read, and has the events say so.
func (c *checker) giveUp(seq ledger.Seq) func(*group) error {
	return func(g *group) error {
		e, err := g.readEvent(seq)
		if err != nil {
			return err
		}
		rec, err := g.post(e.Post)
		if err != nil {
			return err
		}
		if rec.text != seq || rec.state.Expired {
			return g.dropTexts([]ledger.Seq{seq}, seq)
		}
		texts, err := textsOf(g.txn, rec)
		if err != nil {
			return err
		}
		if rec.state.Status == ledger.StatusPending {
			lost := ledger.PostFailed{Cause: ledger.CauseInternal, Message: "its text is lost", Parked: true}
			if err := g.failed(rec.num, func(postRecord) bool { return true }, 0, lost, ledger.ActorLedger); err != nil {
				return err
			}
			if rec, err = g.post(rec.num); err != nil {
				return err
			}
		}
		return g.expireNow(rec, texts)
	}
}

// strays names the keys of a prefix that nothing stands behind.
func (c *checker) strays(prefix byte, n int) {
	it := c.txn.NewIterator(badger.IteratorOptions{Prefix: []byte{prefix}})
	defer it.Close()
	for it.Rewind(); it.Valid() && n > 0; it.Next() {
		key := it.Item().KeyCopy(nil)
		value, err := copyValue(it.Item())
		if err != nil || c.backed(key, value) {
			continue
		}
		n--
		c.problem(key, deleteFix(key), "nothing stands behind it")
	}
}

// backed reports whether a derived key follows from what it was derived from,
// or may follow from what is damaged.
func (c *checker) backed(key, value []byte) bool {
	switch key[0] {
	case keyReady, keyDelayed, keyParked:
		if len(value) != 8 {
			return false
		}
		rec, err := readPost(c.txn, ledger.PostNum(seqOf(value)))
		if errors.Is(err, ledger.ErrNotFound) {
			there, err := c.there(ledger.PostNum(seqOf(value)))
			return there && err == nil // the record's repair sees to it
		}
		return mayBe(err, string(rec.where().key()) == string(key))
	case keyPostIdx:
		e, err := readEvent(c.txn, ledger.Seq(seqOf(key)))
		return mayBe(err, e.Type != ledger.TypePostFetched && string(postIdxKey(e.Post, e.Seq)) == string(key))
	case keySrcIdx:
		e, err := readEvent(c.txn, ledger.Seq(seqOf(key)))
		return mayBe(err, string(srcIdxKey(e.Source, e.Seq)) == string(key))
	case keyPost:
		e, err := readEvent(c.txn, ledger.Seq(seqOf(key)))
		return mayBe(err, e.Type == ledger.TypePostFetched)
	case keyHash:
		return len(value) == 8 && c.hasText(ledger.PostNum(seqOf(value)), ledger.Hash(key[1:]))
	case keyVariant:
		return len(key) == 41 && c.hasText(ledger.PostNum(seqOf(key[:9])), ledger.Hash(key[9:]))
	default:
		return true
	}
}

// mayBe is what was found out of something that was read, or true where it is
// damaged.
func mayBe(err error, found bool) bool {
	return errors.Is(err, errValue) || err == nil && found
}

func (c *checker) hasText(num ledger.PostNum, hash ledger.Hash) bool {
	events, err := postEvents(c.txn, num)
	if err != nil {
		return mayBe(err, false)
	}
	for _, e := range events {
		switch p := e.Payload.(type) {
		case ledger.PostFetched:
			if ledger.Hash(p.ID) == hash {
				return true
			}
		case ledger.PostRevised:
			if p.New && p.Hash == hash {
				return true
			}
		}
	}
	return false
}

// repair carries out what the check noted, one transaction's worth at a time.
func (c *checker) repair() error {
	done := make(chan struct{})
	failed := make([]error, len(c.repairs))
	r := &request{
		steps: len(c.repairs),
		size:  func(int) int { return stepReserve },
		step: func(g *group, i int) error {
			failed[i] = c.repairs[i].step(g)
			return failed[i]
		},
		done: func(error) { close(done) }, // each step's error is in failed
	}
	release, err := c.log.acquire()
	if err != nil {
		return err
	}
	defer release()
	if err := c.log.appender.submit(c.ctx, r); err != nil {
		return err
	}
	<-done
	if err := c.log.Err(); err != nil {
		return err
	}
	for i, r := range c.repairs {
		if failed[i] != nil {
			continue
		}
		c.report.Repaired++
		if r.problem >= 0 {
			c.report.Found[r.problem].Repaired = true
		}
	}
	return nil
}
