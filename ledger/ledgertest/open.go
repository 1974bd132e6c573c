// Package ledgertest helps tests that need a ledger: a real store in a folder
// of the test's own, builders for items and events, and the suite that every
// engine passes. Only tests import it.
package ledgertest

import (
	"testing"

	"vesti.nixg.ru/ledger/badgerlog"
)

// Option changes how Open opens a store.
type Option func(*badgerlog.Options)

// Open opens a new store in a folder of the test's own. When the test ends it
// is closed, and the test fails if any invariant of the store does not hold.
func Open(t testing.TB, opts ...Option) *badgerlog.Log {
	t.Helper()
	o := badgerlog.Options{Dir: t.TempDir(), FreeSpaceFloor: -1}
	for _, opt := range opts {
		opt(&o)
	}
	l, err := badgerlog.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
