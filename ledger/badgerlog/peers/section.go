package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// class is a class of durability. Contestants are compared within one only.
type class string

const (
	classD class = "D" // synced before it is acknowledged: survives a power cut
	classP class = "P" // survives the death of the process; a power cut may take the last moments
)

// store is one contestant's store, empty when opened.
type store interface {
	// append takes posts from f with 8 producers, batch of them a call, until the budget is spent.
	append(ctx context.Context, f *feed, batch int, b budget) (tally, error)
	// claim has workers claim posts and complete them until the budget is spent.
	claim(ctx context.Context, m mode, b budget) (tally, error)
	close() error
}

// mode is a way to work the queue.
type mode struct {
	name string
	// batch is how many posts a worker fetches at once, workers how many there
	// are; 0 stands for one and for 8.
	batch, workers int
	// awaited: the worker waits until its completion is recorded. Where both
	// is set the contestant knows no other way, and stands for both.
	awaited, both bool
}

// budget ends a timed section at a number of posts or after a time, whichever
// comes first.
type budget struct {
	posts int
	time  time.Duration
}

// tally is what a timed section did.
type tally struct {
	posts   int // handled, duplicates among them
	fresh   int // of an append: those that were new
	extra   int // of a claim: completed after the clock had stopped
	elapsed time.Duration
}

func (t tally) rate() float64 { return float64(t.posts) / t.elapsed.Seconds() }

// produce runs 8 producers that hand posts of f to add, batch a call.
func produce(ctx context.Context, f *feed, batch int, b budget, add func(ctx context.Context, posts []post) (fresh int, err error)) (tally, error) {
	var posts, fresh atomic.Int64
	limit := f.taken() + b.posts
	begin := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for range producers {
		g.Go(func() error {
			for time.Since(begin) < b.time && f.taken() < limit {
				part := f.take(batch)
				if len(part) == 0 {
					return nil
				}
				n, err := add(ctx, part)
				if err != nil {
					return err
				}
				posts.Add(int64(len(part)))
				fresh.Add(int64(n))
			}
			return nil
		})
	}
	err := g.Wait()
	return tally{posts: int(posts.Load()), fresh: int(fresh.Load()), elapsed: time.Since(begin)}, err
}

// work runs workers that each claim up to m.batch posts and complete them, by
// do. The clock stops when settle, which waits for what do left under way,
// returns.
func work(ctx context.Context, m mode, b budget, do func(ctx context.Context, worker, n int) error, settle func(done int) error) (tally, error) {
	var taken atomic.Int64
	batch := int64(max(m.batch, 1))
	begin := time.Now()
	g, gctx := errgroup.WithContext(ctx)
	var done atomic.Int64
	for i := range m.crew() {
		g.Go(func() error {
			for time.Since(begin) < b.time {
				end := taken.Add(batch)
				n := min(batch, int64(b.posts)-(end-batch))
				if n <= 0 {
					return nil
				}
				if err := do(gctx, i, int(n)); err != nil {
					return fmt.Errorf("worker %d: %w", i, err)
				}
				done.Add(n)
			}
			return nil
		})
	}
	err := g.Wait()
	if err == nil && settle != nil {
		err = settle(int(done.Load()))
	}
	return tally{posts: int(done.Load()), elapsed: time.Since(begin)}, err
}

// pause waits between two looks at a server. A context that ends cuts it short,
// and fails the next look.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func (m mode) crew() int {
	if m.workers == 0 {
		return workers
	}
	return m.workers
}
