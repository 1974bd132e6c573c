package classify

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"vesti.nixg.ru/classify/keyword"
	"vesti.nixg.ru/classify/learned"
	"vesti.nixg.ru/classify/llm"
	"vesti.nixg.ru/ledger"
)

const (
	defaultSamples = 20
	// same is the difference of a score that counts as none: what the ledger keeps
	// has three digits.
	same = 0.0015
	// guessedAsk is how long a language model is taken to need where none was ever
	// asked.
	guessedAsk = 3 * time.Second
	// recordBatch is how many decisions are written at once.
	recordBatch = 500
)

// Recorder is where decisions on history are written.
type Recorder interface {
	// RecordEach writes events each on its own; the Seq of a refused one is zero.
	RecordEach(ctx context.Context, events []ledger.Event) ([]ledger.Seq, error)
}

// ReclassifyOptions say what history is judged by and how much of it. Keyword is
// required.
type ReclassifyOptions struct {
	Keyword *keyword.Rules
	Learned *learned.Model // nil for none
	// LLM is asked about what the stages before it are not sure of, unless it
	// decided the post with the same prompt already. Nil leaves the decisions of
	// language models as they are, but where the stages before are sure now.
	LLM *llm.Classifier
	// KeywordSettles and LearnedSettles are as in CascadeOptions.
	KeywordSettles, LearnedSettles float64

	Since     time.Time        // posts fetched since; zero means all
	Direction ledger.Direction // posts that are in it now; "" means all

	DryRun  bool
	Samples int // of the diff; 0 means 20
	Workers int // for rules and the learned model; 0 means one a CPU
	// LLMWorkers is how many posts a language model is asked about at once; 0
	// means 1.
	LLMWorkers int
	Actor      ledger.Actor // "" means ledger.ActorOperator
	// Progress hears now and then how far it is; it is not called concurrently.
	Progress func(ReclassifyProgress)
}

// ReclassifyProgress is how far a Reclassify is.
type ReclassifyProgress struct {
	Step  string // "reading", "judging", "asking"
	Done  uint64
	Total uint64
}

