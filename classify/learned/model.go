package learned

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"vesti.nixg.ru/ledger"
)

// None is the class of posts that belong to no direction.
const None ledger.Direction = ""

// Model is a trained model. It does not change and is safe for concurrent use.
type Model struct {
	Info
	directions linear
	interest   *linear // rejected, picked; nil before there are enough of both
}

// Info says where a model comes from.
type Info struct {
	Version  string             `json:"version"` // hash of what it was trained on and how
	Trained  time.Time          `json:"trained"`
	Classes  []ledger.Direction `json:"classes"` // None among them where it can tell
	Rules    string             `json:"rules"`   // hash of the rule set whose reasons it knows
	Examples Counts             `json:"examples"`
	// HeldOut is the macro-averaged F1 on the examples that were kept out of its
	// training, 0 to 1.
	HeldOut float64 `json:"held_out"`
}

// Counts are numbers of examples.
type Counts struct {
	Editor  int `json:"editor"`   // labelled by an editor's decision
	Rules   int `json:"rules"`    // by the keyword rules
	Picks   int `json:"picks"`    // picked or rejected
	HeldOut int `json:"held_out"` // of Editor and Rules, not trained on
}

// Verdict is what a model says of a post.
type Verdict struct {
	Direction  ledger.Direction // None: it belongs to no direction
	Confidence float64          // 0 to 1
	Interest   float64          // 0 to 1
	// HasInterest: the model has learned from picks and rejections.
	HasInterest bool
}

// Judge says what the model makes of an item, given the reasons of the keyword
// rules.
func (m *Model) Judge(item *ledger.Item, reasons []ledger.Reason) Verdict {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	v, _ := m.judge(s, item, reasons)
	return v
}

// maxReasons is the number of features that Explain names.
const maxReasons = 6

// Explain is Judge with the features that spoke most for the direction.
func (m *Model) Explain(item *ledger.Item, reasons []ledger.Reason) (Verdict, []ledger.Reason) {
	s := scratches.Get().(*scratch)
	s.names = make(map[uint32]string)
	defer func() {
		s.names = nil
		scratches.Put(s)
	}()
	v, class := m.judge(s, item, reasons)
	type gain struct {
		name string
		of   float32
	}
	var gains []gain
	for _, e := range s.vector {
		row := m.directions.weights[int(e.bucket)*m.directions.classes:][:m.directions.classes]
		if g := (row[class] - mean(row)) * e.value; g > 0 {
			gains = append(gains, gain{s.names[e.bucket], g})
		}
	}
	slices.SortFunc(gains, func(a, b gain) int { return cmp.Or(cmp.Compare(b.of, a.of), cmp.Compare(a.name, b.name)) })
	var out []ledger.Reason
	for _, g := range gains[:min(len(gains), maxReasons)] {
		out = append(out, ledger.Reason{Stage: stage, Rule: "learned", Matched: g.name, Weight: round(float64(g.of)), Note: string(v.Direction)})
	}
	return v, out
}

const stage = "learned"

// scratch is the memory that one judgement needs.
type scratch struct {
	extractor
	vector []entry
	p      []float32
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

func (m *Model) judge(s *scratch, item *ledger.Item, reasons []ledger.Reason) (v Verdict, class int) {
	features := s.features(item, reasons)
	if m.interest != nil {
		s.vector = m.interest.vector(features, s.vector)
		p := s.probabilities(m.interest)
		v.Interest, v.HasInterest = round(float64(p[picked])), true
	}
	s.vector = m.directions.vector(features, s.vector)
	p := s.probabilities(&m.directions)
	for k := range p {
		if p[k] > p[class] {
			class = k
		}
	}
	v.Direction, v.Confidence = m.Classes[class], round(float64(p[class]))
	return v, class
}

func (s *scratch) probabilities(m *linear) []float32 {
	s.p = slices.Grow(s.p[:0], m.classes)[:m.classes]
	m.scores(s.vector, s.p)
	softmax(s.p)
	return s.p
}

func mean(row []float32) float32 {
	sum := float32(0)
	for _, w := range row {
		sum += w
	}
	return sum / float32(len(row))
}

// round keeps three digits, so that equal decisions are equal when compared.
func round(f float64) float64 { return math.Round(f*1000) / 1000 }
