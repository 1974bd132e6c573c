package keyword

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"vesti.nixg.ru/classify/words"
	"vesti.nixg.ru/ledger"
)

const (
	// A keyword found again adds less each time, and nothing after the eighth.
	repeatGain = 0.35
	maxRepeats = 8
	// titleGain is what a keyword in the title counts more.
	titleGain = 1.6
	// leadGain is what a keyword among the first leadWords words counts more.
	leadGain  = 1.25
	leadWords = 40
	// A text of longWords words counts each of its keywords for half: it finds
	// more of them by chance.
	longWords = 900

	// relevanceScale is the score at which relevance is 1-1/e.
	relevanceScale = 3.0

	defaultConfidence  = 0.1
	defaultRelevance   = 0.2
	elsewhereRelevance = 0.05
	baseInterest       = 0.2
	relevanceInterest  = 0.4
	ownInterest        = 0.15
	viewsInterest      = 0.1 // at a million views

	summaryLimit = 300 // characters
	// maxReasons is how many keywords are told. A rule's first one is told beyond
	// that, so that no rule stays unnamed, up to moreReasons.
	maxReasons  = 100
	moreReasons = 400
	maxMatched  = 80 // bytes
)

const stage, stageDefault = "keyword", "default"

// Verdict is what the rules say of a post.
type Verdict struct {
	Direction  ledger.Direction
	Relevance  float64 // 0 to 1
	Interest   float64 // 0 to 1
	Confidence float64 // 0 to 1; how surely Direction is right
	Matched    bool    // the rules speak for a direction; without, Direction is the source's
	Elsewhere  string  // the subject, no direction, that the rules speak for; "" for none
	// Scores are the sums of the rules' weights, by the place of the direction in
	// Rules.Directions.
	Scores []float64
}

// Candidates lists the directions that a rule spoke for, the likeliest first.
func (r *Rules) Candidates(v Verdict) []ledger.Direction {
	var list []ledger.Direction
	for i, s := range v.Scores {
		if s > 0 {
			list = append(list, r.directions[i])
		}
	}
	score := func(d ledger.Direction) float64 { return v.Scores[slices.Index(r.directions, d)] }
	slices.SortStableFunc(list, func(a, b ledger.Direction) int { return cmp.Compare(score(b), score(a)) })
	return list
}

// Judge says what the rules make of an item. It is fast: no reasons, no
// summary.
func (r *Rules) Judge(item *ledger.Item) Verdict {
	s := scratches.Get().(*scratchOf)
	defer scratches.Put(s)
	return r.judge(s.of(r), item, nil)
}

// Explain is Judge with the reasons and a summary.
func (r *Rules) Explain(item *ledger.Item) (ledger.Classification, Verdict) {
	s := scratches.Get().(*scratchOf)
	defer scratches.Put(s)
	started := time.Now()
	var reasons []ledger.Reason
	v := r.judge(s.of(r), item, &reasons)
	c := ledger.Classification{
		Direction: v.Direction, Relevance: v.Relevance, Interest: v.Interest, Confidence: v.Confidence,
		Summary: words.Lead(item.Title, item.Text, summaryLimit),
		Stage:   stage, Reasons: reasons, RuleSet: r.hash,
	}
	if !v.Matched {
		c.Stage = stageDefault
	}
	c.Duration = time.Since(started)
	return c, v
}

// scratches lends out scratch memory. What a scratch remembers holds for one
// rule set only.
var scratches = sync.Pool{New: func() any { return new(scratchOf) }}

type scratchOf struct {
	rules *Rules
	scratch
}

func (s *scratchOf) of(r *Rules) *scratch {
	if s.rules != r {
		s.rules, s.memo = r, stemMemo{}
	}
	s.hits = s.hits[:0]
	return &s.scratch
}

func (r *Rules) judge(s *scratch, item *ledger.Item, reasons *[]ledger.Reason) Verdict {
	title := item.Title
	if strings.HasPrefix(item.Text, title) {
		title = ""
	}
	count := r.matcher.find(s, title, true)
	count += r.matcher.find(s, item.Text, false)
	scale := 1 / (1 + float64(count)/longWords)

	scores := make([]float64, len(r.directions)+len(r.elsewhere))
	interest := 0.0
	r.fired(s.hits, item.Source, func(i int, hits []hit) {
		ru := &r.rules[i]
		sum, told := 0.0, false
		for k := range byKeyword(hits) {
			gain := ru.weight
			if ru.subject != interestRule {
				gain *= strength(k) * scale
			}
			sum += gain
			if reasons != nil && (len(*reasons) < maxReasons || !told && len(*reasons) < moreReasons) {
				*reasons = append(*reasons, r.reason(ru, item, k, gain))
				told = true
			}
		}
		if ru.subject == interestRule {
			interest += sum
			return
		}
		scores[ru.subject] += sum
	})
	v := r.decide(scores, item, reasons)
	v.Interest = r.interest(v, item, interest)
	return v
}

