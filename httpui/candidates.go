package httpui

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"vesti.nixg.ru/httpui/i18n"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/projections/posts"
	"vesti.nixg.ru/projections/search"
)

// The size of a page of candidates, and how far one can page: nobody reads on
// for longer, and each further page costs the search more.
const (
	pageSize = 30
	maxPages = 200
)

// The tabs: what of an editor's decisions is shown. Without a query the posts
// that nobody has decided on are, as in an inbox; a query looks everywhere.
const (
	tabOpen     = "open"
	tabPicked   = "picked"
	tabRejected = "rejected"
	tabAll      = "all"
)

// query is what the address of a list says. Its zero value is the inbox.
type query struct {
	Text      string
	Tab       string // "" for the default of the tabs
	Direction string // none for posts without one, likewise Lang
	Source    string
	Lang      string
	Status    string
	Since     string // days, both included
	Until     string
	Order     string // a posts.Sort; "" for the default
	Page      int    // from 1
}

// none stands for "no direction" or "no language" in an address, where "" means
// any.
const none = "-"

func parseQuery(v url.Values) query {
	q := query{
		Text: v.Get("q"), Tab: v.Get("tab"), Direction: v.Get("direction"), Source: v.Get("source"), Lang: v.Get("lang"),
		Status: v.Get("status"), Since: v.Get("since"), Until: v.Get("until"), Order: v.Get("sort"),
	}
	page, err := strconv.Atoi(v.Get("page"))
	if err != nil {
		page = 1
	}
	q.Page = min(max(1, page), maxPages)
	return q
}

// tab is the one in force.
func (q query) tab() string {
	switch q.Tab {
	case tabOpen, tabPicked, tabRejected, tabAll:
		return q.Tab
	}
	if q.Text == "" {
		return tabOpen
	}
	return tabAll
}

// values writes the address again, without what is empty.
func (q query) values() url.Values {
	v := url.Values{}
	set := func(name, value string) {
		if value != "" {
			v.Set(name, value)
		}
	}
	set("q", q.Text)
	set("tab", q.Tab)
	set("direction", q.Direction)
	set("source", q.Source)
	set("lang", q.Lang)
	set("status", q.Status)
	set("since", q.Since)
	set("until", q.Until)
	set("sort", q.Order)
	if q.Page > 1 {
		set("page", strconv.Itoa(q.Page))
	}
	return v
}

// Filtered reports whether anything but the text and the tab narrows the list.
func (q query) Filtered() bool {
	return q.Direction != "" || q.Source != "" || q.Lang != "" || q.Status != "" || q.Since != "" || q.Until != ""
}

// request turns the address into a search. Values that mean nothing are left
// out: an old bookmark shows more, not an error.
func (q query) request(zone *time.Location) search.Request {
	r := search.Request{
		Query: q.Text, Sort: posts.Sort(q.Order), Limit: pageSize, Offset: (q.Page - 1) * pageSize, Facets: true,
		Filter: posts.Filter{Verdicts: verdictsOf(q.tab())},
	}
	switch r.Sort {
	case posts.ByDate, posts.ByInterest, posts.ByRelevance:
	default:
		r.Sort = ""
	}
	if q.Direction == none {
		r.Directions = []ledger.Direction{""}
	} else if q.Direction != "" {
		r.Directions = []ledger.Direction{ledger.Direction(q.Direction)}
	}
	if q.Source != "" {
		r.Sources = []ledger.Slug{ledger.Slug(q.Source)}
	}
	if q.Lang == none {
		r.Langs = []string{""}
	} else if q.Lang != "" {
		r.Langs = []string{q.Lang}
	}
	if s, ok := statusNamed(q.Status); ok {
		r.Statuses = []ledger.Status{s}
	}
	if day, err := time.ParseInLocation(time.DateOnly, q.Since, zone); err == nil {
		r.Since = day
	}
	if day, err := time.ParseInLocation(time.DateOnly, q.Until, zone); err == nil {
		r.Until = day.AddDate(0, 0, 1)
	}
	return r
}

