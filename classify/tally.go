package classify

import (
	"sync"
	"sync/atomic"
	"time"

	"vesti.nixg.ru/ledger"
)

// counter is the counter of one outcome; nil counts nothing.
type counter = *atomic.Int64

// tally counts what a run has done.
type tally struct {
	claimed, classified, failed, returned, parked, stale atomic.Int64

	// changed hears of posts handed on; nil in a run that does not count them.
	changed chan struct{}
	mu      sync.Mutex
	handed  map[ledger.PostNum]struct{} // handed on by this run and not yet claimed again
}

func (t *tally) summary(took time.Duration) Summary {
	t.mu.Lock()
	waiting := len(t.handed)
	t.mu.Unlock()
	return Summary{
		Claimed:    int(t.claimed.Load()),
		Classified: int(t.classified.Load()),
		Failed:     int(t.failed.Load()),
		Returned:   int(t.returned.Load()) + waiting,
		Parked:     int(t.parked.Load()),
		Stale:      int(t.stale.Load()),
		DurationMS: took.Milliseconds(),
		Duration:   took,
	}
}

// expect notes that the post is about to be handed on: another worker may have
// it before the one that handed it on goes on.
func (t *tally) expect(post ledger.PostNum) {
	if t.changed == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.handed[post] = struct{}{}
}

// handOver wakes a worker of the next stage.
func (t *tally) handOver() {
	if t.changed == nil {
		return
	}
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

func (t *tally) anyHanded() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.handed) > 0
}

func (t *tally) wasHanded(post ledger.PostNum) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.handed[post]
	return ok
}

// takeHanded reports whether this run handed the post on, and forgets it.
func (t *tally) takeHanded(post ledger.PostNum) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.handed[post]
	delete(t.handed, post)
	return ok
}
