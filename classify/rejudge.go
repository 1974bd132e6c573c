package classify

import (
	"context"
	"sync"

	"vesti.nixg.ru/ledger"
)

const (
	// judgeBatch is how many posts a worker gets at once.
	judgeBatch = 250
	// same is the difference of a score that counts as none: what the ledger keeps
	// has three digits.
	same = 0.0015
)

// judged is a post on its way to a worker.
type judged struct {
	num  ledger.PostNum
	item ledger.Item
}

// judgeAll goes through the texts once more, with several workers.
func (r *reclassifier) judgeAll(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	posts := make(chan []judged, 2*r.o.Workers)
	var wg sync.WaitGroup
	for range r.o.Workers {
		wg.Go(func() {
			for some := range posts {
				if err := r.judgeSome(ctx, some); err != nil {
					cancel(err)
				}
			}
		})
	}
	every := ticker(r.o.Progress)
	revised := make(map[ledger.PostNum]ledger.Item) // of posts whose text was, without it
	var some []judged
	send := func() {
		select {
		case posts <- some:
		case <-ctx.Done():
		}
		some = nil
	}
	err := eachEvent(ctx, r.h, 0, r.head, true, func(e ledger.Event) error {
		every("judging", uint64(e.Seq), uint64(r.head))
		if j, ok := r.current(e, revised); ok {
			if some = append(some, j); len(some) == judgeBatch {
				send()
			}
		}
		return context.Cause(ctx)
	})
	send()
	close(posts)
	wg.Wait()
	if err == nil {
		err = context.Cause(ctx)
	}
	return err
}

// current returns a post whose newest text is e's, if it is one to judge. revised
// holds the items of posts whose newest text is still to come.
func (r *reclassifier) current(e ledger.Event, revised map[ledger.PostNum]ledger.Item) (judged, bool) {
	s, known := r.past.posts[e.Post]
	if !known || e.Seq > s.text {
		return judged{}, false
	}
	var item ledger.Item
	var length int
	switch p := e.Payload.(type) {
	case ledger.PostFetched:
		if e.At.Before(r.o.Since) {
			return judged{}, false
		}
		if e.Seq < s.text {
			p.Item.Text = ""
			revised[e.Post] = p.Item
			return judged{}, false
		}
		item, length = p.Item, p.TextLen
	case ledger.PostRevised:
		before, wanted := revised[e.Post]
		if e.Seq < s.text || !wanted {
			return judged{}, false
		}
		delete(revised, e.Post)
		item, length = before, p.TextLen
		item.Title, item.Text, item.TextFrom = p.Title, p.Text, p.TextFrom
	default:
		return judged{}, false
	}
	if !r.wanted(s, item, length) {
		return judged{}, false
	}
	if title, changed := r.past.titles[e.Post]; changed {
		item.Title = title
	}
	return judged{num: e.Post, item: item}, true
}

// wanted reports whether a post is one to judge, and counts it where it is not.
func (r *reclassifier) wanted(s standing, item ledger.Item, length int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.status != ledger.StatusClassified || !s.classed {
		r.diff.Pending++
		return false
	}
	if r.o.Direction != "" && r.past.directions[s.direction] != r.o.Direction {
		return false
	}
	if s.reviewed {
		r.diff.Reviewed++
		return false
	}
	if length > 0 && item.Text == "" {
		r.diff.NoText++ // retention removed it
		return false
	}
	return true
}

// judgeSome judges posts and notes what changes.
func (r *reclassifier) judgeSome(ctx context.Context, posts []judged) error {
	var changes []change
	var toAsk []ledger.PostNum
	kept := 0
	for i := range posts {
		c, what := r.judge(&posts[i])
		switch what {
		case verdictChanged:
			changes = append(changes, c)
		case verdictAsk:
			toAsk = append(toAsk, posts[i].num)
		case verdictKept:
			kept++
		case verdictSame:
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.diff.Judged += len(posts)
	r.diff.LLMKept += kept
	r.toAsk = append(r.toAsk, toAsk...)
	r.diff.ToAsk = len(r.toAsk)
	for _, c := range changes {
		if c.to.Reasons == nil && r.diff.samples(rankOf(c)) {
			c.to = r.cascade.guess(c.item).Classification
		}
		r.note(c)
	}
	return r.flushWhen(ctx, recordBatch)
}

// verdict is what comes of judging a post again.
type verdict uint8

const (
	verdictSame verdict = iota
	verdictChanged
	verdictAsk  // a language model must be asked
	verdictKept // a language model's decision stands
)

// judge explains only what is written or shown: that is most of the speed of a
// replay of rules.
func (r *reclassifier) judge(j *judged) (change, verdict) {
	s := r.past.posts[j.num]
	by, byLLM := r.past.ways[j.num]
	if r.o.Learned == nil {
		v := r.o.Keyword.Judge(&j.item)
		sure := v.Matched && v.Confidence >= r.cascade.o.KeywordSettles
		if w, over := r.leave(byLLM, by, sure); over {
			return change{}, w
		}
		d := ledger.Classification{Direction: v.Direction, Relevance: v.Relevance, Interest: v.Interest}
		if c, what := r.compare(j, s, d); r.o.DryRun || what == verdictSame {
			return c, what
		}
	}
	g := r.cascade.guess(&j.item)
	if w, over := r.leave(byLLM, by, g.sure); over {
		return change{}, w
	}
	return r.compare(j, s, g.Classification)
}

// leave reports whether the stages before the language model have no say.
func (r *reclassifier) leave(byLLM bool, by asked, sure bool) (verdict, bool) {
	switch {
	case sure:
		return verdictSame, false
	case r.o.LLM != nil && byLLM && by.model == r.o.LLM.Model() && by.prompt == r.o.LLM.PromptHash():
		return verdictKept, true
	case r.o.LLM != nil:
		return verdictAsk, true
	case byLLM:
		return verdictKept, true
	default:
		return verdictSame, false
	}
}

func (r *reclassifier) compare(j *judged, s standing, d ledger.Classification) (change, verdict) {
	from := r.past.directions[s.direction]
	if from == d.Direction && near(s.relevance, d.Relevance) && near(s.interest, d.Interest) {
		return change{}, verdictSame
	}
	return change{
		post: j.num, item: &j.item, from: from, relevance: float64(s.relevance), interest: float64(s.interest),
		revision: int(s.revision), to: d,
	}, verdictChanged
}

func near(a float32, b float64) bool {
	d := float64(a) - b
	return -same < d && d < same
}
