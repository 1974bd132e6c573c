package badgerlog

import (
	"fmt"

	badger "github.com/dgraph-io/badger/v4"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/codec"
)

// event makes the group's next event. It gets the next Seq, so that no other
// may be made before it is put.
func (g *group) event(actor ledger.Actor, post ledger.PostNum, source ledger.Slug, p ledger.Payload) ledger.Event {
	e := ledger.NewEvent(actor, post, source, p)
	e.Seq, e.At, e.Version = g.last+1, g.at, codec.Version
	return e
}

// putEvent writes an event and its entry in the index of its post or source.
func (g *group) putEvent(e ledger.Event, stored []byte) error {
	if e.Seq != g.last+1 {
		panic(fmt.Sprintf("event %d put after %d", e.Seq, g.last))
	}
	g.last = e.Seq
	if err := g.set(eventKey(e.Seq), stored); err != nil {
		return err
	}
	g.count(func() { g.log.metrics.event(e) })
	switch {
	case e.Type == ledger.TypePostFetched: // its Seq is the post's number
		return nil
	case e.Post != 0:
		return g.set(postIdxKey(e.Post, e.Seq), nil)
	case e.Source != "":
		return g.set(srcIdxKey(e.Source, e.Seq), nil)
	default:
		return nil
	}
}

// follow writes an event of a post: the event, the record after it, and the
// post's entry in the queue.
func (g *group) follow(rec postRecord, e ledger.Event, payload []byte) error {
	after, err := rec.apply(e)
	if err != nil {
		return err
	}
	stored := codec.AppendHeader(make([]byte, 0, 64+len(payload)), e)
	if err := g.putEvent(e, append(stored, payload...)); err != nil {
		return err
	}
	return g.putPost(rec, after)
}

func (g *group) putText(seq ledger.Seq, packed []byte) error {
	if packed == nil {
		return nil
	}
	return g.set(bodyKey(seq), packed)
}

// post reads a post's record.
func (g *group) post(num ledger.PostNum) (postRecord, error) {
	if rec, ok := g.posts[num]; ok {
		return rec, nil
	}
	if rec, ok := g.log.appender.inHand[num]; ok {
		return rec, nil
	}
	return readPost(g.txn, num)
}

func readPost(txn *badger.Txn, num ledger.PostNum) (postRecord, error) {
	b, err := txnGet(txn, postKey(num))
	if err != nil {
		return postRecord{}, err
	}
	if b == nil {
		return postRecord{}, fmt.Errorf("post %d: %w", num, ledger.ErrNotFound)
	}
	rec, err := decodePost(num, b)
	if err != nil {
		return postRecord{}, fmt.Errorf("post %d: %w", num, err)
	}
	return rec, nil
}

// putPost writes a post's record and moves its entry in the queue.
func (g *group) putPost(before, after postRecord) error {
	from, to := before.where(), after.where()
	if from != to {
		if k := from.key(); k != nil {
			if err := g.delete(k); err != nil {
				return err
			}
		}
		if k := to.key(); k != nil {
			if err := g.set(k, seqBytes(uint64(after.num))); err != nil {
				return err
			}
		}
	}
	g.posts[after.num] = after
	g.effects = append(g.effects, effect{before: before, after: after})
	return g.set(postKey(after.num), after.encode())
}

func (g *group) readEvent(seq ledger.Seq) (ledger.Event, error) { return readEvent(g.txn, seq) }

// readEvent reads an event, without its text.
func readEvent(txn *badger.Txn, seq ledger.Seq) (ledger.Event, error) {
	item, err := txn.Get(eventKey(seq))
	if err != nil {
		return ledger.Event{}, fmt.Errorf("event %d: %w", seq, notFound(err))
	}
	var e ledger.Event
	err = readValue(item, func(v []byte) error {
		e = codec.DecodeEvent(seq, v)
		return nil
	})
	if err != nil {
		return ledger.Event{}, fmt.Errorf("event %d: %w", seq, err)
	}
	return e, nil
}

// readText reads the text of an event; "" where it has none or none any more.
func readText(txn *badger.Txn, t *texts, seq ledger.Seq) (string, error) {
	item, err := txn.Get(bodyKey(seq))
	if err != nil {
		if notFound(err) == ledger.ErrNotFound { //nolint:errorlint // notFound returns it as it is
			return "", nil
		}
		return "", fmt.Errorf("text of event %d: %w", seq, err)
	}
	var text string
	err = readValue(item, func(v []byte) error {
		var err error
		text, err = t.unpack(v, 0)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("text of event %d: %w", seq, err)
	}
	return text, nil
}
