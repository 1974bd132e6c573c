package queue

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"sync"
	"time"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/projections"
)

// The rows of the table: a post's state, the days' decisions, and nothing else.
// The counters are sums over states, kept in memory and added up at open.
const (
	rowState  = 's' // + number: a post's state
	rowBucket = 'd' // + quarter of an hour: first final decisions in it
)

// quarter is the width of the buckets that decisions are counted in. Every
// zone's midnight falls on a multiple of it, so that a change of the configured
// zone changes what "today" is and nothing else.
const quarter = 15 * 60 // seconds

// tally is the sums over all posts' states.
type tally struct {
	pending    int
	parked     int
	classified int
	byLane     [ledger.LaneCount]int
	byStage    [ledger.StageCount]int
	byCause    map[ledger.Cause]int
	decided    map[int64]int // by quarter of an hour
	waiting    waiting
}

// fold is one generation of the projection.
type fold struct {
	*projections.Table

	mu    sync.RWMutex // guards tally
	tally tally
}

func newFold(table *projections.Table) *fold {
	return &fold{Table: table, tally: tally{
		byCause: map[ledger.Cause]int{}, decided: map[int64]int{}, waiting: newWaiting(),
	}}
}

// load adds up what is stored.
func (f *fold) load(ctx context.Context) error {
	return f.Table.View(ctx, func(tx ledger.Tx) error {
		err := tx.Scan([]byte{rowState}, nil, func(key, value []byte) (bool, error) {
			d := projections.NewDecoder(value)
			state := d.State()
			f.tally.count(postOf(key), ledger.PostState{}, state)
			return true, d.Err()
		})
		if err != nil {
			return err
		}
		return tx.Scan([]byte{rowBucket}, nil, func(key, value []byte) (bool, error) {
			d := projections.NewDecoder(value)
			f.tally.decided[int64(binary.BigEndian.Uint64(key[1:]))] = int(d.Uint())
			return true, d.Err()
		})
	})
}

// Close implements projections.Fold.
func (f *fold) Close() error { return nil }

// change is what a batch made of one post.
type change struct{ before, after ledger.PostState }

// Apply implements projections.Fold.
func (f *fold) Apply(ctx context.Context, events []ledger.Event, through ledger.Seq) error {
	if !concerns(events) {
		return f.Table.Pass(ctx, through)
	}
	var changes map[ledger.PostNum]change
	var decided map[int64]int
	err := f.Table.Apply(ctx, through, func(tx ledger.Tx) error {
		var err error
		if changes, decided, err = foldEvents(tx, events); err != nil {
			return err
		}
		for num, c := range changes {
			var e projections.Encoder
			e.State(c.after)
			if err := tx.Set(stateKey(num), e.Bytes()); err != nil {
				return err
			}
		}
		f.mu.RLock()
		defer f.mu.RUnlock()
		for bucket, n := range decided {
			var e projections.Encoder
			e.Uint(uint64(f.tally.decided[bucket] + n))
			if err := tx.Set(bucketKey(bucket), e.Bytes()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for num, c := range changes {
		f.tally.count(num, c.before, c.after)
	}
	for bucket, n := range decided {
		f.tally.decided[bucket] += n
	}
	return nil
}

func concerns(events []ledger.Event) bool {
	for _, e := range events {
		if e.Type.OfPost() {
			return true
		}
	}
	return false
}

// foldEvents takes the states of the posts that events are about, as they are
// stored, through the events. An event that may not follow changes nothing.
func foldEvents(tx ledger.Tx, events []ledger.Event) (map[ledger.PostNum]change, map[int64]int, error) {
	changes := map[ledger.PostNum]change{}
	decided := map[int64]int{}
	for _, e := range events {
		if !e.Type.OfPost() {
			continue
		}
		c, seen := changes[e.Post]
		if !seen {
			var err error
			if c.before, err = storedState(tx, e.Post); err != nil {
				return nil, nil, err
			}
			c.after = c.before
		}
		next, err := c.after.Apply(e)
		if err != nil {
			continue
		}
		if p, ok := e.Payload.(ledger.PostClassified); ok && !p.Replay && c.after.Decided.IsZero() && !next.Decided.IsZero() {
			decided[bucketOf(e.At)]++
		}
		c.after = next
		changes[e.Post] = c
	}
	return changes, decided, nil
}

func storedState(tx ledger.Tx, num ledger.PostNum) (ledger.PostState, error) {
	v, err := tx.Get(stateKey(num))
	if errors.Is(err, ledger.ErrNotFound) {
		return ledger.PostState{}, nil
	}
	if err != nil {
		return ledger.PostState{}, err
	}
	d := projections.NewDecoder(v)
	return d.State(), d.Err()
}

// counts returns what the fold knows of the queue at now.
func (f *fold) counts(now time.Time) Counts {
	f.mu.RLock()
	defer f.mu.RUnlock()
	t := &f.tally
	c := Counts{
		Pending: t.pending, Parked: t.parked, Classified: t.classified, ByLane: t.byLane, ByStage: t.byStage,
		ParkedByCause: maps.Clone(t.byCause), OldestPending: t.waiting.oldest(),
	}
	year, month, day := now.Date()
	from := bucketOf(time.Date(year, month, day, 0, 0, 0, 0, now.Location()))
	to := bucketOf(time.Date(year, month, day+1, 0, 0, 0, 0, now.Location()))
	for b := from; b < to; b++ {
		c.DoneToday += t.decided[b]
	}
	return c
}

// count takes a post from one state to another.
func (t *tally) count(num ledger.PostNum, before, after ledger.PostState) {
	t.add(before, -1)
	t.add(after, 1)
	t.waiting.set(num, after)
}

func (t *tally) add(s ledger.PostState, by int) {
	switch s.Status {
	case ledger.StatusPending:
		t.pending += by
		if int(s.Lane) < len(t.byLane) {
			t.byLane[s.Lane] += by
		}
		if int(s.Stage) < len(t.byStage) {
			t.byStage[s.Stage] += by
		}
	case ledger.StatusParked:
		t.parked += by
		if t.byCause[s.Cause] += by; t.byCause[s.Cause] == 0 {
			delete(t.byCause, s.Cause)
		}
	case ledger.StatusClassified:
		t.classified += by
	case ledger.StatusNone:
	}
}

func bucketOf(t time.Time) int64 {
	s := t.Unix()
	return (s - (s%quarter+quarter)%quarter) / quarter
}

func stateKey(num ledger.PostNum) []byte {
	return binary.BigEndian.AppendUint64([]byte{rowState}, uint64(num))
}

func bucketKey(b int64) []byte { return binary.BigEndian.AppendUint64([]byte{rowBucket}, uint64(b)) }

func postOf(key []byte) ledger.PostNum { return ledger.PostNum(binary.BigEndian.Uint64(key[1:])) }
