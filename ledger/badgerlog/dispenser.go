package badgerlog

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"time"

	badger "github.com/dgraph-io/badger/v4"

	"vesti.nixg.ru/ledger"
)

const (
	refillLen   = 2048 // entries read from a queue at a time
	bufferLimit = 4096 // entries a queue holds in memory before it leaves new ones on disk
	cursorEvery = 500 * time.Millisecond
	// fairShare: a lane with work that was passed over this often goes first. With
	// LaneCount lanes at most LaneCount-1 are due at once, so that each gets one
	// claim in 16.
	fairShare = 16 - ledger.LaneCount
)

// dispenser hands out what can be claimed. What it knows is a part of what the
// keys below keyReady say, read ahead in their order; the appender tells it
// what changed, after each commit. Whether a post can really be claimed is
// decided by its record, inside the appender's transaction.
type dispenser struct {
	db *badger.DB

	reading sync.Mutex // held by whoever reads ahead

	mu      sync.Mutex
	queues  [ledger.StageCount][ledger.LaneCount]queue
	inHand  map[ledger.PostNum]*hand
	passed  map[uint8]*[ledger.LaneCount]int // per set of stages: how often a lane with work was passed over
	waiters []*waiter
	waiting int        // posts whose delay is not over
	changed ledger.Seq // a post in a queue was last changed in place here
	epoch   uint64
	tokens  uint64
	closed  bool
}

// queue is the part of one queue that is in memory: all of its entries up to
// cursor that nobody has in hand, and of those after it none.
type queue struct {
	ready    []entry    // in the order of their Seq
	cursor   ledger.Seq // entries up to it were read or offered
	complete bool       // no entry is after cursor
}

// entry is a post that can be claimed.
type entry struct {
	seq   ledger.Seq
	post  ledger.PostNum
	ahead *ahead // what was read ahead for it; nil for nothing
}

// hand is a post in a worker's hands.
type hand struct {
	place  place
	claim  token
	lease  time.Time
	worker string
	ending bool       // its lease is over and the appender was told
	moved  place      // where it was offered anew meanwhile; zero for nowhere
	asOf   ledger.Seq // what it is granted on must be no older
	ahead  *ahead
}

// waiter is a caller of Claim that waits for work of some stages.
type waiter struct {
	stages uint8
	woken  chan struct{}
}

func newDispenser(db *badger.DB, epoch uint64, waiting int, cursors []byte) *dispenser {
	d := &dispenser{
		db: db, epoch: epoch, waiting: waiting,
		inHand: make(map[ledger.PostNum]*hand),
		passed: make(map[uint8]*[ledger.LaneCount]int),
	}
	for i, q := range queues() {
		if len(cursors) >= 8*(i+1) {
			d.queue(q).cursor = ledger.Seq(binary.BigEndian.Uint64(cursors[8*i:]))
		}
	}
	return d
}

func (d *dispenser) queue(q queueID) *queue { return &d.queues[q.stage][q.lane] }

// stageSet makes a bit set of stages; none means the first.
func stageSet(stages []ledger.Stage) uint8 {
	if len(stages) == 0 {
		return 1 << ledger.StageFirst
	}
	var set uint8
	for _, s := range stages {
		set |= 1 << s
	}
	return set
}

// next grants a post, oldest of the lane whose turn it is. ok is false when
// there is none.
func (d *dispenser) next(stages uint8, worker string, lease time.Time) (ledger.PostNum, hand, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return 0, hand{}, false, ledger.ErrClosed
	}
	for {
		q, ok, err := d.turn(stages)
		if err != nil || !ok {
			return 0, hand{}, false, err
		}
		e := d.queue(q).first()
		if h := d.inHand[e.post]; h != nil {
			if h.place.seq != e.seq {
				// It has moved to this place, which its holder will find out.
				h.moved = place{kind: keyReady, queue: q, seq: e.seq, post: e.post}
			}
			continue
		}
		d.tokens++
		h := hand{
			place:  place{kind: keyReady, queue: q, seq: e.seq, post: e.post},
			claim:  newToken(d.epoch, d.tokens),
			lease:  lease,
			worker: worker,
			asOf:   max(ledger.Seq(e.post), e.seq, d.changed),
			ahead:  e.ahead,
		}
		d.inHand[e.post] = &h
		return e.post, h, true, nil
	}
}

// turn returns the queue to take from.
func (d *dispenser) turn(stages uint8) (queueID, bool, error) {
	passed := d.passed[stages]
	if passed == nil {
		passed = new([ledger.LaneCount]int)
		d.passed[stages] = passed
	}
	var work [ledger.LaneCount]bool
	var oldest [ledger.LaneCount]queueID
	chosen := -1
	for l := range ledger.LaneCount {
		q, ok, err := d.oldest(stages, ledger.Lane(l))
		if err != nil {
			return queueID{}, false, err
		}
		if !ok {
			passed[l] = 0
			continue
		}
		work[l], oldest[l] = true, q
		if chosen < 0 || passed[l] >= fairShare && passed[l] > passed[chosen] {
			chosen = l
		}
	}
	if chosen < 0 {
		return queueID{}, false, nil
	}
	for l := range work {
		if work[l] {
			passed[l]++
		}
	}
	passed[chosen] = 0
	return oldest[chosen], true, nil
}

