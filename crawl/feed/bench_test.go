package feed_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mmcdole/gofeed"

	"vesti.nixg.ru/crawl/feed"
	"vesti.nixg.ru/ledger/ledgertest/cases"
)

// BenchmarkAgainstGofeed reads the real captures that gofeed reads as well, to
// the plain text of every entry, and compares the CPU time per entry with
// gofeed's bare parse of the same bytes. The metric x_gofeed is the ratio.
func BenchmarkAgainstGofeed(b *testing.B) {
	files, err := filepath.Glob(filepath.Join(cases.Corpora(b, "feeds/wild"), "*"))
	if err != nil {
		b.Fatal(err)
	}
	var bodies [][]byte
	size, entries := 0, 0
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		f, err := gofeed.NewParser().Parse(bytes.NewReader(body))
		if err != nil {
			continue
		}
		bodies = append(bodies, body)
		size += len(body)
		entries += len(f.Items)
	}
	var ours, bare time.Duration
	for b.Loop() {
		start := time.Now()
		for _, body := range bodies {
			doc, err := feed.Parse(body, feed.ParseOptions{ContentType: "text/xml", URL: "https://feed.example.org/"})
			if err != nil {
				b.Fatal(err)
			}
			for i := range doc.Entries {
				doc.Entries[i].Content.Plain()
				doc.Entries[i].Summary.Plain()
			}
		}
		ours += time.Since(start)
		start = time.Now()
		for _, body := range bodies {
			if _, err := gofeed.NewParser().Parse(bytes.NewReader(body)); err != nil {
				b.Fatal(err)
			}
		}
		bare += time.Since(start)
	}
	n := float64(b.N)
	b.ReportMetric(ours.Seconds()/bare.Seconds(), "x_gofeed")
	b.ReportMetric(float64(ours.Microseconds())/n/float64(entries), "µs/entry")
	b.ReportMetric(float64(entries)*n/ours.Seconds(), "entries/s")
	b.ReportMetric(float64(size)*n/ours.Seconds()/1e6, "MB/s")
	b.ReportMetric(0, "ns/op")
}
