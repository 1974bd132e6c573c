package projections

import (
	"context"
	"errors"

	"vesti.nixg.ru/ledger"
)

// upgrade builds the current version beside an older one that serves.
func (s *slot) upgrade(ctx context.Context) {
	s.feed.Lock()
	version := s.serving.generation.Version
	s.feed.Unlock()
	if version == s.spec.Version {
		return
	}
	s.logger.Info("projection has a new version and is rebuilt beside the old one", "from", version, "to", s.spec.Version)
	s.retry(ctx, func(ctx context.Context) error {
		err := s.rebuild(ctx, true, nil)
		if errors.Is(err, ErrRebuilding) {
			return nil
		}
		return err
	})
}

// rebuild builds a generation beside the one that serves and switches. resume
// goes on with what an earlier process began.
func (s *slot) rebuild(ctx context.Context, resume bool, progress func(done, head ledger.Seq)) error {
	select {
	case <-s.opened:
	case <-ctx.Done():
		return ctx.Err()
	}
	if !s.builds.TryLock() {
		return ErrRebuilding
	}
	defer s.builds.Unlock()
	if built, err := s.awaitFirst(ctx, progress); err != nil || built {
		return err
	}
	fresh, err := s.beginBeside(ctx, resume)
	if err != nil {
		return err
	}
	defer s.note(func(st *Status) { st.Rebuilding, st.Building = false, 0 })
	err = guarded(ctx, func(ctx context.Context) error { return s.fill(ctx, fresh, progress) })
	if err == nil {
		err = s.switchTo(ctx, fresh)
	}
	if err == nil {
		return nil
	}
	err = errors.Join(err, fresh.fold.Close())
	if resume {
		return err
	}
	s.feed.Lock()
	defer s.feed.Unlock()
	return errors.Join(err, s.lose(context.WithoutCancel(ctx), fresh.generation, false))
}

// awaitFirst waits while what serves is itself still being built, which leaves
// nothing to rebuild, and reports whether it was so.
func (s *slot) awaitFirst(ctx context.Context, progress func(done, head ledger.Seq)) (built bool, err error) {
	for {
		moved := s.runner.progress.wait()
		s.feed.Lock()
		building := s.serving == nil || s.building()
		s.feed.Unlock()
		if !building {
			return built, nil
		}
		built = true
		if progress != nil {
			progress(s.status().Seq, s.runner.log.Head())
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

func (s *slot) beginBeside(ctx context.Context, resume bool) (*live, error) {
	s.feed.Lock()
	defer s.feed.Unlock()
	if s.serving == nil {
		return nil, ledger.ErrClosed
	}
	if resume && s.record.Building.Version == s.spec.Version {
		if half, err := s.reopen(ctx, s.record.Building); err != nil || half != nil {
			return half, err
		}
	}
	return s.begin(ctx)
}

// fill applies events until the fold is where the ledger is.
func (s *slot) fill(ctx context.Context, fresh *live, progress func(done, head ledger.Seq)) error {
	for {
		moved, err := s.feedOne(ctx, fresh.fold)
		if err != nil || !moved {
			return err
		}
		done := fresh.fold.Checkpoint()
		s.note(func(st *Status) { st.Rebuilding, st.Building = true, done })
		if progress != nil {
			progress(done, s.runner.log.Head())
		}
	}
}

// switchTo makes readers see fresh, once it is no less far than the one before.
func (s *slot) switchTo(ctx context.Context, fresh *live) error {
	s.feed.Lock()
	defer s.feed.Unlock()
	if s.serving == nil {
		return ledger.ErrClosed
	}
	for fresh.fold.Checkpoint() < s.serving.fold.Checkpoint() {
		if _, err := s.feedOne(ctx, fresh.fold); err != nil {
			return err
		}
	}
	old := s.serving
	next := record{Serving: fresh.generation, Last: s.record.Last}
	if err := s.catalogue.save(ctx, s.spec.Name, next); err != nil {
		return err
	}
	s.record = next
	s.projection.Serve(fresh.fold)
	s.serving = fresh
	select {
	case s.replaced <- struct{}{}:
	default:
	}
	if err := errors.Join(old.fold.Close(), s.discard(ctx, old.generation, false)); err != nil {
		s.logger.Warn("the old generation is left behind", "error", err)
	}
	seq := fresh.fold.Checkpoint()
	s.note(func(st *Status) { st.Seq = seq })
	s.runner.progress.wake()
	s.logger.Info("projection was rebuilt", "seq", seq, "generation", fresh.generation.Number)
	return nil
}
