package page_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"vesti.nixg.ru/crawl/page"
	"vesti.nixg.ru/ledger/ledgertest/cases"
	"vesti.nixg.ru/ledger/ledgertest/quality"
)

// TestQuality measures the extraction of main texts on four public sets. The
// set trafilatura is scored by segments that must and must not be in the text,
// white space normalised, counted over all pages; the others by the shingles of
// four words that the text shares with the whole article, precision and recall
// as means over pages.
func TestQuality(t *testing.T) {
	quality.Wanted(t)
	for _, set := range []string{"trafilatura", "scrapinghub", "fundus", "readability"} {
		t.Run(set, func(t *testing.T) { measureSet(t, set) })
	}
}

// gold is what is right of one page.
type gold struct {
	URL     string
	With    []string
	Without []string
	Body    string
}

type score struct{ precision, recall float64 }

func (s score) f1() float64 {
	if s.precision+s.recall == 0 {
		return 0
	}
	return 2 * s.precision * s.recall / (s.precision + s.recall)
}

func measureSet(t *testing.T, set string) {
	dir := cases.Corpora(t, "extraction/"+set)
	b, err := os.ReadFile(filepath.Join(dir, "gold.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]gold
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	texts, failed, took := extractAll(t, filepath.Join(dir, "html"), all)
	total := score{}
	if set == "trafilatura" {
		total = bySegments(all, texts)
	} else {
		for name, g := range all {
			s := byShingles(texts[name], g.Body)
			total.precision += s.precision / float64(len(all))
			total.recall += s.recall / float64(len(all))
		}
	}
	t.Logf("%d pages, %d without a text, %v a page", len(all), failed, took/time.Duration(len(all)))
	quality.Report(t, map[string]float64{
		"extraction." + set + ".precision": total.precision,
		"extraction." + set + ".recall":    total.recall,
		"extraction." + set + ".f1":        total.f1(),
	})
}

func extractAll(t *testing.T, dir string, all map[string]gold) (texts map[string]string, failed int, took time.Duration) {
	texts = make(map[string]string, len(all))
	var mu sync.Mutex
	var workers sync.WaitGroup
	names := make(chan string)
	for range runtime.NumCPU() {
		workers.Go(func() {
			for name := range names {
				body := unpack(t, filepath.Join(dir, name))
				start := time.Now()
				p, err := page.Extract(page.Input{Body: body, ContentType: "text/html", URL: all[name].URL})
				mu.Lock()
				took += time.Since(start)
				texts[name] = p.Text
				if err != nil {
					failed++
					t.Logf("%s: %v", name, err)
				}
				mu.Unlock()
			}
		})
	}
	for name := range all {
		names <- name
	}
	close(names)
	workers.Wait()
	return texts, failed, took
}

func unpack(t testing.TB, path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Error(err)
		return nil
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Error(err)
	}
	return b
}

func bySegments(all map[string]gold, texts map[string]string) score {
	var hit, missed, wrong float64
	for name, g := range all {
		text := squeeze(texts[name])
		for _, s := range g.With {
			if strings.Contains(text, squeeze(s)) {
				hit++
			} else {
				missed++
			}
		}
		for _, s := range g.Without {
			if strings.Contains(text, squeeze(s)) {
				wrong++
			}
		}
	}
	return score{precision: hit / (hit + wrong), recall: hit / (hit + missed)}
}

func byShingles(got, want string) score {
	g, w := shingles(got), shingles(want)
	if len(g) == 0 && len(w) == 0 {
		return score{1, 1}
	}
	shared, ng, nw := 0, 0, 0
	for s, n := range g {
		shared += min(n, w[s])
		ng += n
	}
	for _, n := range w {
		nw += n
	}
	s := score{}
	if ng > 0 {
		s.precision = float64(shared) / float64(ng)
	}
	if nw > 0 {
		s.recall = float64(shared) / float64(nw)
	}
	return s
}

func shingles(s string) map[string]int {
	words := strings.FieldsFunc(s, func(r rune) bool { return !isWordRune(r) })
	counts := map[string]int{}
	if len(words) > 0 && len(words) < 4 {
		counts[strings.Join(words, " ")]++
	}
	for i := 0; i+4 <= len(words); i++ {
		counts[strings.Join(words[i:i+4], " ")]++
	}
	return counts
}

func isWordRune(r rune) bool {
	return r == '_' || r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z' || r >= 0xAA && !strings.ContainsRune("«»—–…“”‘’„‚•·", r) && r != 0xA0
}

func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }
