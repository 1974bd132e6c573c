package badgerlog

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"

	badger "github.com/dgraph-io/badger/v4"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/codec"
)

// VerifyOptions say what Verify does.
type VerifyOptions struct {
	// Repair puts right what can be had from the events: every index, every folded
	// state. Events and texts that are damaged are only reported.
	Repair   bool
	Progress Progress
}

// VerifyReport is what Verify counted and found.
type VerifyReport struct {
	Head       ledger.Seq `json:"head"`
	Events     int        `json:"events"`
	Unknown    int        `json:"unknown"` // events that this version cannot read, kept as they are
	Posts      int        `json:"posts"`
	Pending    int        `json:"pending"` // those in a worker's hands among them
	Classified int        `json:"classified"`
	Parked     int        `json:"parked"`
	Expired    int        `json:"expired"` // among the classified and parked
	Sources    int        `json:"sources"`
	Items      int        `json:"items"`
	Texts      int        `json:"texts"`
	Problems   int        `json:"problems"`
	Repaired   int        `json:"repaired"`
	// Found are the first problems, up to 100.
	Found []Problem `json:"found,omitempty"`
}

// OK reports whether nothing is wrong, or no longer.
func (r VerifyReport) OK() bool { return r.Problems == r.Repaired }

// Problem is something that does not hold.
type Problem struct {
	Key      string `json:"key"`
	What     string `json:"what"`
	Repaired bool   `json:"repaired"`
}

// String returns the problem as a line.
func (p Problem) String() string {
	if p.Repaired {
		return p.Key + ": " + p.What + " (repaired)"
	}
	return p.Key + ": " + p.What
}

const maxFound = 100

// Verify checks every invariant of the store on one consistent view of it, and
// returns what it found; the error is for a check that could not be carried
// out. The store can be used meanwhile. It takes about half a minute for a
// million posts.
func (l *Log) Verify(ctx context.Context, o VerifyOptions) (VerifyReport, error) {
	c := &checker{log: l, ctx: ctx, progress: o.Progress}
	if c.progress == nil {
		c.progress = func(string, uint64, uint64) {}
	}
	err := l.view(ctx, func(txn *badger.Txn) error {
		c.txn = txn
		return c.run()
	})
	if err == nil && o.Repair && len(c.repairs) > 0 {
		err = c.repair()
	}
	if err != nil {
		return c.report, fmt.Errorf("verify: %w", err)
	}
	return c.report, nil
}

// checker walks the key space in order of its prefixes. Where it expects a key
// because of another it looks it up, and it counts what it expects of each kind:
// equal counts then say that nothing else is there.
type checker struct {
	log      *Log
	ctx      context.Context //nolint:containedctx // of the one call that the checker is made for
	txn      *badger.Txn
	progress Progress
	report   VerifyReport
	repairs  []repair

	expected map[byte]int // keys that follow from events and records, by prefix
	found    map[byte]int
	cursors  [ledger.StageCount][ledger.LaneCount]ledger.Seq
	dropped  ledger.Seq // texts of older revisions may be gone up to here
	steps    uint64
}

// repair puts one problem right, in the appender's transaction.
type repair struct {
	problem int // its place in Found; -1 beyond
	step    func(g *group) error
}

func (c *checker) run() error {
	c.expected, c.found = make(map[byte]int), make(map[byte]int)
	c.report.Head = lastSeq(c.txn)
	if err := c.control(); err != nil {
		return err
	}
	for _, check := range []func() error{c.events, c.posts, c.sources, c.items, c.urls, c.bodies, c.others} {
		if err := check(); err != nil {
			return err
		}
	}
	c.counts()
	c.progress("verify", c.steps, c.steps)
	return nil
}

// problem notes what is wrong, and how it can be put right, nil where it cannot.
func (c *checker) problem(key []byte, fix func(g *group) error, format string, args ...any) {
	place := -1
	if len(c.report.Found) < maxFound {
		place = len(c.report.Found)
		c.report.Found = append(c.report.Found, Problem{Key: printKey(key), What: fmt.Sprintf(format, args...)})
	}
	c.report.Problems++
	if fix != nil {
		c.repairs = append(c.repairs, repair{place, fix})
	}
}

// printKey shows a key as FORMAT.md writes it.
func printKey(k []byte) string {
	if len(k) == 0 {
		return "store"
	}
	switch k[0] {
	case keyEvent, keyBody, keyPost:
		if len(k) == 9 {
			return fmt.Sprintf("%c/%d", k[0], seqOf(k))
		}
	case keyControl, keySource:
		return string(k[:1]) + "/" + string(k[1:])
	}
	return fmt.Sprintf("%c/%x", k[0], k[1:])
}

// walk calls f with each key of a prefix and its value.
func (c *checker) walk(prefix byte, f func(key, value []byte) error) error {
	it := c.txn.NewIterator(badger.IteratorOptions{Prefix: []byte{prefix}})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		if err := context.Cause(c.ctx); err != nil {
			return err
		}
		if c.log.closing.Load() {
			return ledger.ErrClosed
		}
		if c.steps++; c.steps%10000 == 0 {
			c.progress("verify", c.steps, 0)
		}
		key := it.Item().KeyCopy(nil)
		value, err := it.Item().ValueCopy(nil)
		if err != nil {
			c.problem(key, nil, "cannot be read: %v", err)
			continue
		}
		c.found[prefix]++
		if err := f(key, value); err != nil {
			return err
		}
	}
	return nil
}

// want expects a key with a value; fix writes it where it is not so.
func (c *checker) want(key, value []byte, why string) error {
	c.expected[key[0]]++
	got, err := txnGet(c.txn, key)
	if err != nil {
		c.problem(key, setFix(key, value), "cannot be read: %v", err)
		return nil
	}
	switch {
	case got == nil:
		c.expected[key[0]]--
		c.problem(key, setFix(key, value), "missing: %s", why)
	case !bytes.Equal(got, value):
		c.problem(key, setFix(key, value), "has %x, want %x: %s", got, value, why)
	}
	return nil
}

func setFix(key, value []byte) func(*group) error {
	return func(g *group) error { return g.set(key, value) }
}

func deleteFix(key []byte) func(*group) error {
	return func(g *group) error { return g.delete(key) }
}

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
	v, err := txnGet(c.txn, postKey(e.Post))
	if err != nil {
		return err
	}
	if v == nil {
		c.expected[keyPost]--
		c.problem(postKey(e.Post), c.refold(e.Post), "missing: the post's record")
	}
	return nil
}

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
// missing, which is a problem of its own.
func (c *checker) there(post ledger.PostNum) (bool, error) {
	v, err := txnGet(c.txn, eventKey(ledger.Seq(post)))
	return len(v) > 0 && ledger.Type(v[0]) == ledger.TypePostFetched, err
}

// bodies checks that each text is that of an event.
func (c *checker) bodies() error {
	return c.walk(keyBody, func(key, value []byte) error {
		c.report.Texts++
		seq := ledger.Seq(seqOf(key))
		e, err := readEvent(c.txn, seq)
		if err != nil {
			c.problem(key, deleteFix(key), "no event: %v", err)
			return nil
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
	for _, p := range []byte{keyHash, keyVariant, keyReady, keyDelayed, keyParked, keyPostIdx, keySrcIdx} {
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
