package posts

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// selection is what a request leaves of the posts.
type selection struct {
	total  int
	page   []Match
	facets Facets
}

// all selects from every post, the newest first.
func (c *columns) all(r Request) selection {
	c.mu.RLock()
	defer c.mu.RUnlock()
	s := c.selector(r)
	for _, row := range slices.Backward(c.byDate) {
		s.offer(int(row), 0)
	}
	return s.result()
}

// selected selects from what a search found.
func (c *columns) selected(matches []Match, r Request) selection {
	c.mu.RLock()
	defer c.mu.RUnlock()
	s := c.selector(r)
	for _, m := range matches {
		if row, ok := c.row(m.Num); ok {
			s.offer(row, m.Score)
		}
	}
	return s.result()
}

// The fields that have facets.
const (
	fieldDirection = iota
	fieldSource
	fieldLang
	fieldStatus
	fieldVerdict
	fields
)

// selector goes over rows once: it filters, counts and keeps the best.
type selector struct {
	columns *columns
	request Request
	wanted  [fields]choice
	since   int64
	until   int64
	counts  [fields][]int
	total   int
	best    ranked
}

func (c *columns) selector(r Request) *selector {
	s := &selector{columns: c, request: r, since: math.MinInt64, until: math.MaxInt64}
	s.wanted[fieldDirection] = choose(c.directions.numbers(names(r.Directions)), c.directions.numbers(names(r.NotDirections)))
	s.wanted[fieldSource] = choose(c.sources.numbers(names(r.Sources)), c.sources.numbers(names(r.NotSources)))
	s.wanted[fieldLang] = choose(c.langs.numbers(r.Langs), c.langs.numbers(r.NotLangs))
	s.wanted[fieldStatus] = choose(places(statuses[:], r.Statuses), nil)
	s.wanted[fieldVerdict] = choose(places(verdicts[:], r.Verdicts), nil)
	if !r.Since.IsZero() {
		s.since = r.Since.UnixMicro()
	}
	if !r.Until.IsZero() {
		s.until = r.Until.UnixMicro()
	}
	if r.Facets {
		sizes := [fields]int{len(c.directions.values), len(c.sources.values), len(c.langs.values), len(statuses), len(verdicts)}
		for field, n := range sizes {
			s.counts[field] = make([]int, n)
		}
	}
	if r.Limit > 0 {
		s.best.limit = max(0, r.Offset) + r.Limit
	}
	s.best.worse = s.worse
	return s
}

// offer takes a row into the total, the facets and the page, as it deserves.
func (s *selector) offer(row int, score float64) {
	a := &s.columns.rows[row]
	if s.request.None || a.removed || a.date < s.since || a.date >= s.until || s.request.Own && !a.own {
		return
	}
	values := [fields]uint16{a.direction, a.source, a.lang, uint16(a.status), uint16(a.verdict)}
	failed, failures := 0, 0
	for field, v := range values {
		if !s.wanted[field].takes(v) && (field != fieldSource || !s.carried(row, a)) {
			failed = field
			failures++
		}
	}
	if s.request.Facets {
		s.countFacets(row, values, failed, failures)
	}
	if failures > 0 {
		return
	}
	s.total++
	s.best.add(candidate{row: row, score: score})
}

// carried reports whether a further source of the row is one that is asked for.
func (s *selector) carried(row int, a *attributes) bool {
	if !a.carried || s.wanted[fieldSource].excludes(a.source) {
		return false
	}
	return slices.ContainsFunc(s.columns.carriers[uint32(row)], s.wanted[fieldSource].takes)
}

// countFacets counts a row that passes in every field, one that fails in a
// single field only there.
func (s *selector) countFacets(row int, values [fields]uint16, failed, failures int) {
	for field, v := range values {
		if failures > 1 || failures == 1 && field != failed {
			continue
		}
		s.counts[field][v]++
		if field == fieldSource && s.columns.rows[row].carried {
			for _, id := range s.columns.carriers[uint32(row)] {
				s.counts[field][id]++
			}
		}
	}
}

// worse orders candidates from the last to the first.
func (s *selector) worse(a, b candidate) int {
	x, y := &s.columns.rows[a.row], &s.columns.rows[b.row]
	order := 0
	switch s.request.Sort {
	case ByRelevance:
		order = cmp.Compare(a.score, b.score)
	case ByInterest:
		order = cmp.Compare(x.interest, y.interest)
	case ByDate:
	}
	return cmp.Or(order, cmp.Compare(x.date, y.date), cmp.Compare(x.num, y.num))
}

func (s *selector) result() selection {
	out := selection{total: s.total}
	kept := s.best.sorted()
	for _, c := range kept[min(max(0, s.request.Offset), len(kept)):] {
		out.page = append(out.page, Match{Num: s.columns.rows[c.row].num, Score: c.score})
	}
	if s.request.Facets {
		c := s.columns
		out.facets = Facets{
			Directions: counted(s.counts[fieldDirection], func(i int) string { return c.directions.values[i] }),
			Sources:    counted(s.counts[fieldSource], func(i int) string { return c.sources.values[i] }),
			Langs:      counted(s.counts[fieldLang], func(i int) string { return c.langs.values[i] }),
			Statuses:   counted(s.counts[fieldStatus], func(i int) string { return statuses[i].String() }),
			Verdicts:   counted(s.counts[fieldVerdict], func(i int) string { return string(verdicts[i]) }),
		}
	}
	return out
}

func counted(counts []int, value func(int) string) []Count {
	var all []Count
	for i, n := range counts {
		if n > 0 {
			all = append(all, Count{Value: value(i), Count: n})
		}
	}
	slices.SortFunc(all, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Value, b.Value))
	})
	return all
}

// choice is what a filter wants of a field.
type choice struct {
	only []uint16 // nil for any value
	not  []uint16
}

// choose wants one of only, unless it is nil, and none of not.
func choose(only, not []uint16) choice { return choice{only: only, not: not} }

func (c choice) takes(v uint16) bool {
	return (c.only == nil || slices.Contains(c.only, v)) && !slices.Contains(c.not, v)
}

func (c choice) excludes(v uint16) bool { return slices.Contains(c.not, v) }

// numbers returns the numbers of values, nil for none. A value that no post has
// gets a number that no post has.
func (n *interned) numbers(values []string) []uint16 {
	if len(values) == 0 {
		return nil
	}
	all := make([]uint16, 0, len(values))
	for _, v := range values {
		id, ok := n.ids[v]
		if !ok {
			id = nobody
		}
		all = append(all, id)
	}
	return all
}

func names[T ~string](all []T) []string {
	var out []string
	for _, v := range all {
		out = append(out, string(v))
	}
	return out
}

func places[T comparable](known, all []T) []uint16 {
	var out []uint16
	for _, v := range all {
		place := slices.Index(known, v)
		if place < 0 {
			place = nobody
		}
		out = append(out, uint16(place))
	}
	return out
}
