// Package projectiontest runs projections in tests.
package projectiontest

import (
	"context"
	"sync"
	"testing"
	"time"

	"vesti.nixg.ru/projections"
)

// patience is how long projections may take to show what the ledger has.
const patience = time.Minute

// Feed is a runner at work. Its methods fail the test.
type Feed struct {
	*projections.Runner
	t    testing.TB
	log  projections.Log
	stop func()
}

// Start feeds the projections of o until the test ends.
func Start(t testing.TB, o projections.Options) *Feed {
	t.Helper()
	r, err := projections.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	f := &Feed{Runner: r, t: t, log: o.Log}
	f.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(f.stop)
	return f
}

// Settle waits until the projections show all that the ledger has.
func (f *Feed) Settle() {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	if err := f.CatchUp(ctx, f.log.Head()); err != nil {
		f.t.Fatalf("%v: %+v", err, f.Status())
	}
}

// Stop ends the feeding before the test ends.
func (f *Feed) Stop() { f.stop() }
