// Package badgerlog is the ledger's engine on BadgerDB: the log, the queue and
// their indexes in one folder that one process holds.
//
// DESIGN.md tells how it works and why, FORMAT.md what its bytes mean.
package badgerlog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	badger "github.com/dgraph-io/badger/v4"

	"vesti.nixg.ru/ledger"
)

// Log is an open store. Its methods are safe for concurrent use; after Close
// they return ledger.ErrClosed.
type Log struct {
	opts     Options
	db       *badger.DB
	lock     *os.File
	texts    *texts
	metrics  *metrics
	appender *appender
	queue    *dispenser
	snapshot snapshot
	head     head
	space    space
	checked  checked // of maintenance, and of Close after it

	epoch uint64

	use     sync.RWMutex // held shared by whoever reads db, so that Close can wait
	closed  bool
	closing atomic.Bool // long work is to end

	background sync.WaitGroup
	stop       context.CancelFunc

	faultMu sync.Mutex
	faulty  error
}

// Open opens the store in o.Dir, or makes one. It returns an error matching
// ledger.ErrLocked while another process has it, ledger.ErrNewer for a format
// of a later version, ledger.ErrReadOnly for a folder that cannot be written,
// ledger.ErrNoSpace for a disk without the room that opening takes.
// Claims of the process that had it before are void: their posts can be claimed
// again. ctx ends an upgrade, which goes on with the next Open.
func Open(ctx context.Context, o Options) (*Log, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	lock, err := lockFolder(ctx, o.Dir)
	if err != nil {
		return nil, err
	}
	// Whoever restores into this folder has its lock: this is what a kill has left.
	if err := os.RemoveAll(o.Dir + restoringExt); err != nil {
		return nil, errors.Join(folderError(o.Dir, err), lock.Close())
	}
	l, err := open(ctx, o)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	l.lock = lock
	l.start()
	return l, nil
}

// open opens Badger and reads what the engine needs to know. Badger panics over
// some damage, and the tables are not checked whole each time.
func open(ctx context.Context, o Options) (l *Log, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.Join(fmt.Errorf("open store %s: %w", o.Dir, errDamaged), os.RemoveAll(filepath.Join(o.Dir, checkedName)))
		}
	}()
	if err := checkFull(o); err != nil {
		return nil, err
	}
	db, known, err := openBadger(o)
	if err != nil {
		return nil, err
	}
	l = &Log{opts: o, db: db, checked: known}
	if err := l.load(ctx); err != nil {
		return nil, errors.Join(err, closeBadger(db))
	}
	return l, nil
}

func (l *Log) load(ctx context.Context) error {
	var err error
	if l.texts, err = newTexts(); err != nil {
		return err
	}
	l.metrics = newMetrics(l)
	if err := l.putBackAside(); err != nil {
		return err
	}
	if err := l.checkFormat(ctx); err != nil {
		return err
	}
	if l.epoch, err = l.nextEpoch(); err != nil {
		return err
	}
	var last ledger.Seq
	var waiting int
	var cursors []byte
	err = l.db.View(func(txn *badger.Txn) error {
		last = lastSeq(txn)
		waiting = countPrefix(txn, []byte{keyDelayed})
		cursors, err = txnGet(txn, []byte(controlCursor))
		return err
	})
	if err != nil {
		return fmt.Errorf("read the store's state: %w", err)
	}
	l.queue = newDispenser(l.db, l.epoch, waiting, cursors)
	l.appender = newAppender(l, last)
	l.head.seq.Store(uint64(last))
	l.space.look(l.opts)
	return l.metrics.register(l)
}

// nextEpoch counts this opening, durably: it is what makes old claims void.
func (l *Log) nextEpoch() (uint64, error) {
	var epoch uint64
	err := l.db.Update(func(txn *badger.Txn) error {
		b, err := txnGet(txn, []byte(controlEpoch))
		if err != nil {
			return err
		}
		if len(b) == 8 {
			epoch = binary.BigEndian.Uint64(b)
		}
		epoch++
		return txn.Set([]byte(controlEpoch), binary.BigEndian.AppendUint64(nil, epoch))
	})
	if err != nil {
		return 0, fmt.Errorf("count the opening: %w", err)
	}
	return epoch, nil
}

func lastSeq(txn *badger.Txn) ledger.Seq {
	it := txn.NewIterator(badger.IteratorOptions{Reverse: true, Prefix: []byte{keyEvent}})
	defer it.Close()
	it.Seek(key8(keyEvent, 1<<64-1))
	if !it.Valid() {
		return 0
	}
	return ledger.Seq(seqOf(it.Item().Key()))
}

func countPrefix(txn *badger.Txn, prefix []byte) int {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: prefix})
	defer it.Close()
	n := 0
	for it.Rewind(); it.Valid(); it.Next() {
		n++
	}
	return n
}

