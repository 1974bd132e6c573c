package crawl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"vesti.nixg.ru/ledger"
)

// Log is what the crawler needs of the ledger's engine.
type Log interface {
	Append(ctx context.Context, items []ledger.Item) ([]ledger.Appended, error)
	KnownItems(ctx context.Context, keys []ledger.ItemKey) ([]ledger.KnownItem, error)
	KnownText(ctx context.Context, source ledger.Slug, id ledger.PostID) (ledger.KnownText, error)
	Record(ctx context.Context, events ...ledger.Event) ([]ledger.Seq, error)
	Source(ctx context.Context, slug ledger.Slug) (ledger.SourceState, error)
}

// Options set a Crawler up. Log and Kinds are needed.
type Options struct {
	Log   Log
	Kinds map[ledger.Crawler]Kind
	Drops *Drops // keeps what rules leave out; nil counts it only
	// Pause tells the client of the pauses that the ledger remembers, so that a
	// restart does not ask a host too early on behalf of another source; nil for
	// nobody.
	Pause func(rawURL string, until time.Time)

	Intervals    map[ledger.Priority]time.Duration // in place of Priority.Interval
	Concurrency  int                               // runs at once; default 16
	HostParallel int                               // runs at once of one host's sources; default 2
	RunTimeout   time.Duration                     // of one run; default 10 min

	Now        func() time.Time      // default time.Now
	Rand       func() float64        // from [0,1), safe for concurrent use; default math/rand/v2
	Logger     *slog.Logger          // default none
	Registerer prometheus.Registerer // default none
}

// Crawler knows the sources and when each is due. It is safe for concurrent
// use; Run may be called once.
type Crawler struct {
	opts    Options
	gate    *gate
	metrics *metrics
	wake    chan struct{} // holds one: the schedule has changed

	mu      sync.Mutex
	entries map[ledger.Slug]*entry

	faultSaid time.Time // when the log last heard of a run that was not recorded; under mu
}

// entry is a source in the registry. Its fields are under Crawler.mu.
type entry struct {
	src     Source
	state   ledger.SourceState
	due     time.Time      // zero for at once
	trigger ledger.Trigger // of the next run where somebody asked for it; "" for the schedule's
	full    bool           // the next run asks for the whole document
	faults  int            // runs in a row that the ledger could not take
	busy    bool           // a run is under way
	started time.Time      // of the run under way
	host    string         // that the run under way counts for
}

