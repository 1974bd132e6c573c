package crawl

import (
	"context"
	"fmt"
	"time"

	"vesti.nixg.ru/ledger"
)

// Kind reads one kind of source: a package below this one, wired in cmd/vesti.
// Implementations are safe for concurrent use.
type Kind interface {
	// Crawl reads the job's source once and hands what is new to its sink. It
	// returns an *Error when the source could not be read, a *Throttled when it
	// was told to wait, ctx's error when it was stopped; with each of them the
	// report says what was done until then.
	Crawl(ctx context.Context, job Job) (Report, error)
}

// Job is one run of one source.
type Job struct {
	Source Source
	State  ledger.SourceState // as it was before the run
	Now    time.Time
	// Unconditional asks for the whole document, without validators: once a day,
	// after a failure and for each probe of a dead source.
	Unconditional bool
	Sink          Sink
}

// Sink takes what a kind has read. A dry run has one that writes nothing.
type Sink interface {
	// KnownItems tells which items are known, and by which fingerprint, so that
	// no page is fetched for an entry that has not changed.
	KnownItems(ctx context.Context, keys []ledger.ItemKey) ([]ledger.KnownItem, error)
	// KnownText tells whose text it is, so that a notice in an article's place is
	// not taken for it.
	KnownText(ctx context.Context, source ledger.Slug, id ledger.PostID) (ledger.KnownText, error)
	// Append stores items and returns when they are durable. That of a dry run
	// stores nothing, and its answers name no post.
	Append(ctx context.Context, items []ledger.Item) ([]ledger.Appended, error)
	// Record stores events that are no items: PostMeasured, PostRemoved.
	Record(ctx context.Context, events ...ledger.Event) ([]ledger.Seq, error)
	// Drop keeps what the source's rules left out, to be looked up, and returns
	// how many of them were not dropped before: what counts in Report.Dropped.
	Drop(ctx context.Context, entries []Dropped) (int, error)
}

// Dropped is an entry that one of its source's rules left out.
type Dropped struct {
	Source    ledger.Slug
	Key       ledger.ItemKey
	Title     string
	URL       string
	Published time.Time // zero for unknown
	Rule      string    // as in the configuration, with "keep" or "block" before it
	At        time.Time // given by the sink where zero
}

// Report is what a run found.
type Report struct {
	HTTPStatus  int // of the last answer; 0 for none
	Entries     int // in the document, before the limit
	Fetched     int // looked at
	Dropped     int // left out by the source's own rules for the first time
	New         int
	SeenAgain   int
	Revised     int
	Bytes       int64 // of the decompressed body
	NotModified bool  // 304, or the same bytes as before
	Empty       bool  // a valid document without an entry
	Truncated   bool  // a document that was cut, or has more entries than are read; what was read is in the counts
	Validators  ledger.Validators
	Title       string // the feed's own
	Cursor      string // how far an incremental source was read; "" leaves the old one
	MovedTo     string // a permanent redirect's target, or a renamed channel's new address; "" for none
}

// Count adds what a sink said of appended items.
func (r *Report) Count(appended []ledger.Appended) {
	for _, a := range appended {
		switch a.Outcome {
		case ledger.OutcomeNew:
			r.New++
		case ledger.OutcomeSeenAgain:
			r.SeenAgain++
		case ledger.OutcomeRevised:
			r.Revised++
		case ledger.OutcomeKnown, ledger.OutcomeTouched:
		}
	}
}

// Error is a run that failed: the source could not be read. Message is for a
// person and names the host, never a credential.
type Error struct {
	Cause      ledger.Cause
	HTTPStatus int
	Message    string
	Err        error // what a library said; may be nil
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the library's error.
func (e *Error) Unwrap() error { return e.Err }

// Throttled is a run that was told to wait. It is no failure.
type Throttled struct {
	Until      time.Time
	HTTPStatus int
	Message    string
}

// Error returns the message and the time.
func (t *Throttled) Error() string {
	return fmt.Sprintf("%s; next try after %s", t.Message, t.Until.UTC().Format(time.RFC3339))
}