func verdictsOf(tab string) []ledger.Verdict {
	switch tab {
	case tabOpen:
		return []ledger.Verdict{ledger.VerdictNone}
	case tabPicked:
		return []ledger.Verdict{ledger.VerdictPicked}
	case tabRejected:
		return []ledger.Verdict{ledger.VerdictRejected}
	default:
		return nil
	}
}

func statuses() []ledger.Status {
	return []ledger.Status{ledger.StatusPending, ledger.StatusClassified, ledger.StatusParked}
}

func statusNamed(name string) (ledger.Status, bool) {
	for _, s := range statuses() {
		if s.String() == name {
			return s, true
		}
	}
	return 0, false
}

type candidatesPage struct {
	query
	search.Result
	Tabs       []facetValue
	Facets     []facet
	Spans      []facetValue // of dates
	Sorts      []choice
	Names      map[ledger.Slug]string // of sources
	From, To   int                    // places of the first and last hit, from 1
	Prev, Next string
	Clear      string // the address without filters
	All        string // the address of the same search in every tab
	Here       string
	Empty      bool // there is no post at all yet
	Waiting    int  // posts that no worker has judged yet
}

// facet is one field with the values that a click chooses.
type facet struct {
	Name   string // of the parameter
	Values []facetValue
	More   []facetValue // beyond the first few
}

type facetValue struct {
	choice
	Count int
	URL   string
}

func (s *Server) candidates(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r.URL.Query())
	result, err := s.Search.Search(r.Context(), q.request(s.Location))
	if err != nil {
		return err
	}
	lang := s.language(r)
	page := candidatesPage{query: q, Result: result, Names: s.sourceNames(), Here: s.here(r)}
	if page.Tabs, err = s.tabs(lang, q, result.Facets.Verdicts); err != nil {
		return err
	}
	if page.Facets, err = s.facets(lang, q, result.Facets, page.Names); err != nil {
		return err
	}
	if page.Spans, err = s.spans(lang, q); err != nil {
		return err
	}
	if page.Sorts, err = sorts(lang, q, result.Sort); err != nil {
		return err
	}
	if n := len(result.Hits); n > 0 {
		page.From = (q.Page-1)*pageSize + 1
		page.To = page.From + n - 1
	}
	if q.Page > 1 {
		page.Prev = s.listURL(q.with(func(q *query) { q.Page-- }))
	}
	if page.To < result.Total && q.Page < maxPages {
		page.Next = s.listURL(q.with(func(q *query) { q.Page++ }))
	}
	page.Clear = s.listURL(query{Text: q.Text, Tab: q.Tab, Order: q.Order})
	page.All = s.listURL(query{Text: q.Text, Tab: tabAll})
	counts, _ := s.queueNow()
	page.Waiting = counts.Pending + counts.Processing
	page.Empty = page.Waiting+counts.Classified+counts.Parked == 0
	return s.render(w, r, http.StatusOK, "candidates.html", "title.candidates", page)
}

// with returns the query after a change, from its first page unless the change
// says another.
func (q query) with(f func(*query)) query {
	before := q.Page
	f(&q)
	if q.Page == before {
		q.Page = 1
	}
	return q
}

func (s *Server) listURL(q query) string {
	u := s.base + "/"
	if v := q.values(); len(v) > 0 {
		u += "?" + v.Encode()
	}
	return u
}

func (s *Server) tabs(lang *i18n.Language, q query, verdicts []posts.Count) ([]facetValue, error) {
	counts, total := map[string]int{}, 0
	for _, c := range verdicts {
		counts[c.Value] = c.Count
		total += c.Count
	}
	tabs := []facetValue{
		{choice: choice{Value: tabOpen}, Count: counts[string(ledger.VerdictNone)]},
		{choice: choice{Value: tabPicked}, Count: counts[string(ledger.VerdictPicked)]},
		{choice: choice{Value: tabRejected}, Count: counts[string(ledger.VerdictRejected)]},
		{choice: choice{Value: tabAll}, Count: total},
	}
	for i := range tabs {
		t := &tabs[i]
		t.Current = t.Value == q.tab()
		t.URL = s.listURL(q.with(func(q *query) { q.Tab = t.Value }))
		var err error
		if t.Label, err = label(lang, "tab", t.Value); err != nil {
			return nil, err
		}
	}
	return tabs, nil
}

