package badgerlog

import (
	"bytes"
	"context"
	"fmt"

	badger "github.com/dgraph-io/badger/v4"

	"vesti.nixg.ru/ledger"
)

// VerifyOptions say what Verify does.
type VerifyOptions struct {
	// Repair puts right what can be had from the events: every index, every folded
	// state. It gives up what is damaged for good, so that all else can be used and
	// backed up: a post whose text is lost is parked, if it waits, and counts as one
	// whose texts have expired. Events that are damaged are only reported.
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
	if whole, err := c.files(); err != nil || !whole {
		return err
	}
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
	case keyStore:
		if namespace, key, ok := bytes.Cut(k[1:], []byte{0}); ok {
			return fmt.Sprintf("s/%s %q", namespace, key)
		}
	}
	return fmt.Sprintf("%c/%x", k[0], k[1:])
}

// walk calls f with each key of a prefix and its value.
func (c *checker) walk(prefix byte, f func(key, value []byte) error) error {
	it := c.txn.NewIterator(badger.IteratorOptions{Prefix: []byte{prefix}})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		if err := c.step(); err != nil {
			return err
		}
		key := it.Item().KeyCopy(nil)
		value, err := copyValue(it.Item())
		if err != nil {
			c.unreadable(key, err)
			continue
		}
		c.found[prefix]++
		if err := f(key, value); err != nil {
			return err
		}
	}
	return nil
}

// step counts a step, and ends the check with its caller or the store.
func (c *checker) step() error {
	if c.steps++; c.steps%10000 == 0 {
		c.progress("verify", c.steps, 0)
	}
	if c.log.closing.Load() {
		return ledger.ErrClosed
	}
	return context.Cause(c.ctx)
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
