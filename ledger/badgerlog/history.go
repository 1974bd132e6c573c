package badgerlog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/codec"
)

// Record writes events that are no items: runs, measures, removals, returns,
// reviews, stories, and classifications that are replays. They are written
// together or not at all. Each must follow from the state of its post, else
// Record returns an error matching ledger.ErrStale, as it does for a replay on a
// post that is in the queue, parked or reviewed; ErrNotFound for a post that is
// not there; ErrInvalid for an event that only the engine makes, or one
// without its post or source. An event's At is the engine's where it is zero.
// A PostReturned takes a post out of a worker's hands.
func (l *Log) Record(ctx context.Context, events ...ledger.Event) ([]ledger.Seq, error) {
	return l.record(ctx, [][]ledger.Event{events})
}

// RecordEach is Record for events that have nothing to do with each other: each
// is written or refused on its own. The Seq of one that does not follow from
// its post's state, or whose post is not there, is zero.
func (l *Log) RecordEach(ctx context.Context, events []ledger.Event) ([]ledger.Seq, error) {
	alone := make([][]ledger.Event, len(events))
	for i := range events {
		alone[i] = events[i : i+1]
	}
	seqs, err := l.record(ctx, alone)
	if errors.Is(err, ledger.ErrStale) || errors.Is(err, ledger.ErrNotFound) {
		err = nil
	}
	return seqs, err
}

