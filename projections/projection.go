package projections

import (
	"context"
	"errors"

	"vesti.nixg.ru/ledger"
)

// ErrDamaged says that what a fold kept cannot be used any more. The runner
// sets it aside and builds a new generation from the ledger.
var ErrDamaged = errors.New("projection is damaged")

// Spec says what a projection is.
type Spec struct {
	// Name names the projection in metrics, commands and stores: a–z only.
	Name string
	// Version is the version of what its folds keep. Where another one is stored,
	// a new generation is built.
	Version int
	// Readable is the oldest version that Open still understands, so that it
	// serves while the new one is built. Zero means only Version.
	Readable int
}

// Projection makes folds and serves one of them to its readers. Its methods
// are safe for concurrent use.
type Projection interface {
	Spec() Spec
	// Open opens the fold of a generation, empty where there is none yet. An error
	// matching ErrDamaged says that it cannot be had any more.
	Open(ctx context.Context, generation uint64) (Fold, error)
	// Discard removes a generation that is not open. One that is damaged may be
	// set aside instead, for whoever wants to know why.
	Discard(ctx context.Context, generation uint64, damaged bool) error
	// Serve makes readers see fold, which Open returned. The one before it is
	// closed once Serve has returned. Nil takes it away: readers see nothing.
	Serve(fold Fold)
}

// Fold is what one generation of a projection keeps. The runner calls Apply and
// Close from one goroutine at a time; readers come beside it.
type Fold interface {
	// Checkpoint is the last event that was applied. It is safe for concurrent
	// use.
	Checkpoint() ledger.Seq
	// Apply folds events, which follow each other after the checkpoint, and moves
	// the checkpoint to through, both at once: after a crash all of it is there or
	// nothing. Where nothing of the batch concerns the fold, moving the stored
	// checkpoint may be left to a later call. After an error the runner opens no
	// new fold but calls Apply with the same events again.
	Apply(ctx context.Context, events []ledger.Event, through ledger.Seq) error
	// Close waits for readers and releases what the fold holds.
	Close() error
}

// Fragile is a Fold that may break between two calls of Apply, as one with
// files of its own does. The runner replaces it then without waiting for events.
type Fragile interface {
	// Broken is closed when the fold is beyond use.
	Broken() <-chan struct{}
	// Err is why, and matches ErrDamaged; nil until then.
	Err() error
}

// Status is how far a projection is.
type Status struct {
	Name       string
	Seq        ledger.Seq // the last event that readers see
	Lag        uint64     // how many sequence numbers the ledger is ahead
	Rebuilding bool       // a new generation is being built
	Building   ledger.Seq // how far that one is; zero without one
	Error      string     // why it stands still; "" while it moves
}

// Built is how much of a generation that is being built is there, 0 to 1; 1
// where none is.
func (s Status) Built() float64 {
	if !s.Rebuilding {
		return 1
	}
	done := s.Seq
	if s.Building > 0 {
		done = s.Building
	}
	return float64(done) / float64(max(1, uint64(s.Seq)+s.Lag))
}
