package posts

import "slices"

// candidate is a row that passes, with the score that its search gave it.
type candidate struct {
	row   int
	score float64
}

// ranked keeps the best candidates up to its limit. It gathers twice as many
// and then drops the worse half, which costs about one comparison for each
// candidate that is not among the best.
type ranked struct {
	limit int
	worse func(a, b candidate) int // negative where a comes after b
	kept  []candidate
	full  bool      // kept was cut before
	last  candidate // the worst that was kept when it was cut
}

func (r *ranked) add(c candidate) {
	if r.limit == 0 || r.full && r.worse(c, r.last) < 0 {
		return
	}
	r.kept = append(r.kept, c)
	if len(r.kept) >= 2*r.limit+cutSlack {
		r.cut()
	}
}

// cutSlack keeps small limits from being cut all the time.
const cutSlack = 256

func (r *ranked) cut() {
	slices.SortFunc(r.kept, func(a, b candidate) int { return r.worse(b, a) })
	if len(r.kept) > r.limit {
		r.kept = r.kept[:r.limit]
		r.full, r.last = true, r.kept[r.limit-1]
	}
}

// sorted returns the best, the first of them first.
func (r *ranked) sorted() []candidate {
	r.cut()
	return r.kept
}
