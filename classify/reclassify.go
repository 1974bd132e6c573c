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
	Of    string // what is counted: "events", or "posts" where a model is asked
}

// Reclassify judges the classified posts of the ledger again and returns what
// changes. In a dry run nothing is written, and nothing asked of a language
// model: the posts that it would be asked about are counted. Otherwise each
// changed decision is written as a replay, which counts for no day and moves no
// queue. Posts that an editor has decided are left alone. Run twice, the second
// changes nothing.
//
// It judges the posts as they are when it begins; one that is revised, put back
// into the queue or reviewed meanwhile refuses its new decision and is counted as
// refused.
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

	mu      sync.Mutex // of what follows, and of diff
	pending []ledger.Event
	changes []change // of pending, in its order; the zero change for one that is none
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
	r.o.Progress(ReclassifyProgress{Step: "judging", Done: uint64(r.head), Total: uint64(r.head), Of: "events"})
	return nil
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
			of := "events"
			if step == "asking" {
				of = "posts"
			}
			f(ReclassifyProgress{Step: step, Done: done, Total: total, Of: of})
		}
	}
}
