package projections

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"vesti.nixg.ru/ledger"
)

// slot is a projection in the runner: the generation that serves, and beside it
// at most one that is being built.
type slot struct {
	runner     *Runner
	projection Projection
	spec       Spec
	catalogue  catalogue
	logger     *slog.Logger
	opened     chan struct{} // closed once something serves
	builds     sync.Mutex    // held by the one who builds beside
	replaced   chan struct{} // holds one where another fold serves than the one that is watched

	// feed is held while events are applied to what serves and while that is
	// replaced.
	feed    sync.Mutex
	record  record    // guarded by feed
	serving *live     // guarded by feed
	said    time.Time // when the log last heard how far a build is; guarded by feed

	mu  sync.Mutex // guards now
	now Status
}

// live is an open generation.
type live struct {
	generation generation
	fold       Fold
}

// run feeds the projection until ctx ends.
func (s *slot) run(ctx context.Context) {
	defer s.shut()
	if !s.retry(ctx, s.open) {
		return
	}
	close(s.opened)
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { s.upgrade(ctx) })
	for ctx.Err() == nil {
		if !s.retry(ctx, s.follow) {
			return
		}
	}
}

// retry calls f until it succeeds, with growing pauses, and reports false when
// ctx ended first.
func (s *slot) retry(ctx context.Context, f func(context.Context) error) bool {
	for pause := retryMin; ; pause = min(2*pause, retryMax) {
		err := guarded(ctx, f)
		if ctx.Err() != nil {
			return false
		}
		s.setError(err)
		if err == nil {
			return true
		}
		s.runner.metrics.failures.WithLabelValues(s.spec.Name).Inc()
		s.logger.Error("projection stands still", "error", err, "retry_in", pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return false
		}
	}
}

// guarded turns a panic into an error: a projection must not take the process
// with it.
func guarded(ctx context.Context, f func(context.Context) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	return f(ctx)
}

// open opens what the catalogue names, or begins anew where that cannot serve.
func (s *slot) open(ctx context.Context) error {
	s.feed.Lock()
	defer s.feed.Unlock()
	var err error
	if s.record, err = s.catalogue.load(ctx, s.spec.Name); err != nil {
		return err
	}
	s.serving = nil
	if s.usable(s.record.Serving) {
		if s.serving, err = s.reopen(ctx, s.record.Serving); err != nil {
			return err
		}
	}
	if s.serving == nil && s.record.Building.Version == s.spec.Version {
		if s.serving, err = s.reopen(ctx, s.record.Building); err != nil {
			return err
		}
	}
	if s.serving == nil {
		return s.serveNew(ctx)
	}
	if left := s.record.Building; left.Number != 0 && s.serving.generation.Version == s.spec.Version && !s.building() {
		if err := s.lose(ctx, left, false); err != nil { // a rebuild that a crash broke off
			return err
		}
	}
	s.projection.Serve(s.serving.fold)
	s.note(func(st *Status) { st.Seq, st.Rebuilding = s.serving.fold.Checkpoint(), s.building() })
	return nil
}

func (s *slot) usable(g generation) bool {
	oldest := s.spec.Readable
	if oldest == 0 {
		oldest = s.spec.Version
	}
	return g.Number != 0 && g.Version >= oldest && g.Version <= s.spec.Version
}

// reopen opens a generation that exists. It returns nil where it is no use: it
// is damaged, or ahead of the ledger, which then is not the one it was made
// from.
func (s *slot) reopen(ctx context.Context, g generation) (*live, error) {
	fold, err := s.projection.Open(ctx, g.Number)
	if errors.Is(err, ErrDamaged) {
		s.logger.Warn("projection is damaged and is set aside; it is rebuilt from the ledger, which is untouched", "error", err)
		return nil, s.lose(ctx, g, true)
	}
	if err != nil {
		return nil, err
	}
	if head := s.runner.log.Head(); fold.Checkpoint() > head {
		s.logger.Warn("projection is ahead of the ledger and is rebuilt", "seq", fold.Checkpoint(), "head", head)
		return nil, errors.Join(fold.Close(), s.lose(ctx, g, false))
	}
	return &live{generation: g, fold: fold}, nil
}

