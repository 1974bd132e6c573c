// Package search finds posts by their texts, in Russian and in English. It
// keeps a bleve index of texts and titles alone; whatever else is known of a
// post, package posts knows.
package search

import (
	"context"
	"log/slog"
	"time"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/projections/posts"
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
	Heading []Segment // the title, with what was found marked
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
	Part   string // of the query, as typed
}

// NoteReason is why a part of a query was left out, from a closed set.
type NoteReason string

// The reasons.
const (
	NoteTooLong      NoteReason = "too_long"       // the query was cut
	NoteTooMany      NoteReason = "too_many_words" // words beyond the limit
	NoteBadDate      NoteReason = "bad_date"
	NoteBadStatus    NoteReason = "bad_status"
	NoteOnlyExcluded NoteReason = "only_excluded" // exclusions with nothing to exclude from
	NoteShortPrefix  NoteReason = "short_prefix"  // too many words begin so: the most frequent of them were searched
	NoteTimeout      NoteReason = "timeout"       // it took too long: what was found until then
	NoteRebuilding   NoteReason = "rebuilding"    // the index is being built: not every post is in it
)

// Texts gives posts with their newest texts.
type Texts interface {
	Post(ctx context.Context, num ledger.PostNum) (ledger.Post, error)
}

// Options are what a Search needs.
type Options struct {
	Dir    string         // of the index; created where it does not exist
	Texts  Texts          // the engine
	Posts  *posts.Posts   // the projection that filters, orders and counts
	Logger *slog.Logger   // nil discards
	Zone   *time.Location // of dates in queries; nil is UTC
}
