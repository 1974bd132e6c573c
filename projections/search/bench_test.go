package search_test

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/ledgertest"
	"vesti.nixg.ru/ledger/ledgertest/cases"
	"vesti.nixg.ru/projections/posts"
	"vesti.nixg.ru/projections/search"
)

// BenchmarkSearch measures over some 20,000 real posts in Russian: how fast
// they are indexed and how large that is (rebuild), and queries by class. The
// time of a query is that of Search as pages call it, with twenty excerpts
// unless the class says otherwise.
func BenchmarkSearch(b *testing.B) {
	docs := telegramPosts(b)
	dir := b.TempDir()
	d := attach(b, ledgertest.Open(b), dir)
	bytes := 0
	for part := range slices.Chunk(docs, 500) {
		d.append(b, part...)
	}
	for _, one := range docs {
		bytes += len(one.Text)
	}
	d.settle(b)
	b.Run("rebuild", func(b *testing.B) {
		for b.Loop() {
			if err := d.runner.Rebuild(b.Context(), "search", nil); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(d.ids))*float64(b.N)/b.Elapsed().Seconds(), "posts/s")
		b.ReportMetric(float64(folderBytes(b, dir))/float64(bytes), "index/text")
	})
	words := frequentWords(docs)
	rng := rand.New(rand.NewPCG(1, 1))
	common := func() string { return words[rng.IntN(50)] }
	middling := func() string { return words[200+rng.IntN(2000)] }
	rare := func() string { return words[len(words)-1-rng.IntN(len(words)/2)] }
	for _, class := range []struct {
		name  string
		query func() search.Request
	}{
		{"term rare", func() search.Request { return search.Request{Query: rare()} }},
		{"term middling", func() search.Request { return search.Request{Query: middling()} }},
		{"term common", func() search.Request { return search.Request{Query: common()} }},
		{"term common by date", func() search.Request { return search.Request{Query: common(), Sort: posts.ByDate} }},
		{"two of them", func() search.Request { return search.Request{Query: middling() + " " + common()} }},
		{"either", func() search.Request { return search.Request{Query: middling() + " OR " + middling()} }},
		{"phrase", func() search.Request { return search.Request{Query: `"` + middling() + " " + common() + `"`} }},
		{"prefix of 1", func() search.Request { return search.Request{Query: string([]rune(middling())[:1]) + "*"} }},
		{"prefix of 3", func() search.Request { return search.Request{Query: string([]rune(middling())[:3]) + "*"} }},
		{"excluded", func() search.Request { return search.Request{Query: middling() + " -" + common()} }},
		{"facets", func() search.Request { return search.Request{Query: middling(), Facets: true} }},
		{"question", func() search.Request {
			return search.Request{Query: strings.Join([]string{common(), middling(), rare(), common(), middling()}, " ")}
		}},
		{"newest", func() search.Request { return search.Request{} }},
		{"newest of a source", func() search.Request {
			return search.Request{Filter: posts.Filter{Sources: []ledger.Slug{"source-3"}}, Facets: true}
		}},
	} {
		b.Run(class.name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				r, err := d.search.Search(b.Context(), class.query())
				if err != nil {
					b.Fatal(err)
				}
				took = append(took, r.Took)
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-p50")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms-p99")
		})
	}
}

// telegramPosts reads the corpus's whole file of posts.
func telegramPosts(b *testing.B) []doc {
	b.Helper()
	f, err := os.Open(filepath.Join(cases.Corpora(b, "classify"), "telegram_ru_all.jsonl.gz"))
	if err != nil {
		b.Skip(err)
	}
	defer f.Close()
	plain, err := gzip.NewReader(f)
	if err != nil {
		b.Fatal(err)
	}
	var docs []doc
	for lines := json.NewDecoder(plain); ; {
		var d doc
		if err := lines.Decode(&d); errors.Is(err, io.EOF) {
			return docs
		} else if err != nil {
			b.Fatal(err)
		}
		n := len(docs)
		d.ID, d.Lang, d.Source = fmt.Sprint(n), "ru", ledger.Slug(fmt.Sprintf("source-%d", n%20))
		d.Published = time.Date(2025, 1, 1, 0, 0, n*600, 0, time.UTC)
		docs = append(docs, d)
	}
}

// frequentWords lists the words of documents, the most frequent first.
func frequentWords(docs []doc) []string {
	counts := map[string]int{}
	for _, d := range docs {
		for w := range strings.FieldsSeq(d.Text) {
			if w = strings.ToLower(strings.Trim(w, `.,:;!?()«»"—-`)); len([]rune(w)) > 3 {
				counts[w]++
			}
		}
	}
	words := make([]string, 0, len(counts))
	for w := range counts {
		words = append(words, w)
	}
	slices.SortFunc(words, func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	return words
}
