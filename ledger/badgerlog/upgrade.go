package badgerlog

import (
	"bytes"
	"context"
	"fmt"

	badger "github.com/dgraph-io/badger/v4"
)

// upgrade is a step from one format of the store to the next: it rewrites the
// values of a prefix. (Events need none: their payloads are read through the
// upcasters of package codec for ever.)
type upgrade struct {
	from   uint8 // the step leads to from+1
	prefix byte
	// rewrite returns the key's value in the next format, nil to delete the key.
	rewrite func(key, value []byte) ([]byte, error)
}

// upgrades lists the steps in order. Version 1 is the first format.
func upgrades() []upgrade { return nil }

const upgradeBatch = 1000

// upgrade brings a store from one format to another. Each batch is written
// together with how far it came, so that it can be stopped, or die, and goes on
// with the next open.
func (l *Log) upgrade(ctx context.Context, steps []upgrade, from, to uint8) error {
	for version := from; version < to; version++ {
		found := false
		for _, s := range steps {
			if s.from != version {
				continue
			}
			found = true
			if err := l.upgradeStep(ctx, s); err != nil {
				return fmt.Errorf("upgrade %s from format %d: %w", l.opts.Dir, version, err)
			}
		}
		if !found {
			return fmt.Errorf("open store %s: %w: no way from format %d", l.opts.Dir, errDamaged, version)
		}
		err := l.db.Update(func(txn *badger.Txn) error {
			if err := txn.Delete([]byte(controlUpgrade)); err != nil {
				return err //nolint:wrapcheck // wrapped below
			}
			return txn.Set([]byte(controlFormat), []byte{version + 1})
		})
		if err != nil {
			return fmt.Errorf("upgrade %s to format %d: %w", l.opts.Dir, version+1, err)
		}
		l.opts.Logger.Info("store upgraded", "format", version+1)
	}
	return nil
}

func (l *Log) upgradeStep(ctx context.Context, s upgrade) error {
	var total, done uint64
	err := l.db.View(func(txn *badger.Txn) error {
		total = uint64(countPrefix(txn, []byte{s.prefix}))
		return nil
	})
	if err != nil {
		return fmt.Errorf("count: %w", err)
	}
	for {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		n, err := l.upgradePart(s)
		if err != nil || n == 0 {
			return err
		}
		done += uint64(n)
		l.opts.Progress("upgrade", done, total)
	}
}

// upgradePart rewrites the next keys and returns how many.
func (l *Log) upgradePart(s upgrade) (int, error) {
	n := 0
	err := l.db.Update(func(txn *badger.Txn) error {
		n = 0
		// The mark is the step's prefix and the last key that is done.
		mark, err := txnGet(txn, []byte(controlUpgrade))
		if err != nil {
			return err
		}
		start := []byte{s.prefix}
		if bytes.HasPrefix(mark, start) {
			start = append(bytes.Clone(mark), 0)
		}
		keys, values, err := next(txn, s.prefix, start)
		if err != nil {
			return err
		}
		for i, key := range keys {
			value, err := s.rewrite(key, values[i])
			if err == nil && value == nil {
				err = txn.Delete(key)
			} else if err == nil {
				err = txn.Set(key, value)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", printKey(key), err)
			}
			n++
		}
		if n == 0 {
			return nil
		}
		return txn.Set([]byte(controlUpgrade), keys[n-1])
	})
	if err != nil {
		return 0, fmt.Errorf("rewrite: %w", err)
	}
	return n, nil
}

// next reads keys of a prefix from start on, as many as one transaction may
// rewrite.
func next(txn *badger.Txn, prefix byte, start []byte) (keys, values [][]byte, err error) {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{prefix}})
	defer it.Close()
	size := 0
	for it.Seek(start); it.Valid() && len(keys) < upgradeBatch && size < restoreBatch; it.Next() {
		v, err := copyValue(it.Item())
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", printKey(it.Item().Key()), err)
		}
		keys, values = append(keys, it.Item().KeyCopy(nil)), append(values, v)
		size += len(v)
	}
	return keys, values, nil
}
