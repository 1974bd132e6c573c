package classify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"vesti.nixg.ru/classify/keyword"
	"vesti.nixg.ru/classify/learned"
	"vesti.nixg.ru/ledger"
)

const (
	defaultTrainEvery = time.Hour
	// retrainReviews, and retrainGrowth as a share of the posts that rules are sure
	// of, are how much must be new for another training.
	retrainReviews = 10
	retrainGrowth  = 0.25
	// sureOf is the confidence from which a verdict of the rules is an example.
	sureOf = 0.8
	// perDirection bounds the examples of a direction; the newest are taken.
	perDirection = 600
	// maxReviews bounds those of editors.
	maxReviews = 5000
)

// TrainerOptions are what NewTrainer needs. All but Every, Logger and Now are
// required.
type TrainerOptions struct {
	History History
	Store   ledger.Store // of the namespace learned.Namespace
	Keyword *keyword.Classifier
	Learned *learned.Classifier // gets the models
	Every   time.Duration       // between two looks at what is new; 0 means 1 h
	Logger  *slog.Logger        // nil logs nothing
	Now     func() time.Time    // nil means time.Now
}

// Trainer trains the learned model again when there is enough that is new: from
// editors' decisions, and from posts that the keyword rules are sure of.
type Trainer struct {
	o TrainerOptions

	mu      sync.Mutex // one training at a time
	read    ledger.Seq
	reviews map[ledger.PostNum]struct{}
	sure    map[ledger.Direction][]ledger.PostNum // the newest last
	changed int                                   // reviews since the last training
	grown   int                                   // sure posts since
	rules   string                                // of the last training
}

// NewTrainer returns a trainer.
func NewTrainer(o TrainerOptions) *Trainer {
	o.Every = cmp.Or(o.Every, defaultTrainEvery)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Trainer{o: o, reviews: make(map[ledger.PostNum]struct{}), sure: make(map[ledger.Direction][]ledger.PostNum)}
}