// shownValues is how many values of a facet stand open.
const shownValues = 8

// facets are the fields in the order of the page. A click on the value in force
// takes it back.
func (s *Server) facets(lang *i18n.Language, q query, f posts.Facets, names map[ledger.Slug]string) ([]facet, error) {
	named := func(set string) func(string) (string, error) {
		return func(v string) (string, error) {
			text, err := label(lang, set, v)
			if text != v { // stands alone, where elsewhere it stands in a sentence
				text = capital(text)
			}
			return text, err
		}
	}
	fields := []struct {
		name   string
		counts []posts.Count
		value  *string
		label  func(string) (string, error)
	}{
		{"direction", f.Directions, &q.Direction, named("direction")},
		{"source", f.Sources, &q.Source, func(v string) (string, error) { return cmp.Or(names[ledger.Slug(v)], v), nil }},
		{"lang", f.Langs, &q.Lang, named("lang")},
		{"status", f.Statuses, &q.Status, named("status")},
	}
	var all []facet
	for _, field := range fields {
		one := facet{Name: field.name}
		current := *field.value
		for _, c := range withCurrent(field.counts, current) {
			text, err := field.label(c.Value)
			if err != nil {
				return nil, err
			}
			v := c.Value
			if v == "" {
				v = none
			}
			value := facetValue{choice: choice{v, text, v == current}, Count: c.Count}
			*field.value = v
			if value.Current {
				*field.value = ""
			}
			value.URL = s.listURL(q.with(func(q *query) { q.Page = 1 }))
			*field.value = current
			if len(one.Values) < shownValues || value.Current {
				one.Values = append(one.Values, value)
			} else {
				one.More = append(one.More, value)
			}
		}
		if len(one.Values) > 0 {
			all = append(all, one)
		}
	}
	return all, nil
}

// capital writes a text with a capital first.
func capital(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// spans are the dates that are asked for most: up to today, from some days ago.
func (s *Server) spans(lang *i18n.Language, q query) ([]facetValue, error) {
	today := s.Now().In(s.Location)
	var all []facetValue
	for _, span := range []struct {
		name string
		days int
	}{{"today", 0}, {"week", 6}, {"month", 29}} {
		since := today.AddDate(0, 0, -span.days).Format(time.DateOnly)
		text, err := label(lang, "span", span.name)
		if err != nil {
			return nil, err
		}
		v := facetValue{choice: choice{since, text, q.Since == since && q.Until == ""}}
		v.URL = s.listURL(q.with(func(q *query) {
			q.Since, q.Until = since, ""
			if v.Current {
				q.Since = ""
			}
		}))
		all = append(all, v)
	}
	return all, nil
}

// withCurrent adds the chosen value where no post has it, so that it can be
// seen and taken back.
func withCurrent(counts []posts.Count, current string) []posts.Count {
	known := slices.ContainsFunc(counts, func(c posts.Count) bool {
		return c.Value == current || c.Value == "" && current == none
	})
	if current == "" || known {
		return counts
	}
	if current == none {
		current = ""
	}
	return append(slices.Clone(counts), posts.Count{Value: current})
}

func sorts(lang *i18n.Language, q query, inForce posts.Sort) ([]choice, error) {
	all := []posts.Sort{posts.ByDate, posts.ByInterest}
	if q.Text != "" {
		all = append(all, posts.ByRelevance)
	}
	var out []choice
	for _, by := range all {
		text, err := label(lang, "sort", by)
		if err != nil {
			return nil, err
		}
		out = append(out, choice{string(by), text, by == inForce})
	}
	return out, nil
}
