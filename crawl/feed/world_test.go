package feed_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/feed"
	"vesti.nixg.ru/crawl/fetch"
	"vesti.nixg.ru/crawl/page"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
	"vesti.nixg.ru/ledger/ledgertest"
)

// world is an internet of one server, which answers for every host, and a
// ledger.
type world struct {
	t      testing.TB
	client *fetch.Client
	pages  *page.Extractor
	kind   *feed.Kind
	log    *badgerlog.Log
}

func newWorld(t testing.TB, handler http.HandlerFunc) *world {
	t.Helper()
	plainSrv, secureSrv := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	t.Cleanup(plainSrv.Close)
	t.Cleanup(secureSrv.Close)
	client := fetch.New(fetch.Options{
		HostGap:  -1,
		Resolver: anyHost{},
		TLS:      &tls.Config{InsecureSkipVerify: true},
		Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			to := plainSrv.Listener.Addr().String()
			if _, port, err := net.SplitHostPort(addr); err == nil && port == "443" {
				to = secureSrv.Listener.Addr().String()
			}
			return (&net.Dialer{}).DialContext(ctx, network, to)
		},
	})
	t.Cleanup(client.Close)
	pages := page.New(page.Options{Client: client})
	t.Cleanup(pages.Close)
	return &world{
		t: t, client: client, pages: pages,
		kind: feed.New(feed.Options{Client: client, Pages: pages}),
		log:  ledgertest.Open(t),
	}
}

// anyHost resolves every name to one public address.
type anyHost struct{}

func (anyHost) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("93.184.215.14")}, nil
}

func source(url string) crawl.Source {
	return crawl.Source{
		Slug: "test", Name: "Test", FeedURL: url, Crawler: ledger.CrawlerRSS, Direction: "tech",
		Enabled: true, MaxItems: 25, FullText: crawl.FullTextFalse,
	}
}

// result is what a run gave.
type result struct {
	now    time.Time
	report crawl.Report
	items  []ledger.Item // as they were appended
	drops  []crawl.Dropped
}

// item returns what became of an entry of the document.
func (r result) item(e feed.Entry) (ledger.Item, bool) {
	for _, it := range r.items {
		if it.Title == e.Title && it.URL == e.Link && it.PublishedRaw == e.PublishedRaw {
			return it, true
		}
	}
	return ledger.Item{}, false
}

func (w *world) crawl(src crawl.Source, now time.Time) (result, error) {
	return w.run(crawl.Job{Source: src, Now: now, Unconditional: true})
}

func (w *world) run(job crawl.Job) (result, error) {
	w.t.Helper()
	sink := &sink{Log: w.log}
	job.Sink = sink
	report, err := w.kind.Crawl(w.t.Context(), job)
	return result{now: job.Now, report: report, items: sink.items, drops: sink.drops}, err
}

// sink gives items to a real ledger and keeps what it saw.
type sink struct {
	*badgerlog.Log
	items []ledger.Item
	drops []crawl.Dropped
}

func (s *sink) Append(ctx context.Context, items []ledger.Item) ([]ledger.Appended, error) {
	s.items = append(s.items, items...)
	return s.Log.Append(ctx, items)
}

func (s *sink) Drop(_ context.Context, entries []crawl.Dropped) (int, error) {
	s.drops = append(s.drops, entries...)
	return len(entries), nil
}