// Run puts the stored model in force and then trains when there is enough that
// is new, until ctx ends. It returns nil then. A training that fails, or whose
// model is not better, leaves the model in force and is tried again later.
func (t *Trainer) Run(ctx context.Context) error {
	if err := t.o.Learned.Load(ctx, t.o.Store); err != nil && ctx.Err() == nil {
		t.o.Logger.Warn("the stored model cannot be used: training another", slog.Any("error", err))
	}
	tick := time.NewTicker(t.o.Every)
	defer tick.Stop()
	for {
		_, err := t.Train(ctx, false)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, learned.ErrTooFew), errors.Is(err, learned.ErrWorse):
			t.o.Logger.Info("no new model", slog.Any("reason", err))
		case err != nil:
			t.o.Logger.Warn("cannot train", slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Train trains a model, puts it in force and stores it. Without force it does so
// only where there is enough that is new; it then returns the model in force,
// which may be nil. Errors match learned.ErrTooFew, learned.ErrWorse or are
// those of the ledger.
func (t *Trainer) Train(ctx context.Context, force bool) (*learned.Model, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.look(ctx); err != nil {
		return nil, err
	}
	rules := t.o.Keyword.Rules()
	inForce := t.o.Learned.Model()
	if !force && !t.due(rules.Hash(), inForce) {
		return inForce, nil
	}
	examples, err := t.examples(ctx, rules)
	if err != nil {
		return nil, err
	}
	t.changed, t.grown, t.rules = 0, 0, rules.Hash()
	m, err := learned.Train(examples, rules.Hash(), t.o.Now(), inForce)
	if err != nil {
		return nil, err
	}
	if inForce != nil && inForce.Version == m.Version {
		return inForce, nil
	}
	if err := learned.Save(ctx, t.o.Store, m); err != nil {
		return nil, err
	}
	t.o.Learned.Use(m)
	t.o.Logger.Info("a new model is in force", slog.String("version", m.Version), slog.Float64("held_out_f1", m.HeldOut),
		slog.Int("by_editor", m.Examples.Editor), slog.Int("by_rules", m.Examples.Rules))
	return m, nil
}

func (t *Trainer) due(rules string, inForce *learned.Model) bool {
	known := 0
	for _, posts := range t.sure {
		known += len(posts)
	}
	switch {
	case inForce == nil && t.rules == "":
		return true
	case inForce != nil && t.rules == "" && inForce.Rules == rules:
		t.rules, t.changed, t.grown = rules, 0, 0 // as it was before the restart
		return false
	}
	return t.rules != rules || t.changed >= retrainReviews || float64(t.grown) >= retrainGrowth*float64(known) && t.grown > 0
}

// look reads what happened since the last look.
func (t *Trainer) look(ctx context.Context) error {
	head := t.o.History.Head()
	err := eachEvent(ctx, t.o.History, t.read, head, false, func(e ledger.Event) error {
		switch p := e.Payload.(type) {
		case ledger.PostReviewed:
			t.changed++
			if p.Verdict == ledger.VerdictNone && p.Direction == "" {
				delete(t.reviews, e.Post)
			} else {
				t.reviews[e.Post] = struct{}{}
			}
		case ledger.PostClassified:
			if d, ok := exampleOf(p); ok {
				t.grown++
				t.sure[d] = append(t.sure[d], e.Post)
				if extra := len(t.sure[d]) - 2*perDirection; extra >= 0 { // cut now and then
					t.sure[d] = slices.Clone(t.sure[d][extra+perDirection:])
				}
			}
		}
		t.read = e.Seq
		return nil
	})
	if err == nil {
		t.read = max(t.read, head)
	}
	return err
}

// exampleOf returns the direction that a decision may be an example of: one that
// the rules were sure of, or none where they saw another subject.
func exampleOf(p ledger.PostClassified) (ledger.Direction, bool) {
	switch {
	case p.Provisional:
		return "", false
	case p.Stage == WayKeyword && p.Confidence >= sureOf:
		return p.Direction, true
	case p.Stage == WayDefault && p.Relevance <= offTopic:
		return learned.None, true
	default:
		return "", false
	}
}

// examples judges the posts to learn from by the rules in force: what they say
// now counts, not what was said when they were other rules.
func (t *Trainer) examples(ctx context.Context, rules *keyword.Rules) ([]learned.Example, error) {
	var all []learned.Example
	taken := make(map[ledger.PostNum]struct{})
	reviewed := slices.Sorted(maps.Keys(t.reviews))
	for _, num := range reviewed[max(0, len(reviewed)-maxReviews):] {
		e, ok, err := t.reviewed(ctx, rules, num)
		if err != nil {
			return nil, err
		}
		taken[num] = struct{}{}
		if ok {
			all = append(all, e)
		}
	}
	for _, d := range slices.Sorted(maps.Keys(t.sure)) {
		posts := t.sure[d]
		for _, num := range posts[max(0, len(posts)-perDirection):] {
			if _, dup := taken[num]; dup {
				continue
			}
			taken[num] = struct{}{}
			p, err := t.post(ctx, num)
			if err != nil {
				return nil, err
			}
			c, v := rules.Explain(&p.Item)
			switch {
			case p.Item.Text == "":
			case v.Matched && v.Confidence >= sureOf:
				all = append(all, learned.Example{ID: p.ID, Item: p.Item, Direction: v.Direction, Reasons: c.Reasons})
			case v.Elsewhere != "":
				all = append(all, learned.Example{ID: p.ID, Item: p.Item, Direction: learned.None, Reasons: c.Reasons})
			}
		}
	}
	return all, nil
}

// post reads a post, which is empty where it is damaged: one that is lost must
// not end all training.
func (t *Trainer) post(ctx context.Context, num ledger.PostNum) (ledger.Post, error) {
	p, err := t.o.History.Post(ctx, num)
	if errors.Is(err, ledger.ErrUnreadable) {
		return ledger.Post{}, nil
	}
	if err != nil {
		return ledger.Post{}, fmt.Errorf("read an example: %w", err)
	}
	return p, nil
}

// reviewed makes an example of an editor's decision. A rejection says nothing of
// the direction unless the editor corrected it.
func (t *Trainer) reviewed(ctx context.Context, rules *keyword.Rules, num ledger.PostNum) (learned.Example, bool, error) {
	p, err := t.post(ctx, num)
	if err != nil {
		return learned.Example{}, false, err
	}
	if p.Item.Text == "" || !p.State.Reviewed {
		return learned.Example{}, false, nil
	}
	c, _ := rules.Explain(&p.Item)
	e := learned.Example{
		ID: p.ID, Item: p.Item, ByEditor: true, Verdict: p.State.Verdict, Reasons: c.Reasons,
		Direction: p.State.EffectiveDirection(),
	}
	e.Unlabelled = p.State.Corrected == "" && p.State.Verdict != ledger.VerdictPicked || e.Direction == ""
	return e, true, nil
}
