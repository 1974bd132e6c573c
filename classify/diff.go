package classify

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"vesti.nixg.ru/ledger"
)

// Diff is what a Reclassify changes, or would.
type Diff struct {
	RuleSet string `json:"rule_set"` // judged by
	Model   string `json:"model,omitempty"`
	DryRun  bool   `json:"dry_run"`

	Judged   int `json:"judged"`
	Changed  int `json:"changed"` // in direction or scores
	Moved    int `json:"moved"`   // in direction
	Written  int `json:"written"`
	Refused  int `json:"refused"`  // changed meanwhile: revised, reviewed, back in the queue
	Reviewed int `json:"reviewed"` // left alone: an editor has decided
	Pending  int `json:"pending"`  // left alone: in the queue, or parked
	NoText   int `json:"no_text"`  // left alone: retention has removed the text

	LLMKept   int           `json:"llm_kept"`   // a language model's decision stands
	ToAsk     int           `json:"to_ask"`     // a language model must be asked
	Asked     int           `json:"asked"`      // and was
	AskFailed int           `json:"ask_failed"` // and failed: the decision stands
	AskTime   time.Duration `json:"-"`          // for one post
	// EstimatedSeconds is how long the language model needs for ToAsk.
	EstimatedSeconds float64 `json:"estimated_llm_s"`

	Directions []DirectionDiff `json:"directions"`
	Moves      []Move          `json:"moves"`
	Relevance  Shift           `json:"relevance"`
	Interest   Shift           `json:"interest"`
	Samples    []Sample        `json:"samples"`

	limit      int
	picks      []pick // the samples so far, by rank
	llmWorkers int
	directions map[ledger.Direction]*DirectionDiff
	moves      map[Move]int
}

// DirectionDiff is what changes for one direction.
type DirectionDiff struct {
	Direction ledger.Direction `json:"direction"`
	Gained    int              `json:"gained"`
	Lost      int              `json:"lost"`
	Rescored  int              `json:"rescored"` // the same direction with other scores
}

// Move counts the posts that go from one direction to another.
type Move struct {
	From  ledger.Direction `json:"from"`
	To    ledger.Direction `json:"to"`
	Posts int              `json:"posts"`
}

// Shift is how a score changes.
type Shift struct {
	Up   int     `json:"up"`
	Down int     `json:"down"`
	Mean float64 `json:"mean"` // of the changes, with their sign
	sum  float64
}

// Sample is one changed post.
type Sample struct {
	Post      ledger.PostNum   `json:"post"`
	Title     string           `json:"title"`
	From      ledger.Direction `json:"from"`
	To        ledger.Direction `json:"to"`
	Relevance [2]float64       `json:"relevance"` // before, after
	Interest  [2]float64       `json:"interest"`
	Because   string           `json:"because"` // the weightiest reason
}

// change is one post's.
type change struct {
	post      ledger.PostNum
	item      *ledger.Item
	from      ledger.Direction
	relevance float64
	interest  float64
	revision  int
	// to has no reasons in a dry run, until it becomes a sample.
	to ledger.Classification
}

func newDiff(o ReclassifyOptions) Diff {
	d := Diff{
		RuleSet: o.Keyword.Hash(), DryRun: o.DryRun, limit: o.Samples, llmWorkers: max(o.LLMWorkers, 1),
		directions: make(map[ledger.Direction]*DirectionDiff), moves: make(map[Move]int),
	}
	if o.LLM != nil {
		d.Model = o.LLM.Model()
	}
	return d
}

func (d *Diff) add(c change) {
	d.count(c, 1)
	rank := rankOf(c)
	if !d.samples(rank) {
		return
	}
	i, _ := slices.BinarySearchFunc(d.picks, rank, func(p pick, r uint64) int { return cmp.Compare(p.rank, r) })
	d.picks = slices.Insert(d.picks, i, pick{rank, sampleOf(c)})
	d.picks = d.picks[:min(len(d.picks), d.limit)]
}

// pick is a sample with its rank.
type pick struct {
	rank uint64
	Sample
}

// rankOf orders changes for the choice of samples: moves, which say more than
// scores, come first. Among them a post's place is a matter of chance, but the
// same in each run and whatever the order in which posts are judged.
func rankOf(c change) uint64 {
	rank := uint64(c.post) * 0x9E3779B97F4A7C15
	rank = (rank ^ rank>>29) >> 1
	if c.from == c.to.Direction {
		rank |= 1 << 63
	}
	return rank
}

// samples reports whether a change of this rank is among the samples so far.
func (d *Diff) samples(rank uint64) bool {
	return len(d.picks) < d.limit || rank < d.picks[len(d.picks)-1].rank
}

// refuse takes back what add counted.
func (d *Diff) refuse(c change) {
	d.count(c, -1)
	d.Refused++
	d.picks = slices.DeleteFunc(d.picks, func(p pick) bool { return p.Post == c.post })
}

func (d *Diff) count(c change, n int) {
	d.Changed += n
	d.Relevance.add(c.to.Relevance-c.relevance, n)
	d.Interest.add(c.to.Interest-c.interest, n)
	if c.from == c.to.Direction {
		d.of(c.from).Rescored += n
		return
	}
	d.Moved += n
	d.of(c.from).Lost += n
	d.of(c.to.Direction).Gained += n
	d.moves[Move{From: c.from, To: c.to.Direction}] += n
}

