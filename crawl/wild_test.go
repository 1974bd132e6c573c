package crawl_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/feed"
	"vesti.nixg.ru/crawl/fetch"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/ledgertest"
	"vesti.nixg.ru/ledger/ledgertest/cases"
)

// wildFeeds returns the names and bytes of the captured feeds.
func wildFeeds(t testing.TB) (names []string, bodies [][]byte) {
	t.Helper()
	dir := cases.Corpora(t, "feeds/wild")
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		names, bodies = append(names, f.Name()), append(bodies, b)
	}
	return names, bodies
}

// Every captured feed is a source of one real server on loopback, without
// anything between: the sources allow its address.
func TestWildFeedsOverRealHTTP(t *testing.T) {
	names, bodies := wildFeeds(t)
	served := map[string][]byte{}
	for i := range names {
		served[fmt.Sprintf("/%d", i)] = bodies[i]
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		_, _ = w.Write(served[r.URL.Path])
	}))
	defer srv.Close()
	var sources []crawl.Source
	file := map[ledger.Slug]string{}
	for i := range names {
		s := feedSource(ledger.Slug(fmt.Sprintf("wild%d", i)), ledger.P1)
		s.FeedURL, s.AllowPrivate, s.FullText, s.MaxItems = fmt.Sprintf("%s/%d", srv.URL, i), true, crawl.FullTextFalse, 1000
		sources = append(sources, s)
		file[s.Slug] = names[i]
	}
	var ahead atomic.Int64
	clock := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	client := fetch.New(fetch.Options{Now: clock})
	defer client.Close()
	log := ledgertest.Open(t, ledgertest.Now(clock))
	c := crawl.New(crawl.Options{Log: log, Now: clock, Kinds: map[ledger.Crawler]crawl.Kind{
		ledger.CrawlerRSS: feed.New(feed.Options{Client: client}),
	}})
	if _, err := c.Reload(t.Context(), sources); err != nil {
		t.Fatal(err)
	}
	run := func() crawl.Summary {
		t.Helper()
		sum, err := c.RunOnce(t.Context(), everything(), crawl.Once{})
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}

	first := run()
	failed := 0
	for _, r := range first.Results {
		if r.Outcome != crawl.OutcomeFailed {
			continue
		}
		failed++
		if r.Cause != ledger.CauseNotFeed {
			t.Errorf("%s: %s", file[r.Slug], r.Error)
		}
	}
	if failed > 2 || first.New < 1000 {
		t.Errorf("%d of %d feeds failed, %d posts are new", failed, len(names), first.New)
	}
	t.Logf("%d feeds, %d no feeds, %d entries, %d new, %d seen again", len(names), failed, first.Fetched, first.New, first.SeenAgain)

	head := log.Head()
	if again := run(); again.New != 0 || again.Revised != 0 || again.SeenAgain != 0 || again.NotModified != len(names)-failed {
		t.Errorf("the second run: %+v", again)
	}
	ahead.Store(int64(25 * time.Hour)) // everything is asked for and read whole
	if again := run(); again.New != 0 || again.Revised != 0 || again.SeenAgain != 0 || again.Fetched != first.Fetched {
		t.Errorf("the unconditional run: new %d, revised %d, seen again %d, fetched %d of %d",
			again.New, again.Revised, again.SeenAgain, again.Fetched, first.Fetched)
	}
	events, err := log.Read(t.Context(), head, 100_000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.Type.OfPost() {
			t.Errorf("runs that found nothing wrote %s", e.Type)
		}
	}
}
