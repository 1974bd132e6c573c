package sources

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/projections"
)

// The rows of the table. There are as many as sources times KeptRuns, so they
// are JSON, which a person can read.
const (
	rowState = 's' // + slug: its state
	rowRun   = 'r' // + slug + 0 + seq: a run
)

// row is what is in memory of a source.
type row struct {
	state state
	kept  []ledger.Seq // the runs that are stored, oldest first
}

// state is what the events of a source make of it.
type state struct {
	ledger.SourceState
	Truncated bool `json:",omitempty"` // see Source
}

func (s state) apply(e ledger.Event) state {
	s.SourceState = s.Apply(e)
	if p, ok := e.Payload.(ledger.SourceCrawled); ok && !p.NotModified { // else it is the document that was read before
		s.Truncated = p.Truncated
	}
	return s
}

// fold is one generation of the projection.
type fold struct {
	*projections.Table

	mu   sync.RWMutex // guards rows
	rows map[ledger.Slug]row
}

func newFold(table *projections.Table) *fold {
	return &fold{Table: table, rows: map[ledger.Slug]row{}}
}

func (f *fold) load(ctx context.Context) error {
	return f.Table.View(ctx, func(tx ledger.Tx) error {
		err := tx.Scan([]byte{rowState}, nil, func(key, value []byte) (bool, error) {
			var r row
			if err := json.Unmarshal(value, &r.state); err != nil {
				return false, fmt.Errorf("%w: state of %s: %w", projections.ErrDamaged, key[1:], err)
			}
			f.rows[ledger.Slug(key[1:])] = r
			return true, nil
		})
		if err != nil {
			return err
		}
		return tx.Keys([]byte{rowRun}, nil, func(key []byte) (bool, error) {
			slug := ledger.Slug(key[1 : len(key)-9])
			r := f.rows[slug]
			r.kept = append(r.kept, ledger.Seq(binary.BigEndian.Uint64(key[len(key)-8:])))
			f.rows[slug] = r
			return true, nil
		})
	})
}

// Close implements projections.Fold.
func (f *fold) Close() error { return nil }

// Apply implements projections.Fold.
func (f *fold) Apply(ctx context.Context, events []ledger.Event, through ledger.Seq) error {
	changed, added, gone := f.after(events)
	if len(changed) == 0 {
		return f.Table.Pass(ctx, through)
	}
	err := f.Table.Apply(ctx, through, func(tx ledger.Tx) error {
		for slug, r := range changed {
			if err := setJSON(tx, stateKey(slug), r.state); err != nil {
				return err
			}
		}
		for _, r := range added {
			if err := setJSON(tx, runKey(r.Source, r.Seq), r); err != nil {
				return err
			}
		}
		for _, key := range gone {
			if err := tx.Delete(key); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.Copy(f.rows, changed)
	return nil
}

// after takes the rows through events: the rows that change, the runs to keep,
// and the keys of the runs that fall out.
func (f *fold) after(events []ledger.Event) (changed map[ledger.Slug]row, added []Run, gone [][]byte) {
	changed = map[ledger.Slug]row{}
	f.mu.RLock()
	defer f.mu.RUnlock()
	for _, e := range events {
		if !ofSource(e) {
			continue
		}
		r, ok := changed[e.Source]
		if !ok {
			r = f.rows[e.Source]
			r.kept = slices.Clone(r.kept)
		}
		r.state = r.state.apply(e)
		if run, ok := runOf(e); ok {
			added = append(added, run)
			r.kept = append(r.kept, e.Seq)
		}
		for len(r.kept) > KeptRuns {
			gone = append(gone, runKey(e.Source, r.kept[0]))
			r.kept = r.kept[1:]
		}
		changed[e.Source] = r
	}
	return changed, added, gone
}

func ofSource(e ledger.Event) bool {
	switch e.Payload.(type) {
	case ledger.SourceCrawled, ledger.SourceFailed, ledger.SourceThrottled, ledger.SourceReset, ledger.SourceMoved, ledger.RunsSummarised:
		return e.Source != ""
	default:
		return false
	}
}

// runOf returns the run that e tells of, and false where it tells of none.
func runOf(e ledger.Event) (Run, bool) {
	run := Run{Seq: e.Seq, Source: e.Source}
	switch p := e.Payload.(type) {
	case ledger.SourceCrawled:
		run.Run, run.Result = p.Run, ResultOK
		if p.NotModified {
			run.Result = ResultNotModified
		}
	case ledger.SourceFailed:
		run.Run, run.Result, run.Cause, run.Error = p.Run, ResultFailed, p.Cause, p.Message
	case ledger.SourceThrottled:
		run.Run, run.Result, run.Error, run.Until = p.Run, ResultThrottled, p.Message, p.Until
	default:
		return Run{}, false
	}
	return run, true
}

func (f *fold) state(slug ledger.Slug) ledger.SourceState {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.rows[slug].state.SourceState
}

func (f *fold) all() []Source {
	f.mu.RLock()
	defer f.mu.RUnlock()
	all := make([]Source, 0, len(f.rows))
	for slug, r := range f.rows {
		all = append(all, Source{slug, r.state.SourceState, r.state.Truncated})
	}
	return all
}

// runs returns the kept runs of a source, the oldest first.
func (f *fold) runs(ctx context.Context, slug ledger.Slug) ([]Run, error) {
	var runs []Run
	err := f.Table.View(ctx, func(tx ledger.Tx) error {
		prefix := runKey(slug, 0)
		prefix = prefix[:len(prefix)-8]
		return tx.Scan(prefix, nil, func(_, value []byte) (bool, error) {
			var r Run
			if err := json.Unmarshal(value, &r); err != nil {
				return false, fmt.Errorf("%w: a run of %s: %w", projections.ErrDamaged, slug, err)
			}
			runs = append(runs, r)
			return true, nil
		})
	})
	return runs, err
}

func setJSON(tx ledger.Tx, key []byte, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return tx.Set(key, b)
}

func stateKey(slug ledger.Slug) []byte { return append([]byte{rowState}, slug...) }

// runKey orders the runs of a source by time. A slug holds no zero byte.
func runKey(slug ledger.Slug, seq ledger.Seq) []byte {
	key := append(append([]byte{rowRun}, slug...), 0)
	return binary.BigEndian.AppendUint64(key, uint64(seq))
}