func (d *Diff) of(direction ledger.Direction) *DirectionDiff {
	if d.directions[direction] == nil {
		d.directions[direction] = &DirectionDiff{Direction: direction}
	}
	return d.directions[direction]
}

func (s *Shift) add(by float64, n int) {
	switch {
	case by >= same:
		s.Up += n
	case by <= -same:
		s.Down += n
	default:
		return
	}
	s.sum += by * float64(n)
}

func sampleOf(c change) Sample {
	s := Sample{
		Post: c.post, Title: ledger.CutText(c.item.Title, 120), From: c.from, To: c.to.Direction,
		Relevance: [2]float64{round(c.relevance), c.to.Relevance}, Interest: [2]float64{round(c.interest), c.to.Interest},
	}
	weight := 0.0
	for _, r := range c.to.Reasons {
		if r.Weight > weight || s.Because == "" {
			weight = r.Weight
			s.Because = strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Rule, quoteNonEmpty(r.Matched), r.Note))
		}
	}
	return s
}

func quoteNonEmpty(s string) string {
	if s == "" {
		return ""
	}
	return "“" + s + "”"
}

// finish brings the tables into an order.
func (d *Diff) finish() {
	d.Directions, d.Moves, d.Samples = []DirectionDiff{}, []Move{}, []Sample{}
	for _, name := range slices.Sorted(maps.Keys(d.directions)) {
		d.Directions = append(d.Directions, *d.directions[name])
	}
	for m, n := range d.moves {
		if n > 0 {
			m.Posts = n
			d.Moves = append(d.Moves, m)
		}
	}
	slices.SortFunc(d.Moves, func(a, b Move) int {
		return cmp.Or(cmp.Compare(b.Posts, a.Posts), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	for _, s := range []*Shift{&d.Relevance, &d.Interest} {
		if n := s.Up + s.Down; n > 0 {
			s.Mean = round(s.sum / float64(n))
		}
	}
	for _, p := range d.picks {
		d.Samples = append(d.Samples, p.Sample)
	}
	slices.SortFunc(d.Samples, func(a, b Sample) int { return cmp.Compare(a.Post, b.Post) })
	d.EstimatedSeconds = round(float64(d.ToAsk) * d.AskTime.Seconds() / float64(d.llmWorkers))
}

// WriteText writes the diff for a person.
func (d *Diff) WriteText(w io.Writer) error {
	var b strings.Builder
	would, did := "changes", "written"
	if d.DryRun {
		would, did = "would change", "nothing was written"
	}
	fmt.Fprintf(&b, "%d posts judged by rule set %s: %d %s, %d of them their direction", d.Judged, d.RuleSet, d.Changed, would, d.Moved)
	if d.DryRun {
		fmt.Fprintf(&b, " (%s)\n", did)
	} else {
		fmt.Fprintf(&b, " (%d %s, %d refused because they changed meanwhile)\n", d.Written, did, d.Refused)
	}
	fmt.Fprintf(&b, "left alone: %d decided by an editor, %d in the queue or parked, %d without their text\n", d.Reviewed, d.Pending, d.NoText)
	if d.LLMKept+d.ToAsk > 0 {
		fmt.Fprintf(&b, "language model: %d decisions stand, %d posts to ask about (about %s), %d asked, %d failed\n",
			d.LLMKept, d.ToAsk, time.Duration(d.EstimatedSeconds*float64(time.Second)).Round(time.Second), d.Asked, d.AskFailed)
	}
	if len(d.Directions) > 0 {
		fmt.Fprintf(&b, "\n%-16s %8s %8s %9s\n", "direction", "gained", "lost", "rescored")
	}
	for _, x := range d.Directions {
		fmt.Fprintf(&b, "%-16s %8d %8d %9d\n", cmp.Or(x.Direction, "(none)"), x.Gained, x.Lost, x.Rescored)
	}
	for i, m := range d.Moves {
		if i == 0 {
			b.WriteString("\nmoved\n")
		}
		fmt.Fprintf(&b, "  %-16s → %-16s %8d\n", cmp.Or(m.From, "(none)"), cmp.Or(m.To, "(none)"), m.Posts)
	}
	if d.Changed > 0 {
		fmt.Fprintf(&b, "\nrelevance: %d up, %d down, mean %+.3f; interest: %d up, %d down, mean %+.3f\n",
			d.Relevance.Up, d.Relevance.Down, d.Relevance.Mean, d.Interest.Up, d.Interest.Down, d.Interest.Mean)
	}
	for i, s := range d.Samples {
		if i == 0 {
			b.WriteString("\nsamples\n")
		}
		fmt.Fprintf(&b, "  %d %s → %s, relevance %.2f → %.2f, interest %.2f → %.2f: %s\n      because of %s\n",
			s.Post, cmp.Or(s.From, "(none)"), cmp.Or(s.To, "(none)"), s.Relevance[0], s.Relevance[1], s.Interest[0], s.Interest[1], s.Title, s.Because)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