// oldest returns which of the stages' queues in a lane has the oldest entry.
func (d *dispenser) oldest(stages uint8, lane ledger.Lane) (best queueID, ok bool, err error) {
	var seq ledger.Seq
	for s := range ledger.Stage(ledger.StageCount) {
		id := queueID{s, lane}
		if stages&(1<<s) == 0 {
			continue
		}
		q := d.queue(id)
		if len(q.ready) == 0 && !q.complete {
			if err := d.refill(id); err != nil {
				return queueID{}, false, err
			}
		}
		if len(q.ready) > 0 && (!ok || q.ready[0].seq < seq) {
			best, seq, ok = id, q.ready[0].seq, true
		}
	}
	return best, ok, nil
}

// refill reads the next entries of a queue. The iterator is bound to the
// queue's prefix, else it would run on over the tombstones of the next one.
func (d *dispenser) refill(id queueID) error {
	q := d.queue(id)
	prefix := []byte{keyReady, byte(id.stage), byte(id.lane)}
	q.complete = true
	err := d.db.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: prefix, PrefetchValues: false})
		defer it.Close()
		for it.Seek(readyKey(id, q.cursor+1)); it.Valid(); it.Next() {
			if len(q.ready) >= refillLen {
				q.complete = false
				return nil
			}
			e := entry{seq: ledger.Seq(seqOf(it.Item().Key()))}
			if err := readValue(it.Item(), func(v []byte) error {
				if len(v) == 8 {
					e.post = ledger.PostNum(binary.BigEndian.Uint64(v))
				}
				return nil
			}); err != nil {
				return fmt.Errorf("read %q: %w", it.Item().Key(), err)
			}
			q.cursor = e.seq
			q.add(e)
		}
		return nil
	})
	if err != nil {
		q.complete = false
		return fmt.Errorf("read the queue: %w", err)
	}
	return nil
}

// wait queues the caller for work of some stages. The channel is closed when
// there may be some; leave must be called in any case.
func (d *dispenser) wait(stages uint8) *waiter {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := &waiter{stages: stages, woken: make(chan struct{})}
	if d.closed || d.hasWork(stages) {
		close(w.woken)
		return w
	}
	d.waiters = append(d.waiters, w)
	return w
}

// hasWork may say yes where a refill would find nothing.
func (d *dispenser) hasWork(stages uint8) bool {
	for _, id := range queues() {
		if q := d.queue(id); stages&(1<<id.stage) != 0 && (len(q.ready) > 0 || !q.complete) {
			return true
		}
	}
	return false
}

// leave ends a wait. A wake that w got and does not use goes to the next one.
func (d *dispenser) leave(w *waiter, used bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.Index(d.waiters, w); i >= 0 {
		d.waiters = slices.Delete(d.waiters, i, i+1)
		return
	}
	if !used {
		d.wake(w.stages)
	}
}

// wake wakes the first waiter that can do any of the stages.
func (d *dispenser) wake(stages uint8) {
	for i, w := range d.waiters {
		if w.stages&stages != 0 {
			close(w.woken)
			d.waiters = slices.Delete(d.waiters, i, i+1)
			return
		}
	}
}

func (d *dispenser) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for _, w := range d.waiters {
		close(w.woken)
	}
	d.waiters = nil
}

// renew gives a claim a new lease. ok is false when it is no longer in hand.
func (d *dispenser) renew(post ledger.PostNum, claim token, lease time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.inHand[post]
	if h == nil || h.claim != claim || h.ending {
		return false
	}
	h.lease = lease
	return true
}

// ended returns the claims whose lease is over at now, each once.
func (d *dispenser) ended(now time.Time) []hand {
	d.mu.Lock()
	defer d.mu.Unlock()
	var over []hand
	for _, h := range d.inHand {
		if !h.ending && now.After(h.lease) {
			h.ending = true
			over = append(over, *h)
		}
	}
	return over
}

// all returns what is in hand.
func (d *dispenser) all() []hand {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]hand, 0, len(d.inHand))
	for _, h := range d.inHand {
		all = append(all, *h)
	}
	return all
}

func (d *dispenser) gauge() ledger.QueueGauge {
	d.mu.Lock()
	defer d.mu.Unlock()
	return ledger.QueueGauge{Processing: len(d.inHand), Waiting: d.waiting}
}

// cursors is the stored form of where each queue's reading begins after an
// open: below its oldest entry that is not settled. It is a hint that saves
// reading tombstones. Entries never appear below it: what enters a queue does
// so under a new Seq.
func (d *dispenser) cursors() []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	var low [ledger.StageCount][ledger.LaneCount]ledger.Seq
	for _, id := range queues() {
		q := d.queue(id)
		low[id.stage][id.lane] = q.cursor
		if len(q.ready) > 0 {
			low[id.stage][id.lane] = min(q.cursor, q.ready[0].seq-1)
		}
	}
	for _, h := range d.inHand {
		if h.place.kind == keyReady {
			l := &low[h.place.queue.stage][h.place.queue.lane]
			*l = min(*l, h.place.seq-1)
		}
	}
	b := make([]byte, 0, 8*ledger.StageCount*ledger.LaneCount)
	for _, id := range queues() {
		b = binary.BigEndian.AppendUint64(b, uint64(low[id.stage][id.lane]))
	}
	return b
}

// add puts an entry in its place, which is mostly the end, unless it is there.
func (q *queue) add(e entry) {
	i := len(q.ready)
	if i > 0 && q.ready[i-1].seq >= e.seq {
		var there bool
		i, there = slices.BinarySearchFunc(q.ready, e.seq, func(e entry, s ledger.Seq) int { return cmp.Compare(e.seq, s) })
		if there {
			return
		}
	}
	q.ready = slices.Insert(q.ready, i, e)
}

// first takes the oldest entry.
func (q *queue) first() entry {
	e := q.ready[0]
	q.ready[0] = entry{}
	q.ready = q.ready[1:]
	return e
}
