package crawl_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
	"vesti.nixg.ru/ledger/ledgertest"
)

// script is a kind of source that a test writes: it does what the function
// says, and remembers the jobs it got.
type script struct {
	do func(ctx context.Context, job crawl.Job) (crawl.Report, error)

	mu   sync.Mutex
	jobs []crawl.Job
}

func (s *script) Crawl(ctx context.Context, job crawl.Job) (crawl.Report, error) {
	s.mu.Lock()
	s.jobs = append(s.jobs, job)
	s.mu.Unlock()
	if s.do == nil {
		return crawl.Report{HTTPStatus: 200}, nil
	}
	return s.do(ctx, job)
}

// of returns the jobs of one source.
func (s *script) of(slug ledger.Slug) []crawl.Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	var jobs []crawl.Job
	for _, j := range s.jobs {
		if j.Source.Slug == slug {
			jobs = append(jobs, j)
		}
	}
	return jobs
}

func feedSource(slug ledger.Slug, p ledger.Priority) crawl.Source {
	return crawl.Source{
		Slug: slug, Name: string(slug), FeedURL: "https://" + string(slug) + ".example/feed", Crawler: ledger.CrawlerRSS,
		Direction: "tech", Priority: p, Enabled: true, MaxItems: crawl.DefaultMaxItems,
	}
}

// quiet keeps the store's own clockwork out of a bubble's time.
func quiet(o *badgerlog.Options) { o.Tick = time.Hour }

// desk is a crawler with what a test needs to look at.
type desk struct {
	*crawl.Crawler
	log  *badgerlog.Log
	kind *script
	stop func() // ends Run, if it runs, and waits for it
}

func newDesk(t *testing.T, kind *script, opts crawl.Options, sources ...crawl.Source) *desk {
	t.Helper()
	d := &desk{kind: kind, stop: func() {}}
	if opts.Log == nil {
		d.log = ledgertest.Open(t, quiet)
		opts.Log = d.log
	}
	opts.Kinds = map[ledger.Crawler]crawl.Kind{ledger.CrawlerRSS: kind}
	d.Crawler = crawl.New(opts)
	if _, err := d.Reload(t.Context(), sources); err != nil {
		t.Fatal(err)
	}
	return d
}

// start runs the schedule until the test ends, or stop is called.
func (d *desk) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	d.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(d.stop)
}

func (d *desk) state(t *testing.T, slug ledger.Slug) ledger.SourceState {
	t.Helper()
	s, err := d.log.Source(t.Context(), slug)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// last returns the source's newest event of a run.
func (d *desk) last(t *testing.T, slug ledger.Slug) ledger.Payload {
	t.Helper()
	events, err := d.log.SourceEvents(t.Context(), slug, 1)
	if err != nil || len(events) != 1 {
		t.Fatalf("events of %s: %v, %v", slug, events, err)
	}
	return events[0].Payload
}