// Reclassify judges the classified posts of the ledger again and returns what
// changes. In a dry run nothing is written, and nothing asked of a language
// model: the posts that it would be asked about are counted. Otherwise each
// changed decision is written as a replay, which counts for no day and moves no
// queue. Posts that an editor has decided are left alone. Run twice, the second
// changes nothing.
//
// It judges the posts as they are when it begins; one that is revised meanwhile
// refuses its new decision and is counted as refused.
func Reclassify(ctx context.Context, h History, to Recorder, o ReclassifyOptions) (Diff, error) {
	if o.Samples == 0 {
		o.Samples = defaultSamples
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Actor == "" {
		o.Actor = ledger.ActorOperator
	}
	if o.Progress == nil {
		o.Progress = func(ReclassifyProgress) {}
	}
	var model *learned.Classifier
	if o.Learned != nil {
		model = new(learned.Classifier)
		model.Use(o.Learned)
	}
	r := &reclassifier{
		o: o, h: h, to: to, head: h.Head(),
		cascade: NewCascade(CascadeOptions{
			Keyword: keyword.New(o.Keyword), Learned: model, KeywordSettles: o.KeywordSettles, LearnedSettles: o.LearnedSettles,
		}),
		diff: newDiff(o),
	}
	err := r.run(ctx)
	return r.diff, err
}

// reclassifier is one Reclassify.
type reclassifier struct {
	o       ReclassifyOptions
	h       History
	to      Recorder
	head    ledger.Seq
	cascade *Cascade
	past    *past
	diff    Diff

	mu      sync.Mutex // of diff and pending
	pending []ledger.Event
	changes []change
	toAsk   []ledger.PostNum
}

func (r *reclassifier) run(ctx context.Context) (err error) {
	every := ticker(r.o.Progress)
	r.past, err = readPast(ctx, r.h, r.head, func(done ledger.Seq) {
		every("reading", uint64(done), uint64(r.head))
	})
	if err != nil {
		return err
	}
	if err := r.judgeAll(ctx); err != nil {
		return err
	}
	r.diff.AskTime = r.past.askTime()
	if r.diff.AskTime == 0 {
		r.diff.AskTime = guessedAsk
	}
	if !r.o.DryRun {
		if err := r.askAll(ctx); err != nil {
			return errors.Join(err, r.flush(ctx))
		}
	}
	if err := r.flush(ctx); err != nil {
		return err
	}
	r.diff.finish()
	r.o.Progress(ReclassifyProgress{Step: "judging", Done: uint64(r.head), Total: uint64(r.head)})
	return nil
}

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
			if some = append(some, j); len(some) == batch/4 {
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

// judgeSome judges posts and notes what changes. While nothing changes, nothing
// is explained: that is most of a replay's speed.
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

func (r *reclassifier) judge(j *judged) (change, verdict) {
	s := r.past.posts[j.num]
	by, byLLM := r.past.ways[j.num]
	if r.o.Learned == nil {
		v := r.o.Keyword.Judge(&j.item)
		sure := v.Matched && v.Confidence >= r.cascade.o.KeywordSettles
		if w, over := r.leave(byLLM, by, sure); over {
			return change{}, w
		}
		if r.equal(s, v.Direction, v.Relevance, v.Interest) {
			return change{}, verdictSame
		}
	}
	g := r.cascade.guess(&j.item)
	if w, over := r.leave(byLLM, by, g.sure); over {
		return change{}, w
	}
	return r.compare(j.num, j.item.Title, s, g.Classification)
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

func (r *reclassifier) equal(s standing, d ledger.Direction, relevance, interest float64) bool {
	return r.past.directions[s.direction] == d && near(s.relevance, relevance) && near(s.interest, interest)
}

func near(a float32, b float64) bool {
	d := float64(a) - b
	return -same < d && d < same
}

func (r *reclassifier) compare(num ledger.PostNum, title string, s standing, d ledger.Classification) (change, verdict) {
	if r.equal(s, d.Direction, d.Relevance, d.Interest) {
		return change{}, verdictSame
	}
	return change{
		post: num, title: title, from: r.past.directions[s.direction], relevance: float64(s.relevance), interest: float64(s.interest),
		revision: int(s.revision), to: d,
	}, verdictChanged
}

// note takes a change into the diff and among what is to be written. The caller
// holds mu.
func (r *reclassifier) note(c change) {
	r.diff.add(c)
	if !r.o.DryRun {
		r.pending = append(r.pending, ledger.NewEvent(r.o.Actor, c.post, "", ledger.PostClassified{
			Classification: c.to, Revision: c.revision, Replay: true,
		}))
		r.changes = append(r.changes, c)
	}
}

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

// askOne asks about one post. One that fails keeps its decision; a server that
// goes away ends the run.
func (r *reclassifier) askOne(ctx context.Context, num ledger.PostNum) error {
	post, err := r.h.Post(ctx, num)
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
	c, _ := r.compare(num, post.Item.Title, r.past.posts[num], d)
	if c.post == 0 { // the same, by another model: noted, so that it is not asked again
		r.pending = append(r.pending, ledger.NewEvent(r.o.Actor, num, "", ledger.PostClassified{
			Classification: d, Revision: post.State.Revision, Replay: true,
		}))
		r.changes = append(r.changes, change{})
		return r.flushWhen(ctx, 1)
	}
	r.note(c)
	return r.flushWhen(ctx, 1)
}

func (r *reclassifier) flush(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.flushWhen(context.WithoutCancel(ctx), 1)
}

// flushWhen writes what is pending once it is so many. The caller holds mu.
func (r *reclassifier) flushWhen(ctx context.Context, many int) error {
	if len(r.pending) < many {
		return nil
	}
	seqs, err := r.to.RecordEach(ctx, r.pending)
	if err != nil {
		return fmt.Errorf("write decisions: %w", err)
	}
	for i, seq := range seqs {
		switch {
		case seq == 0 && r.changes[i].post != 0:
			r.diff.refuse(r.changes[i])
		case seq != 0 && r.changes[i].post != 0:
			r.diff.Written++
		}
	}
	r.pending, r.changes = nil, nil
	return nil
}

// ticker calls f at most a few times a second.
func ticker(f func(ReclassifyProgress)) func(step string, done, total uint64) {
	last := time.Now()
	calls := 0
	return func(step string, done, total uint64) {
		if calls++; calls%256 != 0 && step != "asking" {
			return
		}
		if now := time.Now(); now.Sub(last) >= progressInterval {
			last = now
			f(ReclassifyProgress{Step: step, Done: done, Total: total})
		}
	}
}
