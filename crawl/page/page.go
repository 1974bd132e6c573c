// Package page gets the main text of an entry's page. See crawl/feed/DESIGN.md
// for when it is asked.
package page

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/fetch"
	"vesti.nixg.ru/ledger"
)

// Getter gets pages; *fetch.Client is one.
type Getter interface {
	Get(ctx context.Context, r fetch.Request) (*fetch.Response, error)
}

// Options set an Extractor up. Client is needed.
type Options struct {
	Client   Getter
	Timeout  time.Duration // of the extraction of one page, without its fetch; default 15 s
	Parallel int           // extractions at once; default the number of CPUs
}

// Errors of Get. Those of the client come as they are.
var (
	// ErrNotPage: what was fetched is no HTML.
	ErrNotPage = errors.New("not an HTML page")
	// ErrNoText: there is no main text in the page.
	ErrNoText = errors.New("no main text found")
	// ErrSlow: the extraction took too long, or the page is too large for it.
	ErrSlow = errors.New("the page takes too long to read")
	// ErrBusy: other pages took the time there was for reading this one.
	ErrBusy = errors.New("other pages take too long to read")
)

// Page is an article as its page has it.
type Page struct {
	Text      string            // plain; paragraphs are parted by an empty line
	From      ledger.TextOrigin // TextPage or TextSelector
	URL       string            // that answered, after redirects
	Canonical string            // the address the page gives itself, where it may be believed; else URL
	Truncated bool              // the page was cut at the size limit
}

// Extractor gets pages and their texts. It is safe for concurrent use. Close it
// when nothing uses it any more.
type Extractor struct {
	client  Getter
	timeout time.Duration
	slots   chan struct{}
	running sync.WaitGroup
}

// New returns an extractor.
func New(opts Options) *Extractor {
	if opts.Timeout <= 0 {
		opts.Timeout = 15 * time.Second
	}
	if opts.Parallel <= 0 {
		opts.Parallel = runtime.NumCPU()
	}
	return &Extractor{client: opts.Client, timeout: opts.Timeout, slots: make(chan struct{}, opts.Parallel)}
}

// Close returns when no extraction is under way, also none that Get gave up.
func (e *Extractor) Close() { e.running.Wait() }

// Get fetches the page of one of the source's entries and returns its main
// text: what the source's CSS selector picks, where it has one that picks
// something, else what the extraction finds. A page that hangs the extraction
// costs one of its slots until it is done, not the crawl.
func (e *Extractor) Get(ctx context.Context, src crawl.Source, url string) (Page, error) {
	resp, err := e.client.Get(ctx, fetch.ForPage(src, url))
	if err != nil {
		return Page{}, fmt.Errorf("get page: %w", err)
	}
	in := Input{Body: resp.Body, ContentType: resp.Header.Get("Content-Type"), URL: resp.FinalURL, Selector: src.Selector}
	p, err := e.extract(ctx, in)
	if err != nil {
		return Page{}, fmt.Errorf("read page %s: %w", resp.Where(), err)
	}
	p.Truncated = resp.Truncated
	return p, nil
}

// enter waits for a slot, as long as an extraction may take at most.
func (e *Extractor) enter(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, e.timeout, ErrBusy)
	defer cancel()
	select {
	case e.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (e *Extractor) extract(ctx context.Context, in Input) (Page, error) {
	if err := e.enter(ctx); err != nil {
		return Page{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, e.timeout, ErrSlow)
	defer cancel()
	type result struct {
		page Page
		err  error
	}
	done := make(chan result, 1)
	e.running.Go(func() {
		defer func() { <-e.slots }()
		p, err := Extract(in)
		done <- result{p, err}
	})
	select {
	case r := <-done:
		return r.page, r.err
	case <-ctx.Done():
		return Page{}, context.Cause(ctx)
	}
}