// New returns a crawler without sources: Reload gives it some.
func New(opts Options) *Crawler {
	if opts.Concurrency <= 0 {
		opts.Concurrency = 16
	}
	if opts.HostParallel <= 0 {
		opts.HostParallel = 2
	}
	if opts.RunTimeout <= 0 {
		opts.RunTimeout = 10 * time.Minute
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Rand == nil {
		opts.Rand = rand.Float64
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Crawler{
		opts:    opts,
		gate:    newGate(opts.Concurrency, opts.HostParallel),
		wake:    make(chan struct{}, 1),
		entries: make(map[ledger.Slug]*entry),
	}
	c.metrics = newMetrics(opts.Registerer, c.census)
	return c
}

// Changes are what a reload made of the registry, each list in order.
type Changes struct {
	Added   []ledger.Slug `json:"added"`
	Changed []ledger.Slug `json:"changed"`
	Removed []ledger.Slug `json:"removed"`
}

// Reload puts sources in the place of the registry and returns what that has
// changed. Runs under way end as they began. A source that is defined otherwise
// now is due at once and asked for its whole document; one that is not stays as
// it is, due when it was, so that reloads add no failures to a source in error.
// A pause that a site asked for is kept. An error leaves the registry as it was.
func (c *Crawler) Reload(ctx context.Context, sources []Source) (Changes, error) {
	fresh := make(map[ledger.Slug]*entry, len(sources))
	for _, src := range sources {
		if c.opts.Kinds[src.Crawler] == nil {
			return Changes{}, fmt.Errorf("reload sources: %w: source %s: no crawler %q in this build", ledger.ErrInvalid, src.Slug, src.Crawler)
		}
		state, err := c.opts.Log.Source(ctx, src.Slug)
		if err != nil {
			return Changes{}, fmt.Errorf("reload sources: %w", err)
		}
		fresh[src.Slug] = &entry{src: src, state: state, due: c.due(src, state)}
	}
	c.mu.Lock()
	changes := c.replace(fresh)
	c.mu.Unlock()
	c.poke()
	return changes, nil
}

// replace makes fresh the registry, and keeps what is known of the sources that
// stay. Crawler.mu is held.
func (c *Crawler) replace(fresh map[ledger.Slug]*entry) Changes {
	changes := Changes{Added: []ledger.Slug{}, Changed: []ledger.Slug{}, Removed: []ledger.Slug{}}
	for _, slug := range slices.Sorted(maps.Keys(c.entries)) {
		if fresh[slug] == nil {
			changes.Removed = append(changes.Removed, slug)
		}
	}
	for _, slug := range slices.Sorted(maps.Keys(fresh)) {
		e, old := fresh[slug], c.entries[slug]
		if old == nil {
			changes.Added = append(changes.Added, slug)
			c.remindOfPause(e)
			continue
		}
		if was := old.src; !reflect.DeepEqual(was, e.src) {
			changes.Changed = append(changes.Changed, slug)
			old.src, old.due = e.src, c.due(e.src, old.state)
			c.redefined(old, was)
		}
		fresh[slug] = old // a run under way holds on to it
	}
	c.entries = fresh
	return changes
}

// redefined makes a source that was defined otherwise due at once, behind a
// pause only where its address is still the same. Crawler.mu is held.
func (c *Crawler) redefined(e *entry, was Source) {
	e.full = true
	if was.address() != e.src.address() || !c.paused(e) {
		e.due = time.Time{}
	}
}

func (c *Crawler) paused(e *entry) bool { return e.state.ThrottledUntil.After(c.opts.Now()) }

func (c *Crawler) remindOfPause(e *entry) {
	until := e.state.ThrottledUntil
	if c.opts.Pause != nil && e.src.FeedURL != "" && until.After(c.opts.Now()) {
		c.opts.Pause(e.src.FeedAddress(e.state), until)
	}
}

// SourceView is how a source stands.
type SourceView struct {
	Source  Source
	State   ledger.SourceState
	Due     time.Time // the next run; zero for never: disabled or gone
	Running time.Time // since when a run is under way; zero for none
}

// Status returns all sources, by slug.
func (c *Crawler) Status() []SourceView {
	c.mu.Lock()
	defer c.mu.Unlock()
	views := make([]SourceView, 0, len(c.entries))
	for _, e := range c.entries {
		v := SourceView{Source: e.src, State: e.state, Due: e.due}
		if e.busy {
			v.Running = e.started
		}
		if v.Due.IsZero() {
			v.Due = c.opts.Now()
		}
		if !e.scheduled() {
			v.Due = time.Time{}
		}
		views = append(views, v)
	}
	slices.SortFunc(views, func(a, b SourceView) int { return strings.Compare(string(a.Source.Slug), string(b.Source.Slug)) })
	return views
}

// scheduled reports whether the schedule runs the source at all.
func (e *entry) scheduled() bool {
	return e.trigger != "" || e.src.Enabled && e.state.Status != ledger.SourceGone
}

// Sources returns the registry, by slug.
func (c *Crawler) Sources() []Source {
	var sources []Source
	for _, v := range c.Status() {
		sources = append(sources, v.Source)
	}
	return sources
}

// RunNow asks the schedule to run these sources next, all enabled ones for
// none. It does not wait. The error matches ledger.ErrNotFound for a slug that
// is not in the registry and ledger.ErrInvalid for a source that is gone; then
// nothing was asked for.
func (c *Crawler) RunNow(slugs ...ledger.Slug) error {
	chosen, err := c.choose(Selection{Slugs: slugs, All: len(slugs) == 0}, false)
	if err != nil {
		return err
	}
	c.mu.Lock()
	for _, e := range chosen {
		e.trigger = ledger.TriggerManual
	}
	c.mu.Unlock()
	c.poke()
	return nil
}

// Reset makes sources alive, with no error, and due at once; see
// ledger.SourceReset. A source that has moved is asked at its configured
// address again, since the move may be what was wrong. actor says who wants it.
func (c *Crawler) Reset(ctx context.Context, actor ledger.Actor, slugs ...ledger.Slug) error {
	events := make([]ledger.Event, 0, len(slugs))
	for _, slug := range slugs {
		e := c.lookup(slug)
		if e == nil {
			return notFound(slug)
		}
		state, err := c.opts.Log.Source(ctx, slug)
		if err != nil {
			return fmt.Errorf("read state of source %s: %w", slug, err)
		}
		events = append(events, ledger.NewEvent(actor, 0, slug, ledger.SourceReset{}))
		if src := c.source(e); state.MovedTo != "" && src.FeedURL != "" {
			events = append(events, ledger.NewEvent(actor, 0, slug, ledger.SourceMoved{From: src.FeedURL}))
		}
	}
	if _, err := c.opts.Log.Record(ctx, events...); err != nil {
		return fmt.Errorf("reset sources: %w", err)
	}
	var failed []error
	for _, slug := range slugs {
		if e := c.lookup(slug); e != nil {
			failed = append(failed, c.refresh(ctx, e))
		}
	}
	c.poke()
	return errors.Join(failed...)
}

// refresh reads the source's state from the ledger and reschedules it.
func (c *Crawler) refresh(ctx context.Context, e *entry) error {
	slug := c.source(e).Slug
	state, err := c.opts.Log.Source(ctx, slug)
	if err != nil {
		return fmt.Errorf("read state of source %s: %w", slug, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e.state, e.due = state, c.due(e.src, state)
	return nil
}

func (c *Crawler) lookup(slug ledger.Slug) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries[slug]
}

func (c *Crawler) source(e *entry) Source {
	c.mu.Lock()
	defer c.mu.Unlock()
	return e.src
}

func notFound(slug ledger.Slug) error {
	return fmt.Errorf("source %q: %w in the registry", slug, ledger.ErrNotFound)
}

// Selection says which sources are meant: by slug, by direction, or all. The
// latter two leave out disabled sources and those that are gone.
type Selection struct {
	Slugs     []ledger.Slug
	Direction ledger.Direction
	All       bool
}

// choose returns the selection's entries of the registry, those that are gone
// only where asked.
func (c *Crawler) choose(sel Selection, gone bool) ([]*entry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return sel.among(c.entries, gone)
}

func (sel Selection) among(entries map[ledger.Slug]*entry, gone bool) ([]*entry, error) {
	var chosen []*entry
	for _, slug := range sel.Slugs {
		e := entries[slug]
		switch {
		case e == nil:
			return nil, notFound(slug)
		case e.state.Status == ledger.SourceGone && !gone:
			return nil, fmt.Errorf("%w: source %s is gone (410); reset it first to ask it again", ledger.ErrInvalid, slug)
		}
		chosen = append(chosen, e)
	}
	if !sel.All && sel.Direction == "" {
		return chosen, nil
	}
	for _, slug := range slices.Sorted(maps.Keys(entries)) {
		e := entries[slug]
		if e.src.Enabled && (gone || e.state.Status != ledger.SourceGone) && (sel.All || e.src.Direction == sel.Direction) {
			chosen = append(chosen, e)
		}
	}
	return chosen, nil
}

// poke makes Run look at the schedule again.
func (c *Crawler) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}
