package badgerlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	badger "github.com/dgraph-io/badger/v4"

	"vesti.nixg.ru/ledger"
)

// Store returns the key-value space of a namespace. Its transactions are
// Badger's own: a consistent view, conflicts detected, a commit synced where
// the store is durable. One Update can write up to about 1 MiB.
func (l *Log) Store(namespace string) ledger.Store {
	return &store{log: l, name: namespace, prefix: storePrefix(namespace)}
}

type store struct {
	log    *Log
	name   string
	prefix []byte
}

// View implements ledger.Store.
func (s *store) View(ctx context.Context, f func(ledger.Tx) error) error {
	if err := s.valid(); err != nil {
		return err
	}
	return s.log.view(ctx, func(txn *badger.Txn) error { return f(&tx{txn: txn, prefix: s.prefix}) })
}

// Update implements ledger.Store.
func (s *store) Update(ctx context.Context, f func(ledger.Tx) error) error {
	if err := s.valid(); err != nil {
		return err
	}
	release, err := s.log.acquire()
	if err != nil {
		return err
	}
	defer release()
	for {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := s.log.Err(); err != nil {
			return err
		}
		if err := checkFull(s.log.opts); err != nil {
			return err
		}
		failpoint("checkpoint.before")
		err := s.log.db.Update(func(txn *badger.Txn) error { return f(&tx{txn: txn, prefix: s.prefix, write: true}) })
		failpoint("checkpoint.after")
		switch {
		case errors.Is(err, badger.ErrConflict):
			s.log.metrics.conflicts.Inc()
		case errors.Is(err, badger.ErrTxnTooBig):
			return fmt.Errorf("update %s: %w for one transaction", s.name, ledger.ErrTooLarge)
		default:
			return err //nolint:wrapcheck // f's own error, or Badger's of the commit
		}
	}
}

func (s *store) valid() error {
	if s.name == "" || strings.Contains(s.name, "\x00") {
		return fmt.Errorf("%w: namespace %q", ledger.ErrInvalid, s.name)
	}
	return nil
}

type tx struct {
	txn    *badger.Txn
	prefix []byte
	write  bool
}

func (t *tx) key(k []byte) []byte {
	return append(append(make([]byte, 0, len(t.prefix)+len(k)), t.prefix...), k...)
}

// Get implements ledger.Tx.
func (t *tx) Get(key []byte) ([]byte, error) {
	v, err := txnGet(t.txn, t.key(key))
	if err == nil && v == nil {
		return nil, fmt.Errorf("key %q: %w", key, ledger.ErrNotFound)
	}
	return v, err
}

// Set implements ledger.Tx.
func (t *tx) Set(key, value []byte) error {
	if !t.write {
		return fmt.Errorf("set %q: %w: the transaction is a view", key, ledger.ErrInvalid)
	}
	return t.txn.Set(t.key(key), bytes.Clone(value)) //nolint:wrapcheck // told apart by Update
}

// Delete implements ledger.Tx.
func (t *tx) Delete(key []byte) error {
	if !t.write {
		return fmt.Errorf("delete %q: %w: the transaction is a view", key, ledger.ErrInvalid)
	}
	return t.txn.Delete(t.key(key)) //nolint:wrapcheck // told apart by Update
}

// Scan implements ledger.Tx.
func (t *tx) Scan(prefix, start []byte, f func(key, value []byte) (bool, error)) error {
	return t.each(prefix, start, func(key []byte, item *badger.Item) (more bool, err error) {
		err = readValue(item, func(v []byte) error {
			more, err = f(key, v)
			return err
		})
		return more, err
	})
}

// Keys implements ledger.Tx.
func (t *tx) Keys(prefix, start []byte, f func(key []byte) (bool, error)) error {
	return t.each(prefix, start, func(key []byte, _ *badger.Item) (bool, error) { return f(key) })
}

func (t *tx) each(prefix, start []byte, f func(key []byte, item *badger.Item) (bool, error)) error {
	full := t.key(prefix)
	from := full
	if bytes.Compare(start, prefix) > 0 {
		from = t.key(start)
	}
	it := t.txn.NewIterator(badger.IteratorOptions{Prefix: full})
	defer it.Close()
	for it.Seek(from); it.Valid(); it.Next() {
		item := it.Item()
		more, err := f(item.Key()[len(t.prefix):], item)
		if err != nil || !more {
			return err //nolint:wrapcheck // f's own error
		}
	}
	return nil
}

func notFound(err error) error {
	if errors.Is(err, badger.ErrKeyNotFound) {
		return ledger.ErrNotFound
	}
	return err
}
