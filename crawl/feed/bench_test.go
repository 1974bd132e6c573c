package feed_test

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mmcdole/gofeed"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/feed"
	"vesti.nixg.ru/crawl/fetch"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/ledgertest/cases"
)

// BenchmarkAgainstGofeed makes runs of the real captures that gofeed reads as
// well, with everything between the answer and the store for every entry:
// decoding, parsing, plain text, keys, fingerprints, the normalisation and the
// hash that identify a text. It compares the CPU time per entry with gofeed's
// bare parse of the same bytes. The metric x_gofeed is the ratio; the two take
// turns, so that it says the same on a busy machine.
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
	src := source("https://feed.example.org/")
	src.MaxItems = 0 // all of them
	var ours, bare time.Duration
	for b.Loop() {
		for _, body := range bodies {
			start := time.Now()
			sink := &noStore{}
			kind := feed.New(feed.Options{Client: answers(body)})
			if _, err := kind.Crawl(b.Context(), crawl.Job{Source: src, Now: now, Unconditional: true, Sink: sink}); err != nil {
				b.Fatal(err)
			}
			ours += time.Since(start)
			start = time.Now()
			if _, err := gofeed.NewParser().Parse(bytes.NewReader(body)); err != nil {
				b.Fatal(err)
			}
			bare += time.Since(start)
		}
	}
	n := float64(b.N)
	b.ReportMetric(ours.Seconds()/bare.Seconds(), "x_gofeed")
	b.ReportMetric(float64(ours.Microseconds())/n/float64(entries), "µs/entry")
	b.ReportMetric(float64(entries)*n/ours.Seconds(), "entries/s")
	b.ReportMetric(float64(size)*n/ours.Seconds()/1e6, "MB/s")
	b.ReportMetric(0, "ns/op")
}

// answers is a client that got this body.
type answers []byte

func (a answers) Get(_ context.Context, r fetch.Request) (*fetch.Response, error) {
	return &fetch.Response{Status: http.StatusOK, Header: http.Header{"Content-Type": {"text/xml"}}, Body: a, Bytes: int64(len(a)), FinalURL: r.URL}, nil
}

// noStore does with items what a ledger does before it writes anything.
type noStore struct{ crawl.Sink }

func (noStore) KnownItems(_ context.Context, keys []ledger.ItemKey) ([]ledger.KnownItem, error) {
	return make([]ledger.KnownItem, len(keys)), nil
}

func (noStore) KnownText(context.Context, ledger.Slug, ledger.PostID) (ledger.KnownText, error) {
	return ledger.KnownText{}, nil
}

func (noStore) Append(_ context.Context, items []ledger.Item) ([]ledger.Appended, error) {
	out := make([]ledger.Appended, len(items))
	for i := range items {
		out[i] = ledger.Appended{Outcome: ledger.OutcomeNew, ID: ledger.IdentifyText(items[i].Text, items[i].Key)}
	}
	return out, nil
}
