// Package feed reads RSS, RDF, Atom and JSON feeds, as they are found rather
// than as they should be. See DESIGN.md.
package feed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/fetch"
	"vesti.nixg.ru/crawl/page"
	"vesti.nixg.ru/ledger"
)

// Getter gets feeds; *fetch.Client is one.
type Getter interface {
	Get(ctx context.Context, r fetch.Request) (*fetch.Response, error)
}

// Options set a Kind up. Client is needed.
type Options struct {
	Client Getter
	Pages  *page.Extractor // of entries without full text; nil fetches none
	Logger *slog.Logger    // default none
	// Now is asked for the time of a run where the job names none; default time.Now.
	Now func() time.Time
}

// Kind crawls feeds: it implements crawl.Kind and is safe for concurrent use.
type Kind struct {
	client  Getter
	pages   *page.Extractor
	log     *slog.Logger
	now     func() time.Time
	parsing chan struct{} // holds as many as there are CPUs: more would only take memory
}

// New returns the kind.
func New(opts Options) *Kind {
	k := &Kind{
		client: opts.Client, pages: opts.Pages, log: opts.Logger, now: opts.Now, parsing: make(chan struct{}, runtime.GOMAXPROCS(0)),
	}
	if k.log == nil {
		k.log = slog.New(slog.DiscardHandler)
	}
	if k.now == nil {
		k.now = time.Now
	}
	return k
}

// Crawl implements crawl.Kind. The same bytes as last time end the run like a
// 304, except in an unconditional one.
func (k *Kind) Crawl(ctx context.Context, job crawl.Job) (crawl.Report, error) {
	if job.Now.IsZero() {
		job.Now = k.now()
	}
	resp, err := k.client.Get(ctx, fetch.ForFeed(job))
	if err != nil {
		return crawl.Report{}, err //nolint:wrapcheck // the client's errors are those of Kind
	}
	old := job.State.Validators
	report := crawl.Report{HTTPStatus: resp.Status, Bytes: resp.Bytes, Validators: resp.Validators(old)}
	report.NotModified = resp.NotModified ||
		!job.Unconditional && !old.BodyHash.IsZero() && report.Validators.BodyHash == old.BodyHash
	if report.NotModified {
		report.Validators.LastBuildDate = old.LastBuildDate
		report.MovedTo = resp.PermanentURL
		return report, nil
	}
	opts := parseOptions(job.Source)
	opts.ContentType, opts.URL = resp.Header.Get("Content-Type"), resp.FinalURL
	doc, err := k.parse(resp.Body, opts)
	if err != nil {
		return crawl.Report{HTTPStatus: resp.Status, Bytes: resp.Bytes}, failure(resp, err)
	}
	if doc.Cut && len(doc.Entries) == 0 {
		return crawl.Report{HTTPStatus: resp.Status, Bytes: resp.Bytes}, failure(resp, &BrokenError{Err: errCut})
	}
	if doc.Cut { // the rest is to be had by asking again, which no validator may prevent
		report.Validators.ETag, report.Validators.LastModified, report.Validators.BodyHash = "", "", ledger.Hash{}
	}
	report.MovedTo = resp.PermanentURL
	report.Validators.LastBuildDate = ledger.CutText(doc.UpdatedRaw, maxRawDate)
	report.Title = ledger.CutText(doc.Title, maxTitle)
	report.Entries = doc.Listed
	report.Empty = len(doc.Entries) == 0
	report.Truncated = doc.Truncated
	if left := doc.Listed - len(doc.Entries); left > 0 {
		k.log.WarnContext(ctx, "feed has more entries than are read", "source", string(job.Source.Slug), "entries", doc.Listed, "left_out", left)
	}
	if err := k.take(ctx, job, doc, &report); err != nil {
		return report, err
	}
	return report, nil
}

// errCut: nothing of a document is whole.
var errCut = errors.New("it breaks off before the end of its first entry")

func (k *Kind) parse(body []byte, opts ParseOptions) (*Document, error) {
	k.parsing <- struct{}{}
	defer func() { <-k.parsing }()
	return Parse(body, opts)
}

// parseOptions are what the source says of its feed.
func parseOptions(src crawl.Source) ParseOptions {
	opts := ParseOptions{DateOrder: DateOrder(src.DateOrder)}
	if src.DateOrder == "" && src.Lang == "ru" {
		opts.DateOrder = DayFirst
	}
	if zone, err := time.LoadLocation(src.Timezone); err == nil && src.Timezone != "" {
		opts.Zone = zone
	}
	return opts
}

// failure is the run's error for a body that is not a readable feed.
func failure(resp *fetch.Response, err error) error {
	cause := ledger.CauseParse
	what := fmt.Sprintf("a feed that cannot be read: %v", errors.Unwrap(err))
	if other, ok := errors.AsType[*NotFeedError](err); ok {
		cause = ledger.CauseNotFeed
		what = other.What + ", not with a feed"
		if ct := resp.Header.Get("Content-Type"); ct != "" {
			what += " (Content-Type " + ct + ")"
		}
		if declared := declaredFeed(resp.Body, resp.FinalURL); other.Page && declared != "" {
			what += "; the page declares the feed " + declared + ": give that as feed_url, or see \"vesti sources discover\" for all it has"
		}
	}
	return &crawl.Error{Cause: cause, HTTPStatus: resp.Status, Message: resp.Where() + " answered with " + what, Err: err}
}
