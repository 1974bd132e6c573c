package badgerlog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	badger "github.com/dgraph-io/badger/v4"

	"vesti.nixg.ru/ledger"
)

// The appender is the only writer of events and of what is derived from them.
// It takes requests in the order in which they were made, runs as many as wait
// inside one Badger transaction, commits it (with one sync, where the store is
// durable) and answers. What a request reads inside the transaction decides:
// one whose precondition does not hold is refused alone, and the group goes on.

const (
	queueLen    = 4096 // requests that wait before their callers do
	maxGroup    = 1024 // steps in one transaction
	groupBytes  = 1 << 20
	stepReserve = 1 << 10 // what a step writes beside its own payload, at most about
)

// request is one call's work: one or more steps, each of which is all or
// nothing. Steps may run again when their group is repeated.
type request struct {
	steps int
	// size estimates the bytes that step i writes outside the files of texts.
	size func(i int) int
	// step reads, decides, then writes. An error refuses the step; it must then
	// have written nothing.
	step func(g *group, i int) error
	// done hears once all steps are durable, with the first error of any. It runs
	// on the appender's goroutine and must not block.
	done func(error)

	err error // of the steps that are durable
}

// appender runs the requests. Its goroutine ends when stop is called and all
// requests that were accepted are answered.
type appender struct {
	log      *Log
	requests chan *request
	ended    chan struct{}

	mu     sync.RWMutex // guards closed and sends on requests
	closed bool

	seq   ledger.Seq
	hints time.Time // when the cursors were last written
	batch []stepRef
	// inHand has the records of claimed posts as they are in the store: only the
	// appender writes records, and what is claimed will be written again soon.
	inHand map[ledger.PostNum]postRecord

	// The memory of the running group. Records are large, and groups follow each other.
	posts   map[ledger.PostNum]postRecord
	effects []effect
}

// stepRef is a step of a request, with its result in the running group.
type stepRef struct {
	req *request
	i   int
	err error
}

func newAppender(l *Log, last ledger.Seq) *appender {
	return &appender{
		log: l, requests: make(chan *request, queueLen), ended: make(chan struct{}), seq: last,
		inHand: make(map[ledger.PostNum]postRecord), posts: make(map[ledger.PostNum]postRecord),
	}
}

