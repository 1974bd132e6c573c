// Package ledgertest helps tests that need a ledger: a real store in a folder
// of the test's own, builders for items and events, and the suite that every
// engine passes. Only tests import it.
package ledgertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
)

// Option changes how Open opens a store.
type Option func(*badgerlog.Options)

// Dir has the store in a folder that the test knows, to open it again.
func Dir(dir string) Option { return func(o *badgerlog.Options) { o.Dir = dir } }

// Now gives the store a clock.
func Now(now func() time.Time) Option { return func(o *badgerlog.Options) { o.Now = now } }

// Lease changes how long a claim holds without a heartbeat.
func Lease(d time.Duration) Option { return func(o *badgerlog.Options) { o.Lease = d } }

// Retry changes the number of attempts, and the first and the longest delay.
func Retry(attempts int, first, longest time.Duration) Option {
	return func(o *badgerlog.Options) { o.MaxAttempts, o.RetryFirst, o.RetryMax = attempts, first, longest }
}

// Open opens a new store in a folder of the test's own, small, quick to look at
// leases and delays, without a floor of free space. It is relaxed: it keeps
// what it acknowledged through a kill, not through a power cut. When the test
// ends it is closed, and the test fails if any invariant of the store does not
// hold.
func Open(t testing.TB, opts ...Option) *badgerlog.Log {
	t.Helper()
	o := badgerlog.Options{
		Dir:            t.TempDir(),
		Durability:     badgerlog.Relaxed,
		FreeSpaceFloor: -1,
		Tick:           10 * time.Millisecond,
		MemTable:       8 << 20,
		BlockCache:     8 << 20,
		IndexCache:     8 << 20,
		ValueLogFile:   16 << 20,
		GCInterval:     -1,
	}
	for _, opt := range opts {
		opt(&o)
	}
	l, err := badgerlog.Open(t.Context(), o)
	if err != nil {
		t.Fatalf("open the ledger: %v", err)
	}
	t.Cleanup(func() {
		Check(t, l)
		if err := l.Close(); err != nil {
			t.Errorf("close the ledger: %v", err)
		}
	})
	return l
}

// Check fails the test if any invariant of the store does not hold. A store that
// the test has closed is not checked.
func Check(t testing.TB, l *badgerlog.Log) badgerlog.VerifyReport {
	t.Helper()
	report, err := l.Verify(context.WithoutCancel(t.Context()), badgerlog.VerifyOptions{})
	if errors.Is(err, ledger.ErrClosed) {
		return report
	}
	if err != nil {
		t.Errorf("check the ledger: %v", err)
	}
	for _, p := range report.Found {
		t.Errorf("ledger: %s", p)
	}
	return report
}
