// Package queue counts what the ledger says of posts: how many wait for a
// worker, how many were done today, what is parked and why.
package queue

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/projections"
)

const (
	name    = "queue"
	version = 1
)

// Counts is the queue at a moment.
type Counts struct {
	Pending       int       // waits for a worker; what a worker holds is not in it
	Processing    int       // in a worker's hands
	Waiting       int       // of Pending: the delay after a failure is not over
	Parked        int       // out of the queue until somebody replays it
	Classified    int       // has a final decision
	DoneToday     int       // posts whose first final decision fell today, replays excluded
	OldestPending time.Time // since when the longest pending post is, claimed ones among them; zero for none

	// ByLane and ByStage count the posts of Pending and Processing together.
	ByLane        [ledger.LaneCount]int
	ByStage       [ledger.StageCount]int
	ParkedByCause map[ledger.Cause]int
}

// Queue is the projection. It is safe for concurrent use.
type Queue struct {
	stores  projections.Stores
	serving atomic.Pointer[fold]
}

// New returns the projection, which keeps its rows in stores.
func New(stores projections.Stores) *Queue { return &Queue{stores: stores} }

// Counts returns the queue at now, whose location says what "today" is. gauge
// is what the engine alone knows. Before the runner has opened the projection
// only the gauge is in it.
func (q *Queue) Counts(now time.Time, gauge ledger.QueueGauge) Counts {
	c := Counts{ParkedByCause: map[ledger.Cause]int{}}
	if f := q.serving.Load(); f != nil {
		c = f.counts(now)
	}
	c.Processing, c.Waiting = gauge.Processing, gauge.Waiting
	c.Pending = max(0, c.Pending-gauge.Processing)
	return c
}

// Spec implements projections.Projection.
func (q *Queue) Spec() projections.Spec { return projections.Spec{Name: name, Version: version} }

// Open implements projections.Projection.
func (q *Queue) Open(ctx context.Context, generation uint64) (projections.Fold, error) {
	table, err := projections.OpenTable(ctx, q.stores, name, generation)
	if err != nil {
		return nil, err
	}
	f := newFold(table)
	if err := f.load(ctx); err != nil {
		return nil, fmt.Errorf("load the queue: %w", err)
	}
	return f, nil
}

// Discard implements projections.Projection.
func (q *Queue) Discard(ctx context.Context, generation uint64, _ bool) error {
	return projections.DropTable(ctx, q.stores, name, generation)
}

// Serve implements projections.Projection.
func (q *Queue) Serve(f projections.Fold) {
	served, _ := f.(*fold)
	q.serving.Store(served)
}
