package httpui

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/mux"

	"vesti.nixg.ru/classify"
	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/projections"
	"vesti.nixg.ru/projections/queue"
	"vesti.nixg.ru/projections/sources"
)

// sourceRow is a source as pages show it: what is configured and how it does.
type sourceRow struct {
	crawl.Source
	State      ledger.SourceState
	Truncated  bool      // the newest document that was read was not read whole
	Configured bool      // false for one that sources.yaml no longer names
	Due        time.Time // the next run; zero for never
	Running    time.Time // since when a run is under way; zero for none
}

// Condition is the state in one word: the crawler's, unless the source is
// switched off or no longer configured.
func (r sourceRow) Condition() string {
	switch {
	case !r.Configured:
		return "removed"
	case !r.Enabled:
		return "disabled"
	default:
		return r.State.Status.String()
	}
}

// Troubled reports whether somebody should look.
func (r sourceRow) Troubled() bool {
	return r.Configured && r.Enabled && (r.State.Status == ledger.SourceFailing || r.Resettable())
}

// Resettable reports whether a reset would change anything.
func (r sourceRow) Resettable() bool {
	return r.Configured && (r.State.Status == ledger.SourceDead || r.State.Status == ledger.SourceGone)
}

// Runnable reports whether it can be crawled at once; one that is gone has to
// be reset first.
func (r sourceRow) Runnable() bool { return r.Configured && r.State.Status != ledger.SourceGone }

// Tone is the colour of the condition.
func (r sourceRow) Tone() string {
	switch {
	case !r.Configured || !r.Enabled:
		return ""
	case r.Resettable():
		return "bad"
	case r.State.Status == ledger.SourceFailing || r.State.Status == ledger.SourceThrottle:
		return "warn"
	case r.State.Status == ledger.SourceAlive:
		return "good"
	default:
		return ""
	}
}

// Address is where the source is read.
func (r sourceRow) Address() string {
	if r.Channel != "" {
		return "https://t.me/" + r.Channel
	}
	return r.FeedAddress(r.State)
}

// Label is the name, where there is none the slug.
func (r sourceRow) Label() string { return cmp.Or(r.Name, r.State.Title, string(r.Slug)) }

// allSources joins the registry and the states, by name.
func (s *Server) allSources() []sourceRow {
	states := map[ledger.Slug]sources.Source{}
	for _, src := range s.Sources.All() {
		states[src.Slug] = src
	}
	var rows []sourceRow
	for _, v := range s.Registry.Status() {
		slug := v.Source.Slug
		rows = append(rows, sourceRow{
			Source: v.Source, State: states[slug].SourceState, Truncated: states[slug].Truncated, Configured: true, Due: v.Due, Running: v.Running,
		})
		delete(states, slug)
	}
	for slug, state := range states {
		rows = append(rows, sourceRow{Source: crawl.Source{Slug: slug}, State: state.SourceState, Truncated: state.Truncated})
	}
	slices.SortFunc(rows, func(a, b sourceRow) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.Label()), strings.ToLower(b.Label())), cmp.Compare(a.Slug, b.Slug))
	})
	return rows
}

// sourceNames are the names of sources by slug, for pages that list posts.
func (s *Server) sourceNames() map[ledger.Slug]string {
	names := map[ledger.Slug]string{}
	for _, v := range s.Registry.Status() {
		names[v.Source.Slug] = cmp.Or(v.Source.Name, string(v.Source.Slug))
	}
	return names
}

// sourceFilters are the tabs of the table; each but the first shows only where
// it has a source.
func sourceFilters() []sourceFilter {
	status := func(want string) func(sourceRow) bool {
		return func(r sourceRow) bool { return r.Condition() == want }
	}
	return []sourceFilter{
		{"", func(r sourceRow) bool { return r.Configured }},
		{"trouble", sourceRow.Troubled},
		{"dead", sourceRow.Resettable},
		{"throttled", status("throttled")},
		{"new", status("new")},
		{"disabled", status("disabled")},
		{"removed", status("removed")},
	}
}

type sourceFilter struct {
	name  string
	holds func(sourceRow) bool
}

type crawlersPage struct {
	Queue   queue.Counts
	Waited  time.Duration // of the longest pending post
	LLM     classify.BreakerStatus
	Account accountNotice // zero while the account is ready, or there is none
	Rows    []sourceRow
	Total   int
	Dead    int
	Filter  string
	Tabs    []countedChoice
	Views   []projections.Status // those that are behind, or stand still
	Here    string
}