func (l *Log) start() {
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	go l.appender.run()
	l.background.Go(func() { l.tick(ctx) })
	if l.opts.GCInterval > 0 {
		l.background.Go(func() { l.maintain(ctx) })
	}
}

// Close ends all claims, waits for what was accepted and closes the store. Its
// posts in hand can be claimed again after the next Open. A second Close does
// nothing.
func (l *Log) Close() error {
	l.closing.Store(true)
	l.use.Lock()
	if l.closed {
		l.use.Unlock()
		return nil
	}
	l.closed = true
	l.use.Unlock()

	l.stop()
	l.queue.close()
	l.head.close()
	l.background.Wait()
	l.endClaims()
	l.appender.stop()
	l.snapshot.close()
	l.texts.close()
	l.metrics.close()
	return errors.Join(l.closeFiles(), l.lock.Close())
}

// closeFiles closes Badger. On a full disk it leaves its files as a kill would:
// closing them would write the tables in memory to mapped files, where a full
// disk is no error but ends the process. The log has what is in them.
func (l *Log) closeFiles() error {
	if err := checkFull(l.opts); err != nil {
		l.opts.Logger.Warn("the store is left as it is, to be put in order when it is opened next", "error", err)
		return l.db.Sync() //nolint:wrapcheck // names the file
	}
	if err := closeBadger(l.db); err != nil {
		return err
	}
	if l.Err() == nil {
		_ = l.noteSound() // where it fails the next opening checks everything
	}
	return nil
}

// endClaims takes the claims of a process that closes in good order off their
// records: only those that are left when it dies count against their posts.
func (l *Log) endClaims() {
	for _, h := range l.queue.all() {
		err := l.appender.submit(context.Background(), one(0, func(g *group) error {
			rec, err := g.post(h.place.post)
			if err != nil || rec.claim != h.claim {
				return err
			}
			after := rec
			after.claim = 0
			return g.putPost(rec, after)
		}))
		if err != nil {
			return
		}
	}
}

// acquire keeps the store open until release is called.
func (l *Log) acquire() (release func(), err error) {
	l.use.RLock()
	if l.closed {
		l.use.RUnlock()
		return nil, ledger.ErrClosed
	}
	return l.use.RUnlock, nil
}

// view runs f on a consistent snapshot of the newest state.
func (l *Log) view(ctx context.Context, f func(*badger.Txn) error) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	release, err := l.acquire()
	if err != nil {
		return err
	}
	defer release()
	return l.db.View(f) //nolint:wrapcheck // f's own error
}

func (l *Log) now() time.Time { return l.opts.Now() }

// fault records what ended the engine's work.
func (l *Log) fault(err error) {
	l.faultMu.Lock()
	defer l.faultMu.Unlock()
	if l.faulty == nil {
		l.faulty = err
		l.opts.Logger.Error("ledger stopped", "error", err)
		l.queue.close() // whoever waits for work hears of it
	}
}

// unreadable makes known that something stored is damaged where the work goes on
// without it.
func (l *Log) unreadable(err error) {
	l.metrics.unreadable.Inc()
	l.opts.Logger.Error("stored value left out, \"vesti verify\" lists what is damaged", "error", err)
}

// Err returns what ended the engine's work for good, such as a commit that
// failed: the store must then be closed and opened again. It is nil while all
// is well.
func (l *Log) Err() error {
	l.faultMu.Lock()
	defer l.faultMu.Unlock()
	return l.faulty
}

// snapshot is a view of the store that many claims share, since opening one
// waits for the commit that runs. It must not grow old, however much there is to
// claim of what it has: Badger remembers the keys of every commit that is newer
// than the oldest open view, looks through them at each further one, and keeps
// what was overwritten and deleted since. Each tick closes it.
type snapshot struct {
	mu   sync.RWMutex
	txn  *badger.Txn
	head ledger.Seq
}

// view runs f on a view that has at least the event upTo. With fresh it is one
// of the present.
func (s *snapshot) view(l *Log, upTo ledger.Seq, fresh bool, f func(*badger.Txn) error) error {
	if !fresh {
		s.mu.RLock()
		if s.txn != nil && s.head >= upTo {
			defer s.mu.RUnlock()
			return f(s.txn)
		}
		s.mu.RUnlock()
	}
	s.mu.Lock()
	if fresh || s.txn == nil || s.head < upTo {
		s.renew(l)
	}
	s.mu.Unlock()
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.txn == nil { // let go of meanwhile
		return l.db.View(f) //nolint:wrapcheck // f's own error
	}
	return f(s.txn)
}

func (s *snapshot) renew(l *Log) {
	if s.txn != nil {
		s.txn.Discard()
	}
	s.head = l.head.get()
	s.txn = l.db.NewTransaction(false)
}

// close lets go of the view, so that what it holds can be cleaned up.
func (s *snapshot) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.txn != nil {
		s.txn.Discard()
		s.txn = nil
	}
}