// fired calls f with each rule that has a hit, holds for the source and is not
// silenced, and with its hits in the order of their keywords.
func (r *Rules) fired(hits []hit, source ledger.Slug, f func(rule int, hits []hit)) {
	slices.SortFunc(hits, func(a, b hit) int {
		if c := cmp.Compare(a.keyword, b.keyword); c != 0 {
			return c
		}
		return cmp.Compare(a.place, b.place)
	})
	for len(hits) > 0 {
		i := r.keywords[hits[0].keyword].rule
		n, positive := 0, 0
		for n < len(hits) && r.keywords[hits[n].keyword].rule == i {
			if !r.keywords[hits[n].keyword].negative { // a rule's negative words follow its keywords
				positive++
			}
			n++
		}
		sources := r.rules[i].sources
		if _, here := sources[source]; positive == n && (sources == nil || here) {
			f(i, hits[:n])
		}
		hits = hits[n:]
	}
}

// byKeyword yields the hits of each keyword.
func byKeyword(hits []hit) func(func([]hit) bool) {
	return func(yield func([]hit) bool) {
		for len(hits) > 0 {
			n := 1
			for n < len(hits) && hits[n].keyword == hits[0].keyword {
				n++
			}
			if !yield(hits[:n]) {
				return
			}
			hits = hits[n:]
		}
	}
}

// strength is what the places of one keyword are worth.
func strength(hits []hit) float64 {
	s := 1 + repeatGain*math.Log2(float64(min(len(hits), maxRepeats)))
	gain := 1.0
	for _, h := range hits {
		switch {
		case h.title:
			return s * titleGain
		case h.place <= leadWords:
			gain = leadGain
		}
	}
	return s * gain
}

func (r *Rules) reason(ru *rule, item *ledger.Item, hits []hit, gain float64) ledger.Reason {
	h := hits[0]
	text := item.Text
	if h.title {
		text = item.Title
	}
	return ledger.Reason{
		Stage: stage, Rule: ru.name, Matched: ledger.CutText(text[h.start:h.end], maxMatched), Weight: round(gain),
		Note: r.subject(ru.subject),
	}
}

// decide turns scores into a direction. A subject that is no direction competes
// with the directions, so that a report of a match does not become one on games
// for a word or two.
func (r *Rules) decide(scores []float64, item *ledger.Item, reasons *[]ledger.Reason) Verdict {
	v := Verdict{Scores: scores[:len(r.directions)]}
	best, rival := 0.0, 0.0
	for _, s := range v.Scores {
		best = max(best, s)
	}
	for i, s := range scores[len(r.directions):] {
		if s > rival {
			rival, v.Elsewhere = s, r.elsewhere[i]
		}
	}
	own := slices.Index(r.directions, item.Direction)
	if own >= 0 && best > 0 && r.sourceWeight > 0 {
		v.Scores[own] += r.sourceWeight
		best = max(best, v.Scores[own])
		if reasons != nil {
			*reasons = append(*reasons, ledger.Reason{Stage: stage, Rule: "source", Weight: r.sourceWeight, Note: string(item.Direction)})
		}
	}
	if best <= rival || best < r.minScore {
		return r.undecided(v, item, rival >= r.minScore && rival > 0, reasons)
	}
	v.Matched, v.Elsewhere = true, ""
	first := slices.Index(v.Scores, best)
	v.Direction = r.directions[first]
	for i, s := range v.Scores {
		if i != first {
			rival = max(rival, s)
		}
	}
	v.Relevance = relevance(best)
	v.Confidence = confidence(best, rival)
	return v
}

// undecided is the verdict on a post that no direction's rules speak for, or
// not loudly enough.
func (r *Rules) undecided(v Verdict, item *ledger.Item, elsewhere bool, reasons *[]ledger.Reason) Verdict {
	v.Direction, v.Relevance, v.Confidence = item.Direction, defaultRelevance, defaultConfidence
	note := "no rule matched: the source's direction"
	if elsewhere {
		v.Relevance = elsewhereRelevance
		note = "speaks of " + v.Elsewhere + ", which is no direction: the source's direction"
	} else {
		v.Elsewhere = ""
	}
	if reasons != nil {
		*reasons = append(*reasons, ledger.Reason{Stage: stage, Rule: stageDefault, Note: note})
	}
	return v
}

func relevance(score float64) float64 { return round(1 - math.Exp(-score/relevanceScale)) }

// confidence is how often a verdict with these scores is right: it grows with
// the best score and with its lead over the second.
func confidence(best, second float64) float64 {
	lead := (best - max(second, 0)) / best
	return round(relevance(best) * (0.4 + 0.6*lead))
}

func (r *Rules) interest(v Verdict, item *ledger.Item, rules float64) float64 {
	i := baseInterest + relevanceInterest*v.Relevance + rules
	if item.IsOwn {
		i += ownInterest
	}
	if views := item.Measures.Views; views != nil && *views > 1 {
		i += viewsInterest * min(math.Log10(float64(*views))/6, 1)
	}
	return round(min(max(i, 0), 1))
}

// round keeps three digits, so that equal decisions are equal when compared.
func round(f float64) float64 { return math.Round(f*1000) / 1000 }
