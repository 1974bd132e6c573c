package badgerlog

import (
	"errors"
	"fmt"
	"reflect"

	badger "github.com/dgraph-io/badger/v4"

	"vesti.nixg.ru/ledger"
)

// posts folds each post's events anew and compares.
func (c *checker) posts() error {
	return c.walk(keyPost, func(key, value []byte) error {
		num := ledger.PostNum(seqOf(key))
		c.report.Posts++
		rec, err := decodePost(num, value)
		if err != nil {
			c.problem(key, c.refold(num), "does not decode: %v", err)
			return nil
		}
		c.countStatus(rec)
		events, err := postEvents(c.txn, num)
		if err != nil {
			c.problem(key, nil, "its events: %v", err)
			return nil
		}
		want, err := foldPost(events)
		if err != nil {
			c.problem(key, nil, "its events do not follow from each other: %v", err)
			return nil
		}
		got := rec
		got.claim, got.deaths = 0, 0
		if !reflect.DeepEqual(got, want) {
			c.problem(key, c.refold(num), "is %+v, its events make %+v", got, want)
			return nil
		}
		if rec.claim.epoch() > c.log.epoch {
			c.problem(key, c.refold(num), "claimed in epoch %d, this is %d", rec.claim.epoch(), c.log.epoch)
		}
		if rec.claim != 0 && rec.state.Status != ledger.StatusPending {
			c.problem(key, c.refold(num), "claimed and %s", rec.state.Status)
		}
		if err := c.queued(rec); err != nil {
			return err
		}
		if err := c.haveTexts(rec, events); err != nil {
			return err
		}
		return c.identities(rec, events)
	})
}

// haveTexts checks that the texts of a post are there, or gone as retention
// said.
func (c *checker) haveTexts(rec postRecord, events []ledger.Event) error {
	for _, e := range events {
		n := 0
		switch p := e.Payload.(type) {
		case ledger.PostFetched:
			n = p.TextLen
		case ledger.PostRevised:
			n = p.TextLen
		}
		if n == 0 {
			continue
		}
		key := bodyKey(e.Seq)
		_, err := c.txn.Get(key)
		if err != nil && !errors.Is(err, badger.ErrKeyNotFound) {
			return fmt.Errorf("read %q: %w", key, err)
		}
		gone := errors.Is(err, badger.ErrKeyNotFound)
		switch {
		case rec.state.Expired && !gone:
			c.problem(key, deleteFix(key), "a text of post %d, whose texts have expired", rec.num)
		case !rec.state.Expired && gone && (e.Seq == rec.text || e.Seq > c.dropped):
			c.problem(key, nil, "missing: a text of %d bytes of post %d", n, rec.num)
		}
	}
	return nil
}

func (c *checker) countStatus(rec postRecord) {
	switch rec.state.Status {
	case ledger.StatusPending:
		c.report.Pending++
	case ledger.StatusClassified:
		c.report.Classified++
	case ledger.StatusParked:
		c.report.Parked++
	case ledger.StatusNone:
	}
	if rec.state.Expired {
		c.report.Expired++
	}
}

// queued checks a post's entry in the queue, and that reading will come to it.
func (c *checker) queued(rec postRecord) error {
	at := rec.where()
	key := at.key()
	if key == nil {
		return nil
	}
	if at.kind == keyReady && at.seq <= c.cursors[at.queue.stage][at.queue.lane] {
		c.problem(key, c.requeue(rec), "stands before the queue's cursor, where no reading comes")
	}
	v, err := txnGet(c.txn, key)
	if err != nil {
		return err
	}
	if v == nil && at.kind == keyReady {
		// The key alone might come to stand where reading has passed.
		c.problem(key, c.requeue(rec), "missing: the post is %s", rec.state.Status)
		return nil
	}
	return c.want(key, seqBytes(uint64(rec.num)), fmt.Sprintf("the post is %s", rec.state.Status))
}

// identities checks the keys by which a post's texts and items are known.
func (c *checker) identities(rec postRecord, events []ledger.Event) error {
	for _, e := range events {
		var key ledger.ItemKey
		var url string
		var err error
		switch p := e.Payload.(type) {
		case ledger.PostFetched:
			key, url = p.Item.Key, p.Item.CanonicalURL
			err = c.want(hashKey(ledger.Hash(p.ID)), seqBytes(uint64(rec.num)), "the post's text")
		case ledger.PostSeenAgain:
			key, url = p.Key, p.CanonicalURL
		case ledger.PostRevised:
			key, url = p.Key, p.CanonicalURL
			switch {
			case p.New && p.LinkedTo == 0:
				err = c.want(hashKey(p.Hash), seqBytes(uint64(rec.num)), "a revision's text")
			case p.New:
				err = c.want(variantKey(rec.num, p.Hash), []byte{1}, "a revision's text, whose key another post has")
			}
		default:
			continue
		}
		if err != nil {
			return err
		}
		if err := c.known(rec.num, key, url); err != nil {
			return err
		}
	}
	return nil
}

// known checks an item's key and its canonical URL. What an item gave last may
// be in no event, so that only its post is checked.
func (c *checker) known(num ledger.PostNum, item ledger.ItemKey, url string) error {
	key := itemKey(sumOf(string(item)))
	v, err := txnGet(c.txn, key)
	if err != nil {
		return err
	}
	rec, err := decodeItem(v)
	if err != nil || rec.post != num {
		fix := itemRecord{post: num}.encode()
		c.problem(key, setFix(key, fix), "item %s is of post %d, want %d (%v)", item, rec.post, num, err)
	}
	if url == "" {
		return nil
	}
	key = urlKey(sumOf(url))
	if v, err = txnGet(c.txn, key); err != nil {
		return err
	}
	posts := decodePosts(v)
	if with := withPost(posts, num); with != nil {
		c.problem(key, func(g *group) error {
			v, err := g.get(key)
			if err != nil {
				return err
			}
			if with := withPost(decodePosts(v), num); with != nil {
				return g.set(key, encodePosts(with))
			}
			return nil
		}, "URL %s does not lead to post %d", url, num)
	}
	return nil
}
