package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"vesti.nixg.ru/classify"
	"vesti.nixg.ru/ledger"
)

// site is a feed of summaries and the pages of their articles, which answer 503
// until they are up.
type site struct {
	*httptest.Server

	mu   sync.Mutex
	up   bool
	hits map[string]int
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{hits: make(map[string]int)}
	mux := http.NewServeMux()
	mux.HandleFunc("/feed", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/rss+xml")
		fmt.Fprint(w, `<rss version="2.0"><channel><title>site</title>`)
		for i, page := range []string{"kernel", "broken", "endless"} {
			fmt.Fprintf(w, `<item><title>Morning note %d</title><guid>%d</guid><link>http://%s/%s</link><description>Something came out today, number %d.</description></item>`,
				i, i, r.Host, page, i)
		}
		fmt.Fprint(w, `</channel></rss>`)
	})
	mux.HandleFunc("/{page}", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.hits[r.PathValue("page")]++
		up := s.up
		s.mu.Unlock()
		switch page := r.PathValue("page"); {
		case !up:
			http.Error(w, "later", http.StatusServiceUnavailable)
		case page == "kernel":
			fmt.Fprintf(w, "<html><body><article><h1>Morning note</h1>%s</article></body></html>", strings.Repeat(
				"<p>The Linux kernel 7.2 was released with a new scheduler, and distributions such as Debian already ship it.</p>", 12))
		case page == "broken":
			http.Error(w, "gone wrong", http.StatusInternalServerError)
		default: // breaks off in the middle of the headers' promise
			w.Header().Set("Content-Length", "1000000")
			fmt.Fprint(w, "<html><body><p>The Linux")
		}
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *site) setUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.up = true
}

func (s *site) fetched(page string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hits[page]
}

// Posts of which only a summary could be stored are judged by their article,
// where it can be had by then; where not, by the summary, with no attempt lost.
// Without the setting, and for a source whose pages are never to be fetched, no
// page is asked for.
func TestFullText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, fullText string
		env            []string
		kernel         ledger.Direction // the direction of the post on the kernel
		asked          bool
	}{
		{"on", "auto", []string{"VESTI_WORK_FULL_TEXT=true"}, "linux", true},
		{"off", "auto", nil, "games", false},
		{"never for this source", "false", []string{"VESTI_WORK_FULL_TEXT=true"}, "games", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			d := newDesk(t)
			d.env = append(d.env, tt.env...)
			d.sources(fmt.Sprintf("sources:\n  - {slug: one, name: One, feed_url: \"%s/feed\", crawler: rss, direction: games, lang: en, priority: P0, allow_private: true, full_text: %s}\n", s.URL, tt.fullText))
			d.do(exitDone, "crawl", "--all")
			before := map[string]int{}
			for _, page := range []string{"kernel", "broken", "endless"} {
				before[page] = s.fetched(page)
			}
			s.setUp()
			var sum classify.Summary
			d.json(exitDone, &sum, "work")
			if sum.Claimed != 3 || sum.Classified != 3 || sum.Failed != 0 {
				t.Errorf("work: %+v", sum)
			}
			for page, n := range before {
				if asked := s.fetched(page) > n; asked != tt.asked {
					t.Errorf("%s was fetched %d times before, %d after", page, n, s.fetched(page))
				}
			}
			var found searchResult
			d.json(exitDone, &found, "search", "morning")
			if found.Total != 3 {
				t.Fatalf("found %+v", found)
			}
			for _, hit := range found.Hits {
				want := ledger.Direction("games")
				if hit.Title == "Morning note 0" {
					want = tt.kernel
				}
				if hit.Direction != want {
					t.Errorf("%s is in %s, want %s", hit.Title, hit.Direction, want)
				}
			}
			log := d.do(exitDone, "log", found.Hits[0].ID.String()).stdout
			if strings.Contains(log, "PostFailed") || !strings.Contains(log, "35 bytes of text from the summary") {
				t.Errorf("the history:\n%s", log)
			}
		})
	}
	if out := newDesk(t).do(exitDone, "config").stdout; !strings.Contains(out, "work.full_text") || !strings.Contains(out, "VESTI_WORK_FULL_TEXT") {
		t.Errorf("vesti config does not list the setting:\n%s", out)
	}
}
