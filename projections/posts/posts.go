// Package posts lists posts by what is known of them, without their texts: the
// newest first or the most interesting, filtered and counted by facet. Package
// search finds by text and lets this package filter, order and count.
package posts

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/projections"
)

const (
	name    = "posts"
	version = 1
)

// Post is what a list shows of a post.
type Post struct {
	Num       ledger.PostNum
	ID        ledger.PostID
	Title     string
	URL       string
	Author    string
	Source    ledger.Slug   // that it was fetched from first
	Carriers  []ledger.Slug // the other sources that carry its text
	Lang      string
	Date      time.Time // by which it is listed: Published, unless that is missing or more than a day after Fetched
	Published time.Time // as the source says; zero for unknown
	Fetched   time.Time
	IsOwn     bool
	Views     *int64 // nil for unknown
	Reactions *int64

	Status      ledger.Status
	Lane        ledger.Lane
	Cause       ledger.Cause     // of the last failure; "" since the last success
	Direction   ledger.Direction // the editor's, else the classifier's, else none yet
	Corrected   bool             // Direction is the editor's
	Relevance   float64
	Interest    float64
	Summary     string
	DecidedBy   string // the stage that settled it: keyword, learned, llm, default
	Provisional bool
	Verdict     ledger.Verdict
	Revisions   int
	LinkedTo    ledger.PostNum // another post with the same canonical URL
	Story       ledger.PostNum
}

// Filter narrows a list. The values of one field are alternatives, the fields
// come together; the zero Filter lets every post pass that is neither gone at its
// source nor expired.
type Filter struct {
	Directions []ledger.Direction // "" for posts that have none
	Sources    []ledger.Slug      // carriers count
	Langs      []string
	Statuses   []ledger.Status
	Verdicts   []ledger.Verdict // VerdictNone for posts that no editor decided on
	Since      time.Time        // dates from here on; zero for any
	Until      time.Time        // dates before; zero for any
	Own        bool             // only posts of the editor's own sources
	None       bool             // no post: what was asked for contradicts itself

	NotDirections []ledger.Direction
	NotSources    []ledger.Slug
	NotLangs      []string
}

// Sort is the order of a list.
type Sort string

// The orders. Posts that are equal in it come newest first.
const (
	ByDate      Sort = "date"
	ByInterest  Sort = "interest"
	ByRelevance Sort = "relevance" // to a search; without one, by date
)

// Request asks for a part of a list.
type Request struct {
	Filter
	Sort   Sort // "" is by date
	Limit  int  // posts on the page; 0 for none, only the counts
	Offset int
	Facets bool
	Rerank *Rerank // of a search by relevance; nil for none
}

// Rerank is a closer look at the best of what a search found, as many as Top. Look
// may change their scores, upwards; they are then put in order again.
type Rerank struct {
	Top  int
	Look func(ctx context.Context, best []Match) error
}

// Page is a part of a list.
type Page struct {
	Total  int // posts that pass the filter
	Posts  []Post
	Scores []float64 // of Posts, in a search by relevance
	Facets Facets
}

// Facets count the posts by the values of a field. A field's own filter is not
// applied to its counts, so that they say what another choice would give.
type Facets struct {
	Directions []Count
	Sources    []Count
	Langs      []Count
	Statuses   []Count
	Verdicts   []Count
}

// Count is a value and how many posts have it. Counts come with the most
// frequent value first.
type Count struct {
	Value string
	Count int
}

// Match is a post that a search found.
type Match struct {
	Num   ledger.PostNum
	Score float64
}

// Posts is the projection. It is safe for concurrent use.
type Posts struct {
	stores  projections.Stores
	serving atomic.Pointer[fold]
}

// New returns the projection, which keeps its rows in stores.
func New(stores projections.Stores) *Posts { return &Posts{stores: stores} }

// List returns a page of all posts.
func (p *Posts) List(ctx context.Context, r Request) (Page, error) {
	f := p.serving.Load()
	if f == nil {
		return Page{}, nil
	}
	return f.page(ctx, f.columns.all(r), r)
}

// Select returns a page of the posts that a search found. Those that are not
// known here (yet, or any more) are left out.
func (p *Posts) Select(ctx context.Context, matches []Match, r Request) (Page, error) {
	f := p.serving.Load()
	if f == nil {
		return Page{}, nil
	}
	if r.Rerank == nil || r.Sort != ByRelevance || r.Offset >= r.Rerank.Top || r.Limit <= 0 {
		return f.page(ctx, f.columns.selected(matches, r), r)
	}
	wide := r
	wide.Limit, wide.Offset = max(r.Offset+r.Limit, r.Rerank.Top), 0
	s := f.columns.selected(matches, wide)
	best := s.page[:min(len(s.page), r.Rerank.Top)]
	if err := r.Rerank.Look(ctx, best); err != nil {
		return Page{}, err
	}
	slices.SortStableFunc(best, func(a, b Match) int { return cmp.Compare(b.Score, a.Score) })
	s.page = s.page[min(len(s.page), r.Offset):min(len(s.page), r.Offset+r.Limit)]
	return f.page(ctx, s, r)
}

// Get returns a post, an error matching ledger.ErrNotFound where it is unknown.
func (p *Posts) Get(ctx context.Context, num ledger.PostNum) (Post, error) {
	f := p.serving.Load()
	if f == nil {
		return Post{}, fmt.Errorf("post %d: %w", num, ledger.ErrNotFound)
	}
	found, err := f.posts(ctx, []ledger.PostNum{num})
	if err != nil {
		return Post{}, err
	}
	if len(found) == 0 {
		return Post{}, fmt.Errorf("post %d: %w", num, ledger.ErrNotFound)
	}
	return found[0], nil
}

// HasDirection reports whether a post was ever of the direction.
func (p *Posts) HasDirection(d ledger.Direction) bool {
	f := p.serving.Load()
	return f != nil && f.columns.has(&f.columns.directions, string(d))
}

// HasSource reports whether the source ever carried a post.
func (p *Posts) HasSource(s ledger.Slug) bool {
	f := p.serving.Load()
	return f != nil && f.columns.has(&f.columns.sources, string(s))
}

// Spec implements projections.Projection.
func (p *Posts) Spec() projections.Spec { return projections.Spec{Name: name, Version: version} }

// Open implements projections.Projection.
func (p *Posts) Open(ctx context.Context, generation uint64) (projections.Fold, error) {
	table, err := projections.OpenTable(ctx, p.stores, name, generation)
	if err != nil {
		return nil, err
	}
	f := &fold{Table: table, columns: newColumns()}
	if err := f.load(ctx); err != nil {
		return nil, fmt.Errorf("load the posts: %w", err)
	}
	return f, nil
}

// Discard implements projections.Projection.
func (p *Posts) Discard(ctx context.Context, generation uint64, _ bool) error {
	return projections.DropTable(ctx, p.stores, name, generation)
}

// Serve implements projections.Projection.
func (p *Posts) Serve(f projections.Fold) {
	served, _ := f.(*fold)
	p.serving.Store(served)
}
