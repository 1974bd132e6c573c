package projections

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"vesti.nixg.ru/ledger"
)

const (
	// checkpointKey stands before every key of a table's rows.
	checkpointKey = "\x00checkpoint"
	// dropChunk is how many keys one transaction removes.
	dropChunk = 1000
	// lazyEvents is how many events that do not concern a table may pass before
	// its stored checkpoint moves.
	lazyEvents = 5000
)

// Stores gives the store of a namespace; an engine's Store method is one.
type Stores func(namespace string) ledger.Store

// Table is the stored side of one generation of a projection: a store with a
// checkpoint that moves in the transaction of its rows.
type Table struct {
	store      ledger.Store
	checkpoint atomic.Uint64 // applied
	stored     uint64        // on disk; touched by Apply only

	breaking sync.Once
	broken   chan struct{}
	damage   atomic.Pointer[error]
}

// OpenTable opens the table of a projection's generation.
func OpenTable(ctx context.Context, stores Stores, projection string, generation uint64) (*Table, error) {
	t := &Table{store: stores(namespace(projection, generation)), broken: make(chan struct{})}
	err := t.View(ctx, func(tx ledger.Tx) error {
		v, err := tx.Get([]byte(checkpointKey))
		switch {
		case errors.Is(err, ledger.ErrNotFound):
			return nil
		case err != nil:
			return err
		case len(v) != 8:
			return fmt.Errorf("%w: checkpoint of %d bytes", ErrDamaged, len(v))
		}
		t.stored = binary.BigEndian.Uint64(v)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("open projection %s: %w", projection, err)
	}
	t.checkpoint.Store(t.stored)
	return t, nil
}

// Checkpoint is the last event that was applied.
func (t *Table) Checkpoint() ledger.Seq { return ledger.Seq(t.checkpoint.Load()) }

// Broken implements Fragile: it is closed once a row could not be read.
func (t *Table) Broken() <-chan struct{} { return t.broken }

// Err implements Fragile.
func (t *Table) Err() error {
	if err := t.damage.Load(); err != nil {
		return *err
	}
	return nil
}

// failed takes note of an error that says that a row is damaged.
func (t *Table) failed(err error) error {
	if errors.Is(err, ledger.ErrUnreadable) {
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if !errors.Is(err, ErrDamaged) {
		return err
	}
	t.breaking.Do(func() {
		t.damage.Store(&err)
		close(t.broken)
	})
	return err
}

// View reads the rows.
func (t *Table) View(ctx context.Context, f func(ledger.Tx) error) error {
	return t.failed(t.store.View(ctx, f))
}

// Apply runs f and moves the checkpoint to through in one transaction. f may
// run more than once.
func (t *Table) Apply(ctx context.Context, through ledger.Seq, f func(ledger.Tx) error) error {
	err := t.store.Update(ctx, func(tx ledger.Tx) error {
		if err := f(tx); err != nil {
			return err
		}
		return tx.Set([]byte(checkpointKey), binary.BigEndian.AppendUint64(nil, uint64(through)))
	})
	if err != nil {
		return t.failed(err)
	}
	t.stored = uint64(through)
	t.checkpoint.Store(uint64(through))
	return nil
}

// Pass moves the checkpoint to through where no event since the last one
// concerned the table. What is stored follows every few thousand events, so
// that a quiet table costs no writes.
func (t *Table) Pass(ctx context.Context, through ledger.Seq) error {
	if uint64(through)-t.stored >= lazyEvents {
		return t.Apply(ctx, through, func(ledger.Tx) error { return nil })
	}
	t.checkpoint.Store(uint64(through))
	return nil
}

// DropTable removes a generation's rows and its checkpoint.
func DropTable(ctx context.Context, stores Stores, projection string, generation uint64) error {
	store := stores(namespace(projection, generation))
	for {
		var keys [][]byte
		err := store.View(ctx, func(tx ledger.Tx) error {
			return tx.Keys(nil, nil, func(key []byte) (bool, error) {
				keys = append(keys, append([]byte(nil), key...))
				return len(keys) < dropChunk, nil
			})
		})
		if err != nil || len(keys) == 0 {
			return err
		}
		// The checkpoint sorts first: what a crash leaves behind has none.
		err = store.Update(ctx, func(tx ledger.Tx) error {
			for _, k := range keys {
				if err := tx.Delete(k); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("drop projection %s: %w", projection, err)
		}
	}
}

func namespace(projection string, generation uint64) string {
	return fmt.Sprintf("%s%s/%d", ledger.DerivedNamespace, projection, generation)
}
