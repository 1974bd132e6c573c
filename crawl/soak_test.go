package crawl_test

import (
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/crawltest"
	"vesti.nixg.ru/crawl/feed"
	"vesti.nixg.ru/crawl/fetch"
	"vesti.nixg.ru/crawl/page"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/ledgertest"
)

// TestSoak lets the whole crawler, from the schedule to the ledger, run for
// hours of fake time against sources that misbehave in every way at once: 500
// of them over a day and a half with VESTI_SOAK set, else fewer over seven
// hours. In the end every source's status is right, memory is flat, and no
// goroutine is left: a bubble does not end before its goroutines.
func TestSoak(t *testing.T) {
	count, hours := 2*len(misbehaviours()), 7
	if os.Getenv("VESTI_SOAK") != "" {
		count, hours = 500, 36
	}
	synctest.Test(t, func(t *testing.T) { soak(t, count, hours) })
}

func soak(t *testing.T, count, hours int) {
	kinds := misbehaviours()
	stub := &stub{began: time.Now(), asked: map[string]int{}, serve: map[string]misbehaviour{}}
	world := crawltest.New(t, stub, crawltest.InMemory, crawltest.HTTP1)
	client := fetch.New(world.Options(fetch.Options{MaxFeedBytes: 256 << 10, MaxPageBytes: 64 << 10}))
	pages := page.New(page.Options{Client: client})
	log := ledgertest.Open(t, quiet)
	c := crawl.New(crawl.Options{
		Log: log, Concurrency: 32,
		Kinds: map[ledger.Crawler]crawl.Kind{ledger.CrawlerRSS: feed.New(feed.Options{Client: client, Pages: pages})},
	})
	var sources []crawl.Source
	for i := range count {
		k := kinds[i%len(kinds)]
		s := feedSource(ledger.Slug(fmt.Sprintf("%s-%d", k.name, i)), ledger.P0)
		host := string(s.Slug) + ".example"
		s.FeedURL = k.scheme() + host + "/feed"
		if k.prepare != nil {
			host = k.prepare(world, &s, host)
		}
		stub.serve[host] = k
		sources = append(sources, s)
	}
	if _, err := c.Reload(t.Context(), sources); err != nil {
		t.Fatal(err)
	}
	d := &desk{Crawler: c, log: log}
	d.start(t)
	// What is always there has come by now: caches, pools, the first texts.
	time.Sleep(time.Duration(hours) * time.Hour / 2)
	synctest.Wait()
	half := heapMiB()
	time.Sleep(time.Duration(hours) * time.Hour / 2)
	synctest.Wait()
	d.stop()
	pages.Close()
	client.Close()
	if full := heapMiB(); full > half+24 {
		t.Errorf("the heap grew from %d to %d MiB in the second half", half, full)
	}
	runs := 0
	for i, s := range sources {
		k := kinds[i%len(kinds)]
		state := d.state(t, s.Slug)
		runs += state.Runs
		if !slices.Contains(k.ends(hours), state.Status) {
			t.Errorf("%s: status %s after %d runs, want %v; last error: %s", s.Slug, state.Status, state.Runs, k.ends(hours), state.LastError)
		}
		if k.cause != "" && state.LastCause != k.cause {
			t.Errorf("%s: cause %q, want %q: %s", s.Slug, state.LastCause, k.cause, state.LastError)
		}
		if k.check != nil {
			if err := k.check(s, state); err != nil {
				t.Errorf("%s: %v (%+v)", s.Slug, err, state)
			}
		}
	}
	t.Logf("%d sources, %d runs in %d hours, heap %d MiB", count, runs, hours, half)
}

func heapMiB() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc >> 20
}

// stub is all the servers of the soak.
type stub struct {
	began time.Time

	mu    sync.Mutex
	asked map[string]int
	serve map[string]misbehaviour
}

// visit is one request to a misbehaving host.
type visit struct {
	http.ResponseWriter
	r     *http.Request
	host  string
	n     int           // how often this URL was asked for before
	since time.Duration // since the soak began
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	k, ok := s.serve[r.Host]
	v := &visit{ResponseWriter: w, r: r, host: r.Host, n: s.asked[r.Host+r.URL.Path], since: time.Since(s.began)}
	s.asked[r.Host+r.URL.Path]++
	s.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	k.serve(v)
}

// feed is a feed with an entry for each hour that has passed.
func (v *visit) feed() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0"?><rss version="2.0"><channel><title>News of %s</title><link>https://%[1]s/</link>`, v.host)
	for i := range int(v.since.Hours()) + 1 {
		at := time.Date(2000, 1, 1, i, 0, 0, 0, time.UTC)
		fmt.Fprintf(&b, "<item><title>Hour %d</title><guid>%d</guid><link>https://%s/a/%d</link><pubDate>%s</pubDate><description>%s</description></item>",
			i, i, v.host, i, at.Format(time.RFC1123), strings.Repeat(fmt.Sprintf("What happened at %s in hour %d. ", v.host, i), 8))
	}
	return b.String() + "</channel></rss>"
}

func (v *visit) say(status int, body string, headers ...string) {
	for i := 0; i < len(headers); i += 2 {
		v.Header().Set(headers[i], headers[i+1])
	}
	v.WriteHeader(status)
	_, _ = v.Write([]byte(body))
}

// take takes the connection over and writes raw bytes to it.
func (v *visit) take(raw string) {
	conn, _, err := v.ResponseWriter.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	_, _ = conn.Write([]byte(raw))
	_ = conn.Close()
}

// trickle writes piece every now and then, until the client has enough.
func (v *visit) trickle(piece string, every time.Duration) {
	for v.r.Context().Err() == nil {
		if _, err := v.Write([]byte(piece)); err != nil {
			return
		}
		v.ResponseWriter.(http.Flusher).Flush()
		time.Sleep(every)
	}
}