// lagging is how many events a view may be behind before the page says so.
const lagging = 1000

func (s *Server) laggingViews() []projections.Status {
	if s.Projections == nil {
		return nil
	}
	return slices.DeleteFunc(s.Projections(), func(v projections.Status) bool {
		return v.Lag < lagging && v.Error == "" && !v.Rebuilding
	})
}

// accountNotice is a Telegram account that needs something.
type accountNotice struct{ State, Message string }

type countedChoice struct {
	choice
	Count int
}

func (s *Server) crawlers(w http.ResponseWriter, r *http.Request) error {
	counts, now := s.queueNow()
	page := crawlersPage{
		Queue: counts, Waited: waited(counts.OldestPending, now), Filter: r.URL.Query().Get("show"), Views: s.laggingViews(), Here: s.here(r),
	}
	all := s.allSources()
	for _, f := range sourceFilters() {
		n := 0
		for _, row := range all {
			if f.holds(row) {
				n++
			}
		}
		if n == 0 && f.name != "" && f.name != page.Filter {
			continue
		}
		if f.name == "dead" {
			page.Dead = n
		}
		if f.name == "" {
			page.Total = n
		}
		current := f.name == page.Filter
		page.Tabs = append(page.Tabs, countedChoice{choice{f.name, "", current}, n})
		if current {
			page.Rows = slices.DeleteFunc(slices.Clone(all), func(row sourceRow) bool { return !f.holds(row) })
		}
	}
	if s.LLM != nil {
		page.LLM = s.LLM()
	}
	if s.Telegram != nil {
		if state, message := s.Telegram(r.Context()); state != "ready" {
			page.Account = accountNotice{state, message}
		}
	}
	return s.render(w, r, http.StatusOK, "crawlers.html", "title.crawlers", page)
}

// shownRuns is how many runs a source's page lists.
const shownRuns = 50

type sourcePage struct {
	sourceRow
	Runs []sources.Run
	Here string
}

func (s *Server) source(w http.ResponseWriter, r *http.Request) error {
	row, err := s.findSource(ledger.Slug(mux.Vars(r)["slug"]))
	if err != nil {
		return err
	}
	runs, err := s.Sources.Runs(r.Context(), row.Slug, shownRuns)
	if err != nil {
		return err
	}
	return s.renderTitled(w, r, http.StatusOK, "source.html", row.Label(), sourcePage{row, runs, s.here(r)})
}

func (s *Server) findSource(slug ledger.Slug) (sourceRow, error) {
	for _, row := range s.allSources() {
		if row.Slug == slug {
			return row, nil
		}
	}
	return sourceRow{}, fmt.Errorf("%w: source %q", ledger.ErrNotFound, string(slug))
}

func (s *Server) crawlNow(w http.ResponseWriter, r *http.Request) error {
	return s.withSlugs(w, r, func(slugs []ledger.Slug) (string, error) {
		return "flash.crawl_started", s.Commands.CrawlNow(r.Context(), slugs...)
	})
}

func (s *Server) resetDead(w http.ResponseWriter, r *http.Request) error {
	return s.withSlugs(w, r, func(slugs []ledger.Slug) (string, error) {
		n, err := s.Commands.ResetDead(r.Context(), slugs...)
		if n == 0 {
			return "flash.reset_none", err
		}
		return "flash.reset", err
	})
}

func (s *Server) workNow(w http.ResponseWriter, r *http.Request) error {
	return s.withSlugs(w, r, func([]ledger.Slug) (string, error) {
		return "flash.work_started", s.Commands.WorkNow(r.Context())
	})
}

// withSlugs reads the sources that a button was for, acts and leads back.
func (s *Server) withSlugs(w http.ResponseWriter, r *http.Request, act func([]ledger.Slug) (string, error)) error {
	if err := parseForm(r); err != nil {
		return err
	}
	slugs, err := s.knownSlugs(r.PostForm["slug"])
	if err != nil {
		return err
	}
	key, err := act(slugs)
	if err != nil {
		return err
	}
	s.flash(w, r, key)
	s.redirectBack(w, r)
	return nil
}

func (s *Server) knownSlugs(names []string) ([]ledger.Slug, error) {
	slugs := make([]ledger.Slug, 0, len(names))
	for _, name := range names {
		row, err := s.findSource(ledger.Slug(name))
		if err != nil {
			return nil, err
		}
		slugs = append(slugs, row.Slug)
	}
	return slugs, nil
}