// record writes sets of events, each set together or not at all, and returns
// their Seqs in order, zero for those of a refused set, with the first refusal.
func (l *Log) record(ctx context.Context, sets [][]ledger.Event) ([]ledger.Seq, error) {
	sheets := make([]sheet, len(sets))
	for i, events := range sets {
		var err error
		if sheets[i], err = newSheet(events); err != nil {
			return nil, fmt.Errorf("record: %w", err)
		}
	}
	release, err := l.acquire()
	if err != nil {
		return nil, err
	}
	defer release()
	if err := l.space.check(l.opts); err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	r := &request{
		steps: len(sheets),
		size:  func(i int) int { return sheets[i].size },
		step:  func(g *group, i int) error { return g.record(&sheets[i]) },
		done:  func(err error) { done <- err },
	}
	if err := l.appender.submit(ctx, r); err != nil {
		return nil, err
	}
	select {
	case err = <-done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err != nil {
		err = fmt.Errorf("record: %w", err)
		if !errors.Is(err, ledger.ErrStale) && !errors.Is(err, ledger.ErrNotFound) {
			return nil, err
		}
	}
	var seqs []ledger.Seq
	for _, s := range sheets {
		seqs = append(seqs, s.seqs...)
	}
	return seqs, err
}

// sheet is a set of events that are written together.
type sheet struct {
	events   []ledger.Event
	payloads [][]byte
	seqs     []ledger.Seq
	size     int
}

func newSheet(events []ledger.Event) (sheet, error) {
	s := sheet{events: slices.Clone(events), payloads: make([][]byte, len(events)), seqs: make([]ledger.Seq, len(events))}
	for i, e := range events {
		if err := validEvent(e); err != nil {
			return s, fmt.Errorf("%s: %w", e.Type, err)
		}
		s.payloads[i] = codec.AppendPayload(nil, e.Payload)
		s.size += len(s.payloads[i]) + stepReserve
	}
	if s.size > groupBytes {
		return s, fmt.Errorf("%d events: %w: %d bytes at once", len(events), ledger.ErrTooLarge, s.size)
	}
	return s, nil
}

func (g *group) record(s *sheet) error {
	clear(s.seqs)
	w, err := g.plan(s.events)
	if err != nil {
		return err
	}
	for i := range w.events {
		s.seqs[i] = w.events[i].Seq
	}
	return g.carryOut(w, s.payloads)
}

func validEvent(e ledger.Event) error {
	if e.Payload == nil || e.Type != e.Payload.EventType() {
		return fmt.Errorf("%w: type and payload differ", ledger.ErrInvalid)
	}
	switch p := e.Payload.(type) {
	case ledger.PostReturned:
		if p.Lane >= ledger.LaneCount || p.Stage >= ledger.StageCount {
			return fmt.Errorf("%w: lane %d, stage %d", ledger.ErrInvalid, p.Lane, p.Stage)
		}
	case ledger.PostPrioritised:
		if p.Lane >= ledger.LaneCount {
			return fmt.Errorf("%w: lane %d", ledger.ErrInvalid, p.Lane)
		}
	case ledger.PostClassified:
		if !p.Replay {
			return fmt.Errorf("%w: only a claim's holder classifies; a replay says so", ledger.ErrInvalid)
		}
		if err := validDecision(p); err != nil {
			return err
		}
	case ledger.PostMeasured, ledger.PostRemoved, ledger.PostReviewed, ledger.StoryGrouped, ledger.StoryUngrouped:
	case ledger.SourceCrawled, ledger.SourceFailed, ledger.SourceThrottled, ledger.SourceReset, ledger.SourceMoved:
		return e.Source.Validate()
	default:
		return fmt.Errorf("%w: only the engine makes this event", ledger.ErrInvalid)
	}
	if e.Post == 0 {
		return fmt.Errorf("%w: no post given", ledger.ErrInvalid)
	}
	return nil
}

// plan is what a Record will write, worked out before anything is.
type plan struct {
	events  []ledger.Event
	posts   []postChange
	sources map[ledger.Slug]ledger.SourceState
}

type postChange struct{ before, after postRecord }

func (g *group) plan(events []ledger.Event) (plan, error) {
	w := plan{events: make([]ledger.Event, len(events)), sources: make(map[ledger.Slug]ledger.SourceState)}
	for i, e := range events {
		e.Seq = g.last + 1 + ledger.Seq(i)
		e.Version = codec.Version
		if e.At = roundTime(e.At); e.At.IsZero() {
			e.At = g.at
		}
		w.events[i] = e
		var err error
		if e.Type.OfPost() {
			err = g.planPost(&w, e)
		} else {
			err = g.planSource(&w, e)
		}
		if err != nil {
			return w, err
		}
	}
	return w, nil
}

func (g *group) planPost(w *plan, e ledger.Event) error {
	c := w.change(e.Post)
	if c == nil {
		rec, err := g.post(e.Post)
		if err != nil {
			return err
		}
		w.posts = append(w.posts, postChange{rec, rec})
		c = &w.posts[len(w.posts)-1]
	}
	if p, ok := e.Payload.(ledger.PostClassified); ok && p.Replay && !c.after.state.TakesReplay() {
		return fmt.Errorf("%w: replay of post %d, which is %s, reviewed %t", ledger.ErrStale, e.Post, c.after.state.Status, c.after.state.Reviewed)
	}
	after, err := c.after.apply(e)
	c.after = after
	return err
}

func (w *plan) change(post ledger.PostNum) *postChange {
	for i := range w.posts {
		if w.posts[i].after.num == post {
			return &w.posts[i]
		}
	}
	return nil
}

func (g *group) planSource(w *plan, e ledger.Event) error {
	state, ok := w.sources[e.Source]
	if !ok {
		var err error
		if state, err = readSource(g.txn, e.Source); err != nil {
			return err
		}
	}
	w.sources[e.Source] = state.Apply(e)
	return nil
}

func (g *group) carryOut(w plan, payloads [][]byte) error {
	for i, e := range w.events {
		if err := g.putEvent(e, append(codec.AppendHeader(nil, e), payloads[i]...)); err != nil {
			return err
		}
	}
	for _, c := range w.posts {
		if err := g.putPost(c.before, c.after); err != nil {
			return err
		}
	}
	for slug, state := range w.sources {
		if err := g.set(sourceKey(slug), codec.AppendSourceState(nil, state)); err != nil {
			return err
		}
	}
	return nil
}
