package classify

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"vesti.nixg.ru/ledger"
)

// EvalOptions say how labelled texts are measured.
type EvalOptions struct {
	// As gives labels or directions another name before they are compared, on both
	// sides: a set whose "tech" covers Linux is measured with linux as tech.
	As map[ledger.Direction]ledger.Direction
	// Progress hears now and then how many lines were judged.
	Progress func(lines int)
}

// Evaluation is what Evaluate measured.
type Evaluation struct {
	Lines    int     `json:"lines"`
	Skipped  int     `json:"skipped"`  // without text or label
	Unjudged int     `json:"unjudged"` // the last stage failed on them
	Accuracy float64 `json:"accuracy"` // share of right ones among all, 0 to 1
	// MacroF1 is the mean F1 of the directions that both the configuration and the
	// labels have.
	MacroF1    float64             `json:"macro_f1"`
	Directions []DirectionScore    `json:"directions"`
	Stages     []StageScore        `json:"stages"`
	Confusion  map[string][]Counts `json:"confusion"` // by label, what was said
}

// DirectionScore is how well one direction is told.
type DirectionScore struct {
	Direction ledger.Direction `json:"direction"`
	Support   int              `json:"support"` // lines with this label
	Precision float64          `json:"precision"`
	Recall    float64          `json:"recall"`
	F1        float64          `json:"f1"`
	// Measured: it counts for MacroF1.
	Measured bool `json:"measured"`
}

// StageScore is what one stage of the cascade settled, and how well.
type StageScore struct {
	Stage    string  `json:"stage"`
	Settled  int     `json:"settled"`
	Coverage float64 `json:"coverage"` // share of all lines, 0 to 1
	Accuracy float64 `json:"accuracy"`
}

// Counts is one cell of a confusion matrix.
type Counts struct {
	Said  string `json:"said"`
	Lines int    `json:"lines"`
}

// nowhere is what a confusion matrix calls a post that got no direction.
const nowhere = "(none)"

// maxLine bounds a line of labelled text, in bytes.
const maxLine = 4 << 20

// Evaluate judges each line of labelled texts and compares: JSON objects with
// "text", and "direction" or else "label"; "title" and "lang" where they have
// it. A line without direction and label counts as skipped. It returns an error
// matching ledger.ErrInvalid for a line that is no JSON, with its number.
func Evaluate(ctx context.Context, in io.Reader, d Decider, known []ledger.Direction, o EvalOptions) (Evaluation, error) {
	e := evaluator{o: o, known: known, confusion: make(map[ledger.Direction]map[ledger.Direction]int), stages: make(map[string][2]int)}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		var l labelled
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return Evaluation{}, fmt.Errorf("%w: line %d: %w", ledger.ErrInvalid, n, err)
		}
		if err := e.line(ctx, d, l); err != nil {
			return Evaluation{}, fmt.Errorf("line %d: %w", n, err)
		}
		if o.Progress != nil && n%200 == 0 {
			o.Progress(n)
		}
	}
	if err := lines.Err(); err != nil {
		return Evaluation{}, fmt.Errorf("%w: read labelled texts: %w", ledger.ErrInvalid, err)
	}
	return e.finish(), nil
}

// labelled is one line.
type labelled struct {
	Text      string
	Title     string
	Lang      string
	Label     string
	Direction *ledger.Direction
}

type evaluator struct {
	o         EvalOptions
	known     []ledger.Direction
	result    Evaluation
	right     int
	confusion map[ledger.Direction]map[ledger.Direction]int // by label
	stages    map[string][2]int                             // settled, right
}

func (e *evaluator) line(ctx context.Context, d Decider, l labelled) error {
	e.result.Lines++
	want := ledger.Direction(l.Label)
	if l.Direction != nil {
		want = *l.Direction
	}
	if want == "" || l.Text == "" {
		e.result.Skipped++
		return nil
	}
	claim := ledger.Claim{Item: ledger.Item{Title: l.Title, Text: l.Text, Lang: l.Lang}}
	decision, err := d.Decide(ctx, claim)
	if err == nil && decision.HandOn {
		claim.Stage = ledger.StageLLM
		decision, err = d.Decide(ctx, claim)
	}
	if err != nil {
		e.result.Unjudged++ // a failure is counted, and the other lines go on
		return ctx.Err()
	}
	want, got := e.as(want), e.as(decision.Direction)
	if e.confusion[want] == nil {
		e.confusion[want] = make(map[ledger.Direction]int)
	}
	e.confusion[want][got]++
	s := e.stages[decision.Stage]
	s[0]++
	if got == want {
		s[1]++
		e.right++
	}
	e.stages[decision.Stage] = s
	return nil
}

