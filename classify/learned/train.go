package learned

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"vesti.nixg.ru/classify/words"
	"vesti.nixg.ru/ledger"
)

const (
	// minPerClass is the number of examples from which a direction can be learned.
	minPerClass = 15
	// minPicks is the number of picks, and of rejections, from which interest can.
	minPicks = 25
	// heldOutShare of the examples, one in so many, is kept out of training. Which
	// ones is told by the post's ID, so that no later model has trained on them
	// either.
	heldOutShare = 5
	// editorWeight is what an editor's example counts against one of the rules.
	editorWeight = 2
	// minHeldOut is the F1 below which a model is of no use.
	minHeldOut = 0.5
	// tolerance is by how much a new model may be worse than the one in force: the
	// noise of a held-out set.
	tolerance = 0.01

	rejected, picked = 0, 1 // classes of interest
)

// Errors of Train.
var (
	// ErrTooFew: there are not enough examples of two directions.
	ErrTooFew = errors.New("too few examples to learn from")
	// ErrWorse: the new model does worse on held-out examples than the one in
	// force, or too badly to be of use. The message has the figures.
	ErrWorse = errors.New("the new model is not taken")
)

// Example is a post to learn from.
type Example struct {
	ID   ledger.PostID
	Item ledger.Item
	// Direction is the post's; None says that it belongs to none.
	Direction ledger.Direction
	// ByEditor: an editor said so. Else the keyword rules did, and then the words
	// that they matched are left out: what they know need not be learned, what
	// stands around their keywords is the point.
	ByEditor bool
	// Unlabelled: nothing is known of the direction, only Verdict.
	Unlabelled bool
	Verdict    ledger.Verdict
	Reasons    []ledger.Reason // of the keyword rules
}

// Train fits a model to the examples and returns it unless it does worse on the
// held-out ones than the model in force (nil for none). rules is the hash of the
// rule set that the reasons come from. Equal examples give equal models. It
// returns errors matching ErrTooFew or ErrWorse.
func Train(examples []Example, rules string, now time.Time, inForce *Model) (*Model, error) {
	set := prepare(examples, heldOutShare)
	if len(set.classes) < 2 {
		return nil, fmt.Errorf("%w: %d posts of %d directions with %d or more", ErrTooFew, len(examples), len(set.classes), minPerClass)
	}
	m := set.fit(rules, now)
	m.HeldOut = set.evaluate(m)
	switch {
	case m.HeldOut < minHeldOut:
		return nil, fmt.Errorf("%w: F1 %.3f on %d held-out posts, want %.2f", ErrWorse, m.HeldOut, len(set.heldOut), minHeldOut)
	case inForce != nil:
		if before := set.evaluate(inForce); m.HeldOut < before-tolerance {
			return nil, fmt.Errorf("%w: F1 %.3f on %d held-out posts, the one in force has %.3f", ErrWorse, m.HeldOut, len(set.heldOut), before)
		}
	}
	return m, nil
}

// Fit is Train on all examples, without a check: to measure what the method can
// do on a labelled set.
func Fit(examples []Example, rules string, now time.Time) (*Model, error) {
	set := prepare(examples, 0)
	if len(set.classes) < 2 {
		return nil, fmt.Errorf("%w: %d posts of %d directions with %d or more", ErrTooFew, len(examples), len(set.classes), minPerClass)
	}
	return set.fit(rules, now), nil
}

func (s *trainingSet) fit(rules string, now time.Time) *Model {
	m := &Model{
		Info: Info{
			Trained: now.UTC(), Classes: s.classes, Rules: rules, Version: s.version(rules), Examples: s.counts,
		},
		directions: *train(s.train, len(s.classes)),
	}
	if s.picks[picked] >= minPicks && s.picks[rejected] >= minPicks {
		m.interest = train(s.interest, 2)
	}
	m.quantise()
	return m
}

// trainingSet is what examples come to.
type trainingSet struct {
	classes  []ledger.Direction
	train    []sample
	heldOut  []Example
	interest []sample
	picks    [2]int
	counts   Counts
	digest   []string
	share    byte
}

