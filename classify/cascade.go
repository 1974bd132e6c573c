package classify

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"vesti.nixg.ru/classify/keyword"
	"vesti.nixg.ru/classify/learned"
	"vesti.nixg.ru/classify/llm"
	"vesti.nixg.ru/ledger"
)

const (
	// The defaults are where nine of ten verdicts were right on labelled posts.
	defaultKeywordSettles = 0.75
	defaultLearnedSettles = 0.9

	// candidateConfidence is what the learned model must give a direction for a
	// language model to be asked about it.
	candidateConfidence = 0.3
	// offTopic is the relevance of a post that belongs to no direction.
	offTopic = 0.05
)

// CascadeOptions are what NewCascade needs. Keyword is required.
type CascadeOptions struct {
	Keyword *keyword.Classifier
	Learned *learned.Classifier // nil switches the learned model off
	LLM     *llm.Classifier     // nil for none
	// KeywordSettles is the confidence from which the rules' verdict stands where
	// a later stage exists; 0 means 0.75.
	KeywordSettles float64
	// LearnedSettles is the same for the learned model; 0 means 0.9.
	LearnedSettles float64
	// Provisional shows the best guess while a post waits for the language model.
	Provisional bool
	// FullText fetches the article of a post of which the crawler has only a
	// summary or a title, where that is not enough to be sure, within 20 s. The
	// text is judged and not stored. Nil fetches none; an error leaves the summary
	// to be judged.
	FullText func(ctx context.Context, item ledger.Item) (string, error)
	Logger   *slog.Logger // nil logs nothing
}

// Cascade is the Decider that vesti runs: the keyword rules, then the learned
// model, then a language model. Each stage settles what it is sure of; the last
// one that is there settles the rest. It is safe for concurrent use.
type Cascade struct {
	o        CascadeOptions
	articles articles
}

// NewCascade returns a cascade of the stages that o has.
func NewCascade(o CascadeOptions) *Cascade {
	o.KeywordSettles = cmp.Or(o.KeywordSettles, defaultKeywordSettles)
	o.LearnedSettles = cmp.Or(o.LearnedSettles, defaultLearnedSettles)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Cascade{o: o}
}

// Decide implements Decider.
func (c *Cascade) Decide(ctx context.Context, claim ledger.Claim) (Decision, error) {
	if err := ctx.Err(); err != nil {
		return Decision{}, err
	}
	g := c.guess(&claim.Item)
	if !g.sure && c.o.FullText != nil && summaryOnly(&claim.Item) {
		text := c.fullText(ctx, claim)
		if err := ctx.Err(); err != nil {
			return Decision{}, err
		}
		if len(text) > len(claim.Item.Text) {
			claim.Item.Text = text
			g = c.guess(&claim.Item)
		}
	}
	switch {
	case c.o.LLM == nil || g.sure && claim.Stage == ledger.StageFirst:
		return Decision{Classification: g.Classification, Spent: g.spent}, nil
	case claim.Stage == ledger.StageFirst:
		return Decision{Classification: g.Classification, HandOn: true, Provisional: c.o.Provisional, Spent: g.spent}, nil
	default:
		return c.askLLM(ctx, claim, g)
	}
}

// guess is what the stages that are always at hand make of a post.
type guess struct {
	ledger.Classification
	sure       bool
	candidates []ledger.Direction
	spent      []Spent
}

func (c *Cascade) guess(item *ledger.Item) guess {
	started := time.Now()
	rules := c.o.Keyword.Rules()
	d, v := rules.Explain(item)
	g := guess{Classification: d, sure: v.Matched && v.Confidence >= c.o.KeywordSettles, candidates: rules.Candidates(v)}
	g.spend(WayKeyword, started)
	var model *learned.Model
	if c.o.Learned != nil {
		model = c.o.Learned.Model()
	}
	if model == nil {
		return g
	}
	started = time.Now()
	lv, reasons := model.Explain(item, d.Reasons)
	g.spend(WayLearned, started)
	if lv.HasInterest {
		g.Interest = round((g.Interest + lv.Interest) / 2)
	}
	if lv.Direction != learned.None && lv.Confidence >= candidateConfidence && !slices.Contains(g.candidates, lv.Direction) {
		g.candidates = append(g.candidates, lv.Direction)
	}
	if g.sure || !slices.Contains(rules.Directions(), lv.Direction) && lv.Direction != learned.None {
		return g
	}
	g.sure = lv.Confidence >= c.o.LearnedSettles
	if g.sure || lv.Confidence > g.Confidence {
		g.take(lv, model, reasons, item)
	}
	return g
}

func (g *guess) spend(way string, since time.Time) {
	g.spent = append(g.spent, Spent{way, time.Since(since)})
}

// take makes the learned model's verdict the guess.
func (g *guess) take(v learned.Verdict, m *learned.Model, reasons []ledger.Reason, item *ledger.Item) {
	g.Stage, g.Model, g.ModelDigest, g.Confidence = WayLearned, WayLearned, m.Version, v.Confidence
	g.Direction, g.Relevance = v.Direction, v.Confidence
	if v.Direction == learned.None {
		g.Direction, g.Relevance = item.Direction, offTopic
		reasons = append(reasons, ledger.Reason{Stage: WayLearned, Note: "belongs to no direction: the source's direction"})
	}
	g.Reasons = append(g.Reasons, reasons...)
}

func (c *Cascade) askLLM(ctx context.Context, claim ledger.Claim, g guess) (Decision, error) {
	started := time.Now()
	d, err := c.o.LLM.Classify(ctx, claim, g.candidates)
	g.spend(WayLLM, started)
	if err != nil {
		return Decision{Spent: g.spent}, fmt.Errorf("ask the language model: %w", err)
	}
	d.RuleSet = g.RuleSet
	d.Reasons = append(d.Reasons, g.Reasons...)
	return Decision{Classification: d, Spent: g.spent}, nil
}
