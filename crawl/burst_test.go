package crawl_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mmcdole/gofeed"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/crawltest"
	"vesti.nixg.ru/crawl/feed"
	"vesti.nixg.ru/crawl/fetch"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/ledgertest"
)

// BenchmarkBurst is what comes after an outage: 2,000 feeds of as many hosts,
// captured ones with texts made unlike, all due at once and all new. It prints
// feeds a minute and entries a second, the most memory that was in use, and, as
// x_bare, how many times as long it took as bare GETs of the same feeds, as many
// at once, with gofeed's parse and nothing stored. The servers run in the same
// process and have their share of either time.
func BenchmarkBurst(b *testing.B) {
	const feeds = 2000
	_, bodies := wildFeeds(b)
	var moulds []mould
	for _, body := range bodies {
		moulds = append(moulds, newMould(body))
	}
	stub := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(r.Host, "h"), ".example"))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/xml")
		_, _ = w.Write(moulds[n%len(moulds)].cast(n))
	})
	world := crawltest.New(b, stub)
	var sources []crawl.Source
	for i := range feeds {
		s := feedSource(ledger.Slug(fmt.Sprintf("h%d", i)), ledger.P1)
		s.FeedURL, s.FullText = fmt.Sprintf("http://h%d.example/feed", i), crawl.FullTextFalse
		sources = append(sources, s)
	}
	var entries, fresh int
	var heap atomic.Uint64
	var bare time.Duration
	for b.Loop() {
		b.StopTimer()
		client := fetch.New(world.Options(fetch.Options{}))
		c := crawl.New(crawl.Options{
			Log: ledgertest.Open(b), Kinds: map[ledger.Crawler]crawl.Kind{ledger.CrawlerRSS: feed.New(feed.Options{Client: client})},
		})
		if _, err := c.Reload(b.Context(), sources); err != nil {
			b.Fatal(err)
		}
		stop := watchHeap(&heap)
		b.StartTimer()
		sum, err := c.RunOnce(b.Context(), everything(), crawl.Once{})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		stop()
		client.Close()
		if sum.Errors > feeds/20 || sum.New < feeds*5 {
			b.Fatalf("%d errors, %d new posts", sum.Errors, sum.New)
		}
		entries, fresh = entries+sum.Fetched, fresh+sum.New
		bare += bareBurst(b, world, sources)
		b.StartTimer()
	}
	seconds := b.Elapsed().Seconds()
	b.ReportMetric(float64(b.N*feeds)/seconds*60, "feeds/min")
	b.ReportMetric(float64(entries)/seconds, "entries/s")
	b.ReportMetric(float64(fresh)/seconds, "new/s")
	b.ReportMetric(float64(heap.Load()>>20), "heap-MiB")
	b.ReportMetric(seconds/bare.Seconds(), "x_bare")
}

// bareBurst gets and parses the sources' feeds with Go's client and gofeed, and
// returns how long that took.
func bareBurst(b *testing.B, world *crawltest.World, sources []crawl.Source) time.Duration {
	b.Helper()
	const atOnce = 16
	dial := world.Options(fetch.Options{}).Dial
	transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dial(ctx, network, "9.9.9.9:80")
	}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	urls := make(chan string)
	var workers sync.WaitGroup
	start := time.Now()
	for range atOnce {
		workers.Go(func() {
			for u := range urls {
				resp, err := client.Get(u)
				if err != nil {
					b.Error(err)
					continue
				}
				_, _ = gofeed.NewParser().Parse(resp.Body) // some captures are more than it can read
				_ = resp.Body.Close()
			}
		})
	}
	for _, s := range sources {
		urls <- s.FeedURL
	}
	close(urls)
	workers.Wait()
	return time.Since(start)
}

// mould is a feed cut at the ends of its texts, to make feeds of unlike texts.
type mould [][]byte

func newMould(body []byte) mould {
	ends := regexp.MustCompile(`(\]\]>)?\s*</(description|content:encoded|content|summary)>`)
	var m mould
	from := 0
	for _, at := range ends.FindAllIndex(body, -1) {
		m = append(m, body[from:at[0]])
		from = at[0]
	}
	return append(m, body[from:])
}

// cast is the feed with the number n at the end of each text.
func (m mould) cast(n int) []byte {
	return bytes.Join(m, fmt.Appendf(nil, " This is copy number %d of it.", n))
}

// watchHeap keeps the most that the heap had in use, until stop.
func watchHeap(most *atomic.Uint64) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				most.Store(max(most.Load(), m.HeapInuse))
			}
		}
	}()
	return func() { close(done); <-ended }
}