// begin opens a new generation and notes it as being built.
func (s *slot) begin(ctx context.Context) (*live, error) {
	next := s.record
	if next.Building.Number != 0 {
		if err := s.discard(ctx, next.Building, false); err != nil {
			return nil, err
		}
	}
	next.Last++
	next.Building = generation{Number: next.Last, Version: s.spec.Version}
	if err := s.catalogue.save(ctx, s.spec.Name, next); err != nil {
		return nil, err
	}
	s.record = next
	// A crash may have left something under a number that was never noted.
	if err := s.discard(ctx, next.Building, false); err != nil {
		return nil, err
	}
	fold, err := s.projection.Open(ctx, next.Building.Number)
	if err != nil {
		return nil, err
	}
	return &live{generation: next.Building, fold: fold}, nil
}

// promote notes that the generation being built serves from now on, and
// discards the one that did.
func (s *slot) promote(ctx context.Context) error {
	old := s.record.Serving
	next := record{Serving: s.record.Building, Last: s.record.Last}
	if err := s.catalogue.save(ctx, s.spec.Name, next); err != nil {
		return err
	}
	s.record = next
	if old.Number == 0 {
		return nil
	}
	return s.discard(ctx, old, false)
}

// lose discards a generation that is no use any more. The record says so from
// the next begin on.
func (s *slot) lose(ctx context.Context, g generation, damaged bool) error {
	if s.record.Serving == g {
		s.record.Serving = generation{}
	}
	if s.record.Building == g {
		s.record.Building = generation{}
	}
	return s.discard(ctx, g, damaged)
}

func (s *slot) discard(ctx context.Context, g generation, damaged bool) error {
	if err := s.projection.Discard(ctx, g.Number, damaged); err != nil {
		return fmt.Errorf("discard generation %d: %w", g.Number, err)
	}
	return nil
}

// follow applies what is there, then waits for more.
func (s *slot) follow(ctx context.Context) error {
	seq, moved, err := s.step(ctx)
	if err != nil || moved {
		return err
	}
	return s.await(ctx, seq)
}

// await waits for an event after seq, or until what serves has broken.
func (s *slot) await(ctx context.Context, seq ledger.Seq) error {
	s.feed.Lock()
	fragile, ok := s.serving.fold.(Fragile)
	s.feed.Unlock()
	if !ok {
		return s.runner.log.Wait(ctx, seq)
	}
	waiting, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-fragile.Broken():
		case <-s.replaced:
		case <-waiting.Done():
		}
		stop()
	})
	err := s.runner.log.Wait(waiting, seq)
	stop()
	watch.Wait()
	if ctx.Err() == nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// step applies one batch to what serves.
func (s *slot) step(ctx context.Context) (ledger.Seq, bool, error) {
	s.feed.Lock()
	defer s.feed.Unlock()
	if s.serving == nil { // it broke, and beginning anew did not work at once
		if err := s.serveNew(ctx); err != nil {
			return 0, false, err
		}
	}
	if fragile, ok := s.serving.fold.(Fragile); ok && fragile.Err() != nil {
		return 0, true, s.replaceDamaged(ctx, fragile.Err())
	}
	moved, err := s.feedOne(ctx, s.serving.fold)
	if errors.Is(err, ErrDamaged) {
		return 0, true, s.replaceDamaged(ctx, err)
	}
	if err != nil {
		return 0, false, err
	}
	seq := s.serving.fold.Checkpoint()
	if s.building() && seq >= s.runner.log.Head() {
		if err := s.promote(ctx); err != nil {
			return 0, false, err
		}
		s.logger.Info("projection has caught up", "seq", seq)
	}
	if s.building() && time.Since(s.said) >= sayEvery {
		s.said = time.Now()
		s.logger.Info("projection is being built", "seq", seq, "head", s.runner.log.Head())
	}
	s.note(func(st *Status) { st.Seq, st.Rebuilding = seq, s.building() || st.Building > 0 })
	s.runner.progress.wake()
	return seq, moved, nil
}

