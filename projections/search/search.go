// Package search finds posts by their texts, in Russian and in English. It
// keeps a bleve index of texts and titles alone; whatever else is known of a
// post, package posts knows.
package search

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/projections"
	"vesti.nixg.ru/projections/posts"
	"vesti.nixg.ru/projections/search/analyse"
)

const (
	name = "search"
	// version changes with the analysis and with the fields: an index made
	// otherwise does not find what queries look for.
	version = 2
)

// Request is a search. Filters of the query and of the request both hold.
type Request struct {
	// Query is what a person typed: words, all of which must be there; "phrases";
	// prefixes*; -excluded words; OR; and the fields title, source, direction,
	// lang, status, before, after. An empty one lists every post.
	Query string
	posts.Filter
	// Sort is by relevance where it is empty and the query has words, else by date.
	Sort   posts.Sort
	Limit  int // hits on the page; 0 for DefaultLimit, at most MaxLimit
	Offset int
	Facets bool
}

// Limits of a page.
const (
	DefaultLimit = 20
	MaxLimit     = 200
)

// Result is the answer to a Request.
type Result struct {
	Total  int
	Took   time.Duration
	Sort   posts.Sort // in force
	Hits   []Hit
	Facets posts.Facets
	Notes  []Note // what of the query was left out, and why
}

// Hit is a post that was found.
type Hit struct {
	posts.Post
	Score   float64   // by relevance only; comparable within one result
	Heading []Segment // the title or what stands for it, see ledger.Item.Headline, with what was found marked
	Media   []string  // as in ledger.Item; only where there is no heading
	Snippet []Segment // the part of the text with most of what was found, else its beginning
}

// Segment is a piece of plain text. It is not escaped.
type Segment struct {
	Text string
	Mark bool // the query found it
}

// Note says that a part of the query was not followed.
type Note struct {
	Reason NoteReason
	Part   string // of the query, as typed; but see NoteRebuilding
}

// NoteReason is why a part of a query was left out, from a closed set.
type NoteReason string

// The reasons.
const (
	NoteTooLong    NoteReason = "too_long"   // the query was cut
	NoteTooMany    NoteReason = "too_many"   // a word too many
	NoteNothing    NoteReason = "nothing"    // there is nothing in the query to look for
	NoteBadDate    NoteReason = "bad_date"   // before and after want 2026-01-31, 7d, today or the like
	NoteBadValue   NoteReason = "bad_value"  // a field has no such value
	NoteRelaxed    NoteReason = "relaxed"    // no post has every word: these have some of them
	NotePartial    NoteReason = "partial"    // so many words begin so that only the frequent ones were searched
	NoteTimeout    NoteReason = "timeout"    // these were found until the time was over
	NoteRebuilding NoteReason = "rebuilding" // the index is being built; Part is how much is there, "42 %"
)

// Texts gives posts with their newest texts, and the last event there is.
type Texts interface {
	Post(ctx context.Context, num ledger.PostNum) (ledger.Post, error)
	Head() ledger.Seq
}

// Options are what a Search needs.
type Options struct {
	Dir    string         // of the index; created where it does not exist
	Texts  Texts          // the engine
	Posts  *posts.Posts   // the projection that filters, orders and counts
	Logger *slog.Logger   // nil discards
	Zone   *time.Location // of dates in queries; nil is UTC
	// Directions and Sources are what queries may name beside those that posts
	// have; nil for none. What is neither is left out of a query, with a note.
	Directions []ledger.Direction
	Sources    func() []ledger.Slug
	// Registerer takes the metrics; nil registers none.
	Registerer prometheus.Registerer
}

// Search is the projection. It is safe for concurrent use.
type Search struct {
	dir     string
	texts   Texts
	posts   *posts.Posts
	logger  *slog.Logger
	zone    *time.Location
	known   func(field, value string) bool
	stemmer *analyse.Stemmer
	metrics *metrics
	serving atomic.Pointer[fold]
}

// New returns the projection.
func New(o Options) *Search {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	s := &Search{
		dir: o.Dir, texts: o.Texts, posts: o.Posts, logger: o.Logger, zone: o.Zone, stemmer: analyse.NewStemmer(),
	}
	s.known = func(field, value string) bool {
		switch field {
		case fieldDirection:
			d := ledger.Direction(value)
			return value == noDirection || slices.Contains(o.Directions, d) || o.Posts.HasDirection(d)
		case fieldSource:
			slug := ledger.Slug(value)
			return o.Posts.HasSource(slug) || o.Sources != nil && slices.Contains(o.Sources(), slug)
		default:
			return true
		}
	}
	s.metrics = newMetrics(o.Registerer, s.serving.Load)
	return s
}

// Spec implements projections.Projection.
func (s *Search) Spec() projections.Spec { return projections.Spec{Name: name, Version: version} }

// Open implements projections.Projection.
func (s *Search) Open(_ context.Context, generation uint64) (projections.Fold, error) {
	return openFold(s.folder(generation), s.texts, s.stemmer, s.logger)
}

// Discard implements projections.Projection. Of damaged generations the last
// one is kept, under another name.
func (s *Search) Discard(_ context.Context, generation uint64, damaged bool) error {
	dir := s.folder(generation)
	if !damaged {
		return os.RemoveAll(dir)
	}
	aside := filepath.Join(s.dir, "damaged")
	if err := os.RemoveAll(aside); err != nil {
		return err
	}
	err := os.Rename(dir, aside)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Serve implements projections.Projection.
func (s *Search) Serve(f projections.Fold) {
	served, _ := f.(*fold)
	s.serving.Store(served)
}

func (s *Search) folder(generation uint64) string {
	return filepath.Join(s.dir, strconv.FormatUint(generation, 10))
}
