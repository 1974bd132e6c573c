package classify

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"vesti.nixg.ru/ledger"
)

// guessedAsk is how long a language model is taken to need where none was ever
// asked.
const guessedAsk = 3 * time.Second

// askAll asks the language model about the posts that need it.
func (r *reclassifier) askAll(ctx context.Context) error {
	if r.o.LLM == nil || len(r.toAsk) == 0 {
		return nil
	}
	if err := r.o.LLM.Probe(ctx); err != nil {
		return fmt.Errorf("the language model is not ready: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	posts := make(chan ledger.PostNum)
	var wg sync.WaitGroup
	for range max(r.o.LLMWorkers, 1) {
		wg.Go(func() {
			for num := range posts {
				if err := r.askOne(ctx, num); err != nil {
					cancel(err)
				}
			}
		})
	}
	every := ticker(r.o.Progress)
	for i, num := range r.toAsk {
		every("asking", uint64(i), uint64(len(r.toAsk)))
		select {
		case posts <- num:
		case <-ctx.Done():
		}
	}
	close(posts)
	wg.Wait()
	return context.Cause(ctx)
}

// askOne asks about one post. One that fails, or is damaged, keeps its decision; a
// server that goes away ends the run.
func (r *reclassifier) askOne(ctx context.Context, num ledger.PostNum) error {
	post, err := r.h.Post(ctx, num)
	if errors.Is(err, ledger.ErrUnreadable) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read post %d: %w", num, err)
	}
	g := r.cascade.guess(&post.Item)
	d, err := r.o.LLM.Classify(ctx, ledger.Claim{Post: num, Revision: post.State.Revision, Item: post.Item}, g.candidates)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		if failureOf(err).Cause == ledger.CauseUnavailable || ctx.Err() != nil {
			return fmt.Errorf("ask about post %d: %w", num, err)
		}
		r.diff.AskFailed++
		return nil
	}
	d.RuleSet = g.RuleSet
	d.Reasons = append(d.Reasons, g.Reasons...)
	r.diff.Asked++
	c, what := r.compare(&judged{num, post.Item}, r.past.posts[num], d)
	if what == verdictSame { // the same, by another model: noted, so that it is not asked again
		r.pending = append(r.pending, ledger.NewEvent(r.o.Actor, num, "", ledger.PostClassified{
			Classification: d, Revision: post.State.Revision, Replay: true,
		}))
		r.changes = append(r.changes, change{})
		return r.flushWhen(ctx, 1)
	}
	r.note(c)
	return r.flushWhen(ctx, 1)
}
