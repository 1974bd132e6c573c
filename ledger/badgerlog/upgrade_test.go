package badgerlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	badger "github.com/dgraph-io/badger/v4"
)

// TestUpgrade goes through two steps that rewrite every key once, is stopped
// after each part of them, and goes on with the next open.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	const keys = 4500
	o, err := Options{Dir: t.TempDir(), Durability: Relaxed, FreeSpaceFloor: -1, MemTable: 8 << 20}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	l, err := open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for from := 0; from < keys; from += 500 {
		err := l.db.Update(func(txn *badger.Txn) error {
			for i := from; i < from+500; i++ {
				if err := txn.Set(fmt.Appendf([]byte{keyStore}, "test\x00%06d", i), []byte("v")); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	add := func(c byte) func(_, v []byte) ([]byte, error) {
		return func(_, v []byte) ([]byte, error) { return append(bytes.Clone(v), c), nil }
	}
	steps := []upgrade{{from: 1, prefix: keyStore, rewrite: add('a')}, {from: 2, prefix: keyStore, rewrite: add('b')}}
	stops := 0
	for {
		ctx, cancel := context.WithCancel(t.Context())
		l.opts.Progress = func(string, uint64, uint64) { cancel() }
		err := l.upgrade(ctx, steps, storedFormat(t, l), 3)
		cancel()
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		stops++
		if err := closeBadger(l.db); err != nil {
			t.Fatal(err)
		}
		if l.db, err = openBadger(o); err != nil {
			t.Fatal(err)
		}
	}
	if stops < 8 {
		t.Errorf("it was stopped %d times", stops)
	}
	n := 0
	err = l.db.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{keyStore}})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			v, err := copyValue(it.Item())
			if err != nil || string(v) != "vab" {
				t.Fatalf("%q: %q, %v", it.Item().Key(), v, err)
			}
			n++
		}
		return nil
	})
	if err != nil || n != keys || storedFormat(t, l) != 3 {
		t.Errorf("%d keys, format %d, %v", n, storedFormat(t, l), err)
	}
	if err := l.upgrade(t.Context(), steps, 3, 4); err == nil {
		t.Error("an upgrade without a step")
	}
	if err := closeBadger(l.db); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), o); err == nil {
		t.Error("format 3 was opened")
	}
}

func storedFormat(t *testing.T, l *Log) uint8 {
	t.Helper()
	var format []byte
	err := l.db.View(func(txn *badger.Txn) error {
		var err error
		format, err = txnGet(txn, []byte(controlFormat))
		return err
	})
	if err != nil || len(format) != 1 {
		t.Fatalf("format %x, %v", format, err)
	}
	return format[0]
}
