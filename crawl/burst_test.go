package crawl_test

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/crawltest"
	"vesti.nixg.ru/crawl/feed"
	"vesti.nixg.ru/crawl/fetch"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/ledgertest"
)

// BenchmarkBurst is what comes after an outage: 2,000 feeds of as many hosts,
// captured ones with texts made unlike, all due at once and all new. It prints
// feeds a minute and entries a second, and the most memory that was in use;
// the servers run in the same process and have their share of the time.
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
	for b.Loop() {
		b.StopTimer()
		client := fetch.New(world.Options(fetch.Options{}))
		c := crawl.New(crawl.Options{
			Log: ledgertest.Open(b), Kinds: map[ledger.Crawler]crawl.Kind{ledger.CrawlerRSS: feed.New(feed.Options{Client: client})},
		})
		if err := c.Reload(b.Context(), sources); err != nil {
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
		b.StartTimer()
	}
	seconds := b.Elapsed().Seconds()
	b.ReportMetric(float64(b.N*feeds)/seconds*60, "feeds/min")
	b.ReportMetric(float64(entries)/seconds, "entries/s")
	b.ReportMetric(float64(fresh)/seconds, "new/s")
	b.ReportMetric(float64(heap.Load()>>20), "heap-MiB")
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