// prepare makes a training set of which one example in heldOut is kept out; 0
// keeps none.
func prepare(examples []Example, heldOut byte) trainingSet {
	s := trainingSet{share: heldOut}
	examples = slices.Clone(examples)
	slices.SortFunc(examples, func(a, b Example) int { return strings.Compare(string(a.ID[:]), string(b.ID[:])) })
	number := make(map[ledger.Direction]int)
	for _, e := range examples {
		if !e.Unlabelled {
			number[e.Direction]++
		}
	}
	for _, d := range slices.Sorted(maps.Keys(number)) {
		if number[d] >= minPerClass {
			s.classes = append(s.classes, d)
		}
	}
	var x extractor
	for _, e := range examples {
		s.add(&x, e)
	}
	return s
}

func (s *trainingSet) add(x *extractor, e Example) {
	s.digest = append(s.digest, e.ID.String(), string(e.Direction), fmt.Sprint(e.ByEditor, e.Unlabelled), string(e.Verdict))
	weight := float32(1)
	if e.ByEditor {
		weight = editorWeight
	}
	reasons := e.Reasons
	if !e.ByEditor {
		x.masked = matchedStems(reasons, &x.stemmer)
		reasons = nil // else it would learn the rules by heart
	}
	features := slices.Clone(x.features(&e.Item, reasons))
	x.masked = nil
	switch e.Verdict {
	case ledger.VerdictPicked:
		s.picks[picked]++
		s.interest = append(s.interest, sample{features: features, class: picked, weight: 1})
	case ledger.VerdictRejected:
		s.picks[rejected]++
		s.interest = append(s.interest, sample{features: features, class: rejected, weight: 1})
	case ledger.VerdictNone:
	}
	s.counts.Picks = s.picks[picked] + s.picks[rejected]
	class := slices.Index(s.classes, e.Direction)
	if e.Unlabelled || class < 0 {
		return
	}
	if e.ByEditor {
		s.counts.Editor++
	} else {
		s.counts.Rules++
	}
	if s.share > 0 && e.ID[len(e.ID)-1]%s.share == 0 {
		s.counts.HeldOut++
		s.heldOut = append(s.heldOut, e)
		return
	}
	s.train = append(s.train, sample{features: features, class: class, weight: weight})
}

// matchedStems lists the stems of the words that the rules matched.
func matchedStems(reasons []ledger.Reason, stemmer *words.Stemmer) map[string]struct{} {
	masked := make(map[string]struct{})
	var s words.Scanner
	for _, r := range reasons {
		s.Reset(r.Matched)
		for s.Next() {
			masked[stemmer.Stem(string(s.Folded()), s.Script())] = struct{}{}
		}
	}
	return masked
}

func (s *trainingSet) version(rules string) string {
	return ledger.HashOf(append(s.digest, rules, fmt.Sprint(formatVersion, epochs))...).String()[:12]
}

// evaluate returns the macro-averaged F1 of a model on the held-out examples:
// on those of editors where there are some of them, since they are the truth.
func (s *trainingSet) evaluate(m *Model) float64 {
	examples := s.heldOut
	var byEditor []Example
	for _, e := range examples {
		if e.ByEditor {
			byEditor = append(byEditor, e)
		}
	}
	if len(byEditor) >= minPerClass*2 {
		examples = byEditor
	}
	right, wrong, missed := make(map[ledger.Direction]float64), make(map[ledger.Direction]float64), make(map[ledger.Direction]float64)
	for _, e := range examples {
		if v := m.Judge(&e.Item, e.Reasons); v.Direction == e.Direction {
			right[e.Direction]++
		} else {
			wrong[v.Direction]++
			missed[e.Direction]++
		}
	}
	sum, n := 0.0, 0.0
	for _, d := range s.classes {
		if support := right[d] + missed[d]; support > 0 {
			sum += 2 * right[d] / (2*right[d] + wrong[d] + missed[d])
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return sum / n
}
