package badgerlog

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	badger "github.com/dgraph-io/badger/v4"

	"vesti.nixg.ru/ledger"
)

// tick does what is due by time: leases that ended, delays that are over, the
// look at the disk, the sync of a relaxed store, the end of the shared view.
func (l *Log) tick(ctx context.Context) {
	t := time.NewTicker(l.opts.Tick)
	defer t.Stop()
	synced := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		l.space.look(l.opts)
		l.snapshot.close()
		l.endLeases(ctx)
		if err := l.promote(ctx); err != nil && ctx.Err() == nil {
			l.opts.Logger.Error("delayed posts", "error", err)
		}
		if l.opts.Durability == Relaxed && time.Since(synced) >= time.Second {
			synced = time.Now()
			if err := l.db.Sync(); err != nil {
				l.fault(fmt.Errorf("sync %s: %w", l.opts.Dir, err))
			}
		}
	}
}

// endLeases gives back what workers did not finish in time. It counts as an
// attempt, so that a post on which every worker hangs is parked in the end.
func (l *Log) endLeases(ctx context.Context) {
	for _, h := range l.queue.ended(l.now()) {
		message := fmt.Sprintf("the lease of worker %q ended", h.worker)
		err := l.appender.submit(ctx, one(len(message), func(g *group) error {
			rec, err := g.post(h.place.post)
			if err != nil {
				return err
			}
			p := l.failure(rec.state, ledger.Failure{Cause: ledger.CauseLease, Message: message}, g.at)
			return g.failed(rec.num, func(r postRecord) bool { return r.claim == h.claim }, h.claim, p, ledger.ActorLedger)
		}))
		if err != nil {
			return // closing
		}
		l.metrics.leases.Inc()
	}
}

// promoteBatch is how many posts come back from their delay in one go.
const promoteBatch = 512

// promote puts posts whose delay is over back into their queues, each under the
// Seq of a new event. A post that would wait longer than any delay can be, since
// the clock was ahead when it failed, is taken as due.
func (l *Log) promote(ctx context.Context) error {
	if l.queue.gauge().Waiting == 0 {
		return nil
	}
	due, err := l.due(ctx)
	if err != nil || len(due) == 0 {
		return err
	}
	done := make(chan error, 1)
	r := &request{
		steps: len(due),
		size:  func(int) int { return 0 },
		step:  func(g *group, i int) error { return g.promote(due[i]) },
		done:  func(err error) { done <- err },
	}
	if err := l.appender.submit(ctx, r); err != nil {
		return err
	}
	return <-done
}

// due is a delayed entry whose time has come.
type due struct{ key []byte }

func (l *Log) due(ctx context.Context) ([]due, error) {
	now := l.now()
	var all []due
	err := l.view(ctx, func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{keyDelayed}})
		defer it.Close()
		for it.Rewind(); it.Valid() && len(all) < promoteBatch && dueOf(it.Item().Key()) <= now.UnixMilli(); it.Next() {
			all = append(all, due{it.Item().KeyCopy(nil)})
		}
		tooFar := now.Add(2 * l.opts.RetryMax).UnixMilli()
		for it.Seek(delayedKey(tooFar, 0)); it.Valid() && len(all) < promoteBatch; it.Next() {
			all = append(all, due{it.Item().KeyCopy(nil)})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read delays: %w", err)
	}
	return all, nil
}

func (g *group) promote(d due) error {
	b, err := g.get(d.key)
	if err != nil || len(b) != 8 {
		return err // promoted by something else meanwhile
	}
	rec, err := g.post(ledger.PostNum(binary.BigEndian.Uint64(b)))
	if err != nil {
		return err
	}
	at := rec.where()
	if at.kind != keyDelayed || string(at.key()) != string(d.key) {
		return g.delete(d.key) // an entry that nothing stands behind
	}
	return g.returned(rec, ledger.PostReturned{
		Reason: ledger.ReturnDelay, Stage: rec.state.Stage, Lane: rec.state.Lane,
	}, ledger.ActorLedger)
}