// building reports whether what serves is still on its way to the ledger's head
// for the first time.
func (s *slot) building() bool { return s.record.Building == s.serving.generation }

// feedOne applies the next batch to fold and reports whether there was one.
func (s *slot) feedOne(ctx context.Context, fold Fold) (bool, error) {
	after, head := fold.Checkpoint(), s.runner.log.Head()
	if after >= head {
		return false, nil
	}
	if uint64(head-after) > batchEvents {
		if err := s.runner.space(); err != nil {
			return false, err
		}
	}
	events, err := s.runner.log.Read(ctx, after, batchEvents)
	if err != nil {
		return false, fmt.Errorf("read the ledger after event %d: %w", after, err)
	}
	through := head
	if len(events) > 0 {
		through = events[len(events)-1].Seq
	}
	if err := apply(ctx, fold, events, through); err != nil {
		return false, fmt.Errorf("apply events %d to %d: %w", after+1, through, err)
	}
	s.runner.metrics.events.WithLabelValues(s.spec.Name).Add(float64(len(events)))
	return true, nil
}

// apply halves a batch that is too large for one transaction.
func apply(ctx context.Context, fold Fold, events []ledger.Event, through ledger.Seq) error {
	err := fold.Apply(ctx, events, through)
	if !errors.Is(err, ledger.ErrTooLarge) || len(events) < 2 {
		return err
	}
	half := len(events) / 2
	if err := apply(ctx, fold, events[:half], events[half-1].Seq); err != nil {
		return err
	}
	return apply(ctx, fold, events[half:], through)
}

// replaceDamaged begins anew in place of a fold that broke while it served,
// unless one is being built beside it, which will take its place.
func (s *slot) replaceDamaged(ctx context.Context, cause error) error {
	if !s.builds.TryLock() {
		return fmt.Errorf("wait for the rebuild that is under way: %w", cause)
	}
	defer s.builds.Unlock()
	s.logger.Warn("projection broke and is set aside; it is rebuilt from the ledger, which is untouched", "error", cause)
	broken := s.serving
	s.serving = nil
	s.projection.Serve(nil)
	if err := broken.fold.Close(); err != nil {
		s.logger.Warn("closing the broken projection", "error", err)
	}
	if err := s.lose(ctx, broken.generation, true); err != nil {
		return err
	}
	return s.serveNew(ctx)
}

// serveNew serves an empty generation, which then fills.
func (s *slot) serveNew(ctx context.Context) error {
	fresh, err := s.begin(ctx)
	if err != nil {
		return err
	}
	s.serving = fresh
	s.projection.Serve(fresh.fold)
	s.said = time.Now()
	s.logger.Info("projection is built from the ledger", "head", s.runner.log.Head())
	s.note(func(st *Status) { st.Seq, st.Rebuilding = fresh.fold.Checkpoint(), true })
	return nil
}

func (s *slot) shut() {
	s.feed.Lock()
	defer s.feed.Unlock()
	if s.serving == nil {
		return
	}
	s.projection.Serve(nil)
	if err := s.serving.fold.Close(); err != nil {
		s.logger.Warn("closing the projection", "error", err)
	}
	s.serving = nil
}

func (s *slot) status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.now
	st.Name = s.spec.Name
	return st
}

func (s *slot) note(f func(*Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.now)
}

func (s *slot) setError(err error) {
	s.note(func(st *Status) {
		st.Error = ""
		if err != nil {
			st.Error, _, _ = strings.Cut(err.Error(), "\n") // a panic's stack is for the log
		}
	})
}
