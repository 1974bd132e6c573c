package posts

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"vesti.nixg.ru/ledger"
)

// naive is a list of posts that is filtered, counted and sorted the plain way.
type naive map[ledger.PostNum]change

func (n naive) passes(c change, r Request, but string) bool {
	date := time.UnixMicro(c.date)
	in := func(field string, ok bool) bool { return field == but || ok }
	ownSource := func(s ledger.Slug) bool { return slices.Contains(r.Sources, s) }
	return !c.removed && !r.None &&
		(r.Since.IsZero() || !date.Before(r.Since)) && (r.Until.IsZero() || date.Before(r.Until)) && (!r.Own || c.own) &&
		in("direction", (len(r.Directions) == 0 || slices.Contains(r.Directions, c.direction)) && !slices.Contains(r.NotDirections, c.direction)) &&
		in("source", (len(r.Sources) == 0 || ownSource(c.source) || slices.ContainsFunc(c.carriers, ownSource)) && !slices.Contains(r.NotSources, c.source)) &&
		in("lang", (len(r.Langs) == 0 || slices.Contains(r.Langs, c.lang)) && !slices.Contains(r.NotLangs, c.lang)) &&
		in("status", len(r.Statuses) == 0 || slices.Contains(r.Statuses, c.status)) &&
		in("verdict", len(r.Verdicts) == 0 || slices.Contains(r.Verdicts, verdicts[c.verdict]))
}

func (n naive) page(r Request) (total int, page []ledger.PostNum) {
	var all []change
	for _, c := range n {
		if n.passes(c, r, "") {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b change) int {
		order := 0
		if r.Sort == ByInterest {
			order = cmp.Compare(b.interest, a.interest)
		}
		return cmp.Or(order, cmp.Compare(b.date, a.date), cmp.Compare(b.num, a.num))
	})
	for _, c := range all[min(r.Offset, len(all)):min(r.Offset+r.Limit, len(all))] {
		page = append(page, c.num)
	}
	return len(all), page
}

func (n naive) directions(r Request) map[string]int {
	counts := map[string]int{}
	for _, c := range n {
		if n.passes(c, r, "direction") {
			counts[string(c.direction)]++
		}
	}
	return counts
}

// TestSelectionsAgainstPlainOnes draws posts, changes and requests at random.
func TestSelectionsAgainstPlainOnes(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	pick := func(n int) int { return rng.IntN(n) }
	columns, plain := newColumns(), naive{}
	var last ledger.PostNum
	for round := range 60 {
		changes := map[ledger.PostNum]change{}
		for range pick(40) {
			c := change{
				attributes: attributes{
					interest: float32(pick(5)) / 5, status: statuses[1+pick(3)], verdict: uint8(pick(len(verdicts))),
					own: pick(4) == 0, removed: pick(20) == 0,
				},
				direction: ledger.Direction(fmt.Sprint("d", pick(3))), source: ledger.Slug(fmt.Sprint("s", pick(4))), lang: []string{"ru", "en", ""}[pick(3)],
			}
			for i := range pick(3) {
				c.carriers = append(c.carriers, ledger.Slug(fmt.Sprint("c", i)))
			}
			c.carried = len(c.carriers) > 0
			if old, ok := plain[ledger.PostNum(1+pick(int(last)+1))]; ok && pick(2) == 0 {
				c.num, c.date = old.num, old.date
			} else {
				last += ledger.PostNum(1 + pick(3))
				c.num, c.date = last, int64(pick(100))
			}
			changes[c.num] = c
		}
		var batch []change
		for num, c := range changes {
			plain[num] = c
			batch = append(batch, c)
		}
		columns.apply(batch)
		for range 20 {
			r := Request{Limit: 1 + pick(30), Offset: pick(4) * pick(20), Facets: true, Sort: []Sort{ByDate, ByInterest}[pick(2)]}
			maybe := func(f func()) {
				if pick(4) == 0 {
					f()
				}
			}
			maybe(func() { r.Directions = []ledger.Direction{"d1", "none such"} })
			maybe(func() { r.NotDirections = []ledger.Direction{"d0"} })
			maybe(func() { r.Sources = []ledger.Slug{"s1", "c1"} })
			maybe(func() { r.NotSources = []ledger.Slug{"s1"} })
			maybe(func() { r.Langs = []string{"ru", ""} })
			maybe(func() { r.Statuses = []ledger.Status{ledger.StatusParked, ledger.StatusPending} })
			maybe(func() { r.Verdicts = []ledger.Verdict{ledger.VerdictNone} })
			maybe(func() { r.Since = time.UnixMicro(int64(pick(100))) })
			maybe(func() { r.Until = time.UnixMicro(int64(pick(100))) })
			maybe(func() { r.Own = true })
			got := columns.all(r)
			var page []ledger.PostNum
			for _, m := range got.page {
				page = append(page, m.Num)
			}
			total, want := plain.page(r)
			if got.total != total || !slices.Equal(page, want) {
				t.Fatalf("round %d, %+v:\n got %d %v\nwant %d %v", round, r, got.total, page, total, want)
			}
			counts := map[string]int{}
			for _, c := range got.facets.Directions {
				counts[c.Value] = c.Count
			}
			if fmt.Sprint(counts) != fmt.Sprint(plain.directions(r)) {
				t.Fatalf("round %d, %+v: directions %v, want %v", round, r, counts, plain.directions(r))
			}
		}
	}
}

func TestRecordIsEncodedWhole(t *testing.T) {
	views := int64(7)
	r := record{
		state: ledger.PostState{Status: ledger.StatusClassified, Direction: "linux", Interest: 0.5},
		post: Post{
			ID: ledger.PostID{1, 2}, Title: "t", URL: "u", Author: "a", Source: "s", Carriers: []ledger.Slug{"b", "c"}, Lang: "ru",
			Date: time.Unix(5, 0).UTC(), Published: time.Unix(6, 0).UTC(), Fetched: time.Unix(7, 0).UTC(), IsOwn: true,
			Views: &views, Summary: "sum", DecidedBy: "llm", Revisions: 3, LinkedTo: 9,
		},
	}
	got, err := decode(r.encode())
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(r.view(4), got.view(4)); diff != "" {
		t.Error(diff)
	}
}

// TestDates: a date that is missing or far in the future gives way to the time
// of the fetch.
func TestDates(t *testing.T) {
	fetched := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct{ published, want time.Time }{
		{time.Time{}, fetched},
		{fetched.Add(-time.Hour), fetched.Add(-time.Hour)},
		{fetched.Add(time.Hour), fetched.Add(time.Hour)},
		{fetched.Add(25 * time.Hour), fetched},
	} {
		var r record
		e := ledger.NewEvent(ledger.ActorCrawler, 1, "s", ledger.PostFetched{Item: ledger.Item{Published: c.published}})
		e.At = fetched
		r.apply(e)
		if p := r.view(1); !p.Date.Equal(c.want) || !p.Published.Equal(c.published) {
			t.Errorf("published %s: listed by %s, want %s", c.published, p.Date, c.want)
		}
	}
}
