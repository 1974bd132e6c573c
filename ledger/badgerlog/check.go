package badgerlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	badger "github.com/dgraph-io/badger/v4"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/codec"
)

func (c *checker) control() error {
	for name, size := range map[string]int{controlFormat: 1, controlStore: 16, controlEpoch: 8} {
		v, err := txnGet(c.txn, []byte(name))
		if err != nil {
			return err
		}
		if len(v) != size {
			c.problem([]byte(name), nil, "has %d bytes, want %d", len(v), size)
		}
	}
	v, err := txnGet(c.txn, []byte(controlCursor))
	if err != nil {
		return err
	}
	for i, q := range queues() {
		if len(v) >= 8*(i+1) {
			c.cursors[q.stage][q.lane] = ledger.Seq(binary.BigEndian.Uint64(v[8*i:]))
		}
	}
	return nil
}

// events checks each event's envelope and its entry in an index.
func (c *checker) events() error {
	return c.walk(keyEvent, func(key, value []byte) error {
		if len(key) != 9 {
			c.problem(key, nil, "no event's key")
			return nil
		}
		c.report.Events++
		e := codec.DecodeEvent(ledger.Seq(seqOf(key)), value)
		if u, ok := e.Payload.(ledger.Unknown); ok {
			c.report.Unknown++
			if u.Stored.String() != "unknown" && e.Version <= codec.Version {
				c.problem(key, nil, "%s does not decode: %s", u.Stored, u.Err)
			}
			return nil
		}
		if p, ok := e.Payload.(ledger.BodiesDropped); ok {
			c.dropped = max(c.dropped, p.Through)
		}
		switch {
		case e.Type == ledger.TypePostFetched:
			if ledger.Seq(e.Post) != e.Seq {
				c.problem(key, nil, "PostFetched of post %d", e.Post)
			}
			c.expected[keyPost]++
			return c.wantFetched(e)
		case e.Post != 0:
			return c.want(postIdxKey(e.Post, e.Seq), []byte{}, "index of a post's events")
		case e.Source != "":
			return c.want(srcIdxKey(e.Source, e.Seq), []byte{}, "index of a source's events")
		}
		return nil
	})
}

// wantFetched: a post has its record; what is in it is checked later.
func (c *checker) wantFetched(e ledger.Event) error {
	_, err := c.txn.Get(postKey(e.Post))
	if err != nil && !errors.Is(err, badger.ErrKeyNotFound) {
		return fmt.Errorf("post %d: %w", e.Post, err)
	}
	if err != nil {
		c.expected[keyPost]--
		c.problem(postKey(e.Post), c.refold(e.Post), "missing: the post's record")
	}
	return nil
}

func (c *checker) sources() error {
	return c.walk(keySource, func(key, value []byte) error {
		slug := ledger.Slug(key[1:])
		c.report.Sources++
		got, err := codec.DecodeSourceState(value)
		if err != nil {
			c.problem(key, c.refoldSource(slug), "does not decode: %v", err)
			return nil
		}
		want, err := foldSource(c.txn, slug)
		if err != nil {
			c.problem(key, nil, "its events: %v", err)
			return nil
		}
		if got != want {
			c.problem(key, c.refoldSource(slug), "is %+v, its events make %+v", got, want)
		}
		return nil
	})
}

// items checks that every item leads to a post.
func (c *checker) items() error {
	return c.walk(keyItem, func(key, value []byte) error {
		c.report.Items++
		rec, err := decodeItem(value)
		if err != nil {
			c.problem(key, deleteFix(key), "does not decode: %v", err)
			return nil
		}
		return c.leads(key, rec.post)
	})
}

func (c *checker) urls() error {
	return c.walk(keyURL, func(key, value []byte) error {
		for _, p := range decodePosts(value) {
			if err := c.leads(key, p); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *checker) leads(key []byte, post ledger.PostNum) error {
	there, err := c.there(post)
	if err == nil && !there {
		c.problem(key, deleteFix(key), "leads to post %d, which is not there", post)
	}
	return err
}

// there reports whether a post was ever fetched. Its record alone may be
// missing, and its event damaged, which are problems of their own.
func (c *checker) there(post ledger.PostNum) (bool, error) {
	v, err := txnGet(c.txn, eventKey(ledger.Seq(post)))
	if errors.Is(err, errValue) {
		return true, nil
	}
	return len(v) > 0 && ledger.Type(v[0]) == ledger.TypePostFetched, err
}

// bodies checks that each text is that of an event.
func (c *checker) bodies() error {
	return c.walk(keyBody, func(key, value []byte) error {
		c.report.Texts++
		seq := ledger.Seq(seqOf(key))
		e, err := readEvent(c.txn, seq)
		if errors.Is(err, ledger.ErrNotFound) {
			c.problem(key, deleteFix(key), "no event: %v", err)
			return nil
		}
		if err != nil {
			return nil //nolint:nilerr // a damaged event is a problem of its own
		}
		text, err := c.log.texts.unpack(value, 0)
		if err != nil {
			c.problem(key, nil, "%v", err)
			return nil
		}
		switch p := e.Payload.(type) {
		case ledger.PostFetched:
			if p.NormVersion == ledger.NormVersion && ledger.IdentifyText(text, p.Item.Key) != p.ID {
				c.problem(key, nil, "the text does not hash to its post's ID")
			}
		case ledger.PostRevised:
			if ledger.Hash(ledger.IdentifyText(text, p.Key)) != p.Hash {
				c.problem(key, nil, "the text does not hash to its event's hash")
			}
		default:
			c.problem(key, deleteFix(key), "a text at a %s", e.Type)
		}
		return nil
	})
}

// others walks what is only counted, or only read.
func (c *checker) others() error {
	for _, p := range []byte{keyHash, keyVariant, keyReady, keyDelayed, keyParked, keyPostIdx, keySrcIdx, keyStore} {
		if err := c.walk(p, func(_, _ []byte) error { return nil }); err != nil {
			return err
		}
	}
	it := c.txn.NewIterator(badger.DefaultIteratorOptions)
	defer it.Close()
	known := []byte("bcdehikoprsuvxy")
	for it.Rewind(); it.Valid(); {
		k := it.Item().KeyCopy(nil)
		if bytes.IndexByte(known, k[0]) < 0 {
			c.problem(k, nil, "no key of this format")
		}
		it.Seek([]byte{k[0] + 1})
	}
	return nil
}

// counts finds keys that nothing stands behind. They are looked for one by one
// only where the counts differ.
func (c *checker) counts() {
	for _, p := range []byte{keyPost, keyHash, keyVariant, keyReady, keyDelayed, keyParked, keyPostIdx, keySrcIdx} {
		if c.found[p] > c.expected[p] {
			c.strays(p, c.found[p]-c.expected[p])
		}
	}
}