func (e *evaluator) as(d ledger.Direction) ledger.Direction {
	if other, ok := e.o.As[d]; ok {
		return other
	}
	return d
}

func (e *evaluator) finish() Evaluation {
	r := e.result
	judged := r.Lines - r.Skipped - r.Unjudged
	r.Accuracy = share(e.right, judged)
	for _, stage := range slices.Sorted(maps.Keys(e.stages)) {
		s := e.stages[stage]
		r.Stages = append(r.Stages, StageScore{Stage: stage, Settled: s[0], Coverage: share(s[0], judged), Accuracy: share(s[1], s[0])})
	}
	r.Confusion = make(map[string][]Counts)
	said := make(map[ledger.Direction]int)
	for label, row := range e.confusion {
		for _, got := range slices.Sorted(maps.Keys(row)) {
			said[got] += row[got]
			r.Confusion[string(label)] = append(r.Confusion[string(label)], Counts{Said: nameOf(got), Lines: row[got]})
		}
	}
	e.directions(&r, said)
	return r
}

// directions scores each label, and each direction that was said although no
// line has it.
func (e *evaluator) directions(r *Evaluation, said map[ledger.Direction]int) {
	names := make(map[ledger.Direction]bool)
	for _, d := range e.known {
		names[e.as(d)] = true
	}
	all := make(map[ledger.Direction]struct{})
	for label := range e.confusion {
		all[label] = struct{}{}
	}
	for d := range said {
		if d != "" {
			all[d] = struct{}{}
		}
	}
	sum, n := 0.0, 0
	for _, d := range slices.Sorted(maps.Keys(all)) {
		support := 0
		for _, lines := range e.confusion[d] {
			support += lines
		}
		right := e.confusion[d][d]
		s := DirectionScore{
			Direction: d, Support: support, Precision: share(right, said[d]), Recall: share(right, support),
			F1: share(2*right, said[d]+support), Measured: names[d] && support > 0,
		}
		r.Directions = append(r.Directions, s)
		if s.Measured {
			sum += s.F1
			n++
		}
	}
	if n > 0 {
		r.MacroF1 = round(sum / float64(n))
	}
}

func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return round(float64(part) / float64(whole))
}

func nameOf(d ledger.Direction) string {
	if d == "" {
		return nowhere
	}
	return string(d)
}

// WriteText writes the evaluation for a person.
func (e *Evaluation) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d lines, %d without text or label, %d not judged\n", e.Lines, e.Skipped, e.Unjudged)
	fmt.Fprintf(&b, "macro F1 %.3f, accuracy %.3f\n\n", e.MacroF1, e.Accuracy)
	fmt.Fprintf(&b, "%-16s %8s %10s %8s %8s\n", "direction", "lines", "precision", "recall", "F1")
	for _, d := range e.Directions {
		mark := ""
		if !d.Measured {
			mark = "  (not in macro F1)"
		}
		fmt.Fprintf(&b, "%-16s %8d %10.3f %8.3f %8.3f%s\n", d.Direction, d.Support, d.Precision, d.Recall, d.F1, mark)
	}
	fmt.Fprintf(&b, "\n%-16s %8s %10s %8s\n", "settled by", "lines", "coverage", "right")
	for _, s := range e.Stages {
		fmt.Fprintf(&b, "%-16s %8d %10.3f %8.3f\n", s.Stage, s.Settled, s.Coverage, s.Accuracy)
	}
	b.WriteString("\nlabel: what was said\n")
	for _, label := range slices.Sorted(maps.Keys(e.Confusion)) {
		fmt.Fprintf(&b, "  %s:", label)
		for _, c := range e.Confusion[label] {
			fmt.Fprintf(&b, " %s %d", c.Said, c.Lines)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}
