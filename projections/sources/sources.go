// Package sources shows how sources are doing and what their last runs were.
package sources

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/projections"
)

const (
	name    = "sources"
	version = 1
)

// KeptRuns is how many runs of a source can be listed. The counts of its state
// are of all that ever were.
const KeptRuns = 200

// Source is a source with what its runs made of it.
type Source struct {
	Slug ledger.Slug
	ledger.SourceState
	Truncated bool // the newest document that was read was not read whole
}

// Result is how a run ended, from a closed set.
type Result string

// The results of runs.
const (
	ResultOK          Result = "ok"
	ResultNotModified Result = "not_modified"
	ResultFailed      Result = "failed"
	ResultThrottled   Result = "throttled"
)

// Run is one run of a source.
type Run struct {
	Seq    ledger.Seq
	Source ledger.Slug
	Result Result
	ledger.Run
	Cause ledger.Cause // why it failed; "" where it did not
	Error string       // what a failed or throttled run says
	Until time.Time    // before then a throttled source is not asked
}

// Totals adds up every source that has been crawled.
type Totals struct {
	Sources   int
	ByStatus  [ledger.SourceStatusLen]int
	Runs      int
	Failures  int
	Fetched   int
	New       int
	SeenAgain int
	Revised   int
}

// Sources is the projection. It is safe for concurrent use.
type Sources struct {
	stores  projections.Stores
	serving atomic.Pointer[fold]
}

// New returns the projection, which keeps its rows in stores.
func New(stores projections.Stores) *Sources { return &Sources{stores: stores} }

// State returns the state of a source, the zero state for one that was never
// crawled.
func (s *Sources) State(slug ledger.Slug) ledger.SourceState {
	f := s.serving.Load()
	if f == nil {
		return ledger.SourceState{}
	}
	return f.state(slug)
}

// All returns every source that has been crawled, by slug. Those that the
// configuration no longer names are among them.
func (s *Sources) All() []Source {
	f := s.serving.Load()
	if f == nil {
		return nil
	}
	all := f.all()
	slices.SortFunc(all, func(a, b Source) int { return strings.Compare(string(a.Slug), string(b.Slug)) })
	return all
}

// Totals adds up every source.
func (s *Sources) Totals() Totals {
	var t Totals
	for _, src := range s.All() {
		t.Sources++
		if int(src.Status) < len(t.ByStatus) {
			t.ByStatus[src.Status]++
		}
		t.Runs += src.Runs
		t.Failures += src.Failures
		t.Fetched += src.Fetched
		t.New += src.New
		t.SeenAgain += src.SeenAgain
		t.Revised += src.Revised
	}
	return t
}

// Runs returns the last runs of a source, the newest first, at most limit and
// at most KeptRuns.
func (s *Sources) Runs(ctx context.Context, slug ledger.Slug, limit int) ([]Run, error) {
	f := s.serving.Load()
	if f == nil {
		return nil, nil
	}
	runs, err := f.runs(ctx, slug)
	if err != nil {
		return nil, fmt.Errorf("list runs of %s: %w", slug, err)
	}
	slices.Reverse(runs)
	return runs[:min(max(limit, 0), len(runs))], nil
}

// Spec implements projections.Projection.
func (s *Sources) Spec() projections.Spec { return projections.Spec{Name: name, Version: version} }

// Open implements projections.Projection.
func (s *Sources) Open(ctx context.Context, generation uint64) (projections.Fold, error) {
	table, err := projections.OpenTable(ctx, s.stores, name, generation)
	if err != nil {
		return nil, err
	}
	f := newFold(table)
	if err := f.load(ctx); err != nil {
		return nil, fmt.Errorf("load the sources: %w", err)
	}
	return f, nil
}

// Discard implements projections.Projection.
func (s *Sources) Discard(ctx context.Context, generation uint64, _ bool) error {
	return projections.DropTable(ctx, s.stores, name, generation)
}

// Serve implements projections.Projection.
func (s *Sources) Serve(f projections.Fold) {
	served, _ := f.(*fold)
	s.serving.Store(served)
}