// submit queues a request. It waits while the queue is full.
func (a *appender) submit(ctx context.Context, r *request) error {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if a.closed {
		return ledger.ErrClosed
	}
	select {
	case a.requests <- r:
		return nil
	default:
	}
	select {
	case a.requests <- r:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// do queues a request of one step and waits for it. When ctx ends first the
// step may still be carried out.
func (a *appender) do(ctx context.Context, size int, step func(g *group) error) error {
	done := make(chan error, 1)
	r := one(size, step)
	r.done = func(err error) { done <- err }
	if err := a.submit(ctx, r); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// one makes a request of a single step that nobody waits for.
func one(size int, step func(g *group) error) *request {
	return &request{
		steps: 1,
		size:  func(int) int { return size },
		step:  func(g *group, _ int) error { return step(g) },
		done:  func(error) {},
	}
}

func (a *appender) stop() {
	a.mu.Lock()
	if !a.closed {
		a.closed = true
		close(a.requests)
	}
	a.mu.Unlock()
	<-a.ended
}

func (a *appender) run() {
	defer close(a.ended)
	for r := range a.requests {
		a.take(r)
		bytes := a.bytes()
		for len(a.batch) < maxGroup && bytes < groupBytes {
			more := a.poll()
			if more == nil {
				break
			}
			bytes += a.take(more)
		}
		a.commitAll()
	}
}

// poll returns a request that waits, or nil.
func (a *appender) poll() *request {
	select {
	case r, ok := <-a.requests:
		if ok {
			return r
		}
	default:
	}
	return nil
}

// take adds a request's steps to the batch and returns their size.
func (a *appender) take(r *request) int {
	bytes := 0
	for i := range r.steps {
		a.batch = append(a.batch, stepRef{req: r, i: i})
		bytes += r.size(i) + stepReserve
	}
	if r.steps == 0 {
		r.done(nil)
	}
	return bytes
}

func (a *appender) bytes() int {
	n := 0
	for _, s := range a.batch {
		n += s.req.size(s.i) + stepReserve
	}
	return n
}

// commitAll runs the batch in as many groups as its size asks for.
func (a *appender) commitAll() {
	rest := a.batch
	for len(rest) > 0 {
		n, bytes := 0, 0
		for n < len(rest) && n < maxGroup {
			bytes += rest[n].req.size(rest[n].i) + stepReserve
			if n > 0 && bytes > groupBytes {
				break
			}
			n++
		}
		a.commit(rest[:n])
		rest = rest[n:]
	}
	clear(a.batch)
	a.batch = a.batch[:0]
}

// commit runs steps in one transaction and answers the requests that end in it.
func (a *appender) commit(steps []stepRef) {
	err := a.log.Err()
	if err == nil {
		err = a.runGroup(steps)
	}
	if errors.Is(err, badger.ErrTxnTooBig) && len(steps) > 1 {
		half := len(steps) / 2
		a.commit(steps[:half])
		a.commit(steps[half:])
		return
	}
	for _, s := range steps {
		if s.err == nil {
			s.err = err
		}
		if s.req.err == nil {
			s.req.err = s.err
		}
		if s.i == s.req.steps-1 {
			s.req.done(s.req.err)
		}
	}
}

func (a *appender) runGroup(steps []stepRef) error {
	started := time.Now()
	if err := checkFull(a.log.opts); err != nil {
		return err
	}
	for {
		g := a.begin()
		err := g.run(steps)
		if err == nil {
			err = a.finish(g)
		}
		g.txn.Discard()
		a.effects = g.effects
		if errors.Is(err, badger.ErrConflict) {
			a.log.metrics.conflicts.Inc()
			continue // another namespace's writer touched the same fingerprint: run again
		}
		if err == nil {
			a.log.metrics.group(len(steps), time.Since(started))
		}
		return err
	}
}

func (a *appender) begin() *group {
	now := a.log.now()
	clear(a.posts)
	return &group{
		log:   a.log,
		txn:   a.log.db.NewTransaction(true),
		at:    time.UnixMicro(now.UnixMicro()).UTC(),
		last:  a.seq,
		posts: a.posts, effects: a.effects[:0],
	}
}

// finish commits g and makes its outcome known in memory.
func (a *appender) finish(g *group) error {
	if a.log.now().Sub(a.hints).Abs() >= cursorEvery {
		a.hints = a.log.now()
		if err := g.set([]byte(controlCursor), a.log.queue.cursors()); err != nil {
			return err
		}
	}
	if !g.wrote {
		a.log.queue.settle(g.effects, g.last)
		return nil
	}
	failpoint("commit.before")
	if err := g.txn.Commit(); err != nil {
		if errors.Is(err, badger.ErrConflict) || errors.Is(err, badger.ErrTxnTooBig) {
			return err //nolint:wrapcheck // told apart by the caller
		}
		// Badger may show half of the group now, and only a fresh open puts that right.
		err = a.explain(err)
		a.log.fault(err)
		return err
	}
	failpoint("commit.after")
	a.seq = g.last
	a.keep(g.posts)
	a.log.head.advance(g.last)
	a.log.queue.settle(g.effects, g.last)
	failpoint("settled")
	for _, f := range g.counted {
		f()
	}
	return nil
}

// keep brings the records of claimed posts up to date.
func (a *appender) keep(written map[ledger.PostNum]postRecord) {
	for num, rec := range written {
		if a.log.queue.live(rec.claim) {
			a.inHand[num] = rec
		} else {
			delete(a.inHand, num)
		}
	}
}

// explain says what a failed commit means.
func (a *appender) explain(err error) error {
	if errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EACCES) {
		err = fmt.Errorf("%w: %w", ledger.ErrReadOnly, err)
	}
	if errors.Is(err, syscall.ENOSPC) {
		err = fmt.Errorf("%w: %w", ledger.ErrNoSpace, err)
	}
	return fmt.Errorf("commit to %s failed, the store must be opened again: %w", a.log.opts.Dir, err)
}

// group is one transaction of the appender.
type group struct {
	log     *Log
	txn     *badger.Txn
	at      time.Time
	last    ledger.Seq                    // the newest Seq, given out in this group or before
	posts   map[ledger.PostNum]postRecord // as written in this group
	effects []effect
	counted []func() // what metrics learn once the group is durable
	wrote   bool
}

// run runs the steps. An error of Badger's ends the group; a step's own error
// is the step's alone.
func (g *group) run(steps []stepRef) error {
	for i := range steps {
		s := &steps[i]
		s.err = s.req.step(g, s.i)
		if broken, ok := errors.AsType[*storeError](s.err); ok {
			err := broken.err
			s.err = nil
			return err
		}
	}
	return nil
}

// storeError is a write that Badger refused, which concerns the whole group. A
// read that fails is the affair of the step that needs it.
type storeError struct{ err error }

func (e *storeError) Error() string { return e.err.Error() }
func (e *storeError) Unwrap() error { return e.err }

// get returns the value of key, nil where there is none. The slice is the
// transaction's and must not be changed or kept.
func (g *group) get(key []byte) ([]byte, error) {
	return txnGet(g.txn, key)
}

// txnGet returns a copy of the value of key, nil where there is none.
func txnGet(txn *badger.Txn, key []byte) ([]byte, error) {
	item, err := txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", key, err)
	}
	v, err := copyValue(item)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", printKey(key), err)
	}
	return v, nil
}

// set writes key. Neither slice may be changed afterwards.
func (g *group) set(key, value []byte) error {
	g.wrote = true
	if err := g.txn.Set(key, value); err != nil {
		return &storeError{err}
	}
	return nil
}

func (g *group) delete(key []byte) error {
	g.wrote = true
	if err := g.txn.Delete(key); err != nil {
		return &storeError{err}
	}
	return nil
}

// count has f run once the group is durable.
func (g *group) count(f func()) { g.counted = append(g.counted, f) }
