package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/ledger/ledgertest/cases"
)

func TestPublicCases(t *testing.T) {
	checks := map[string]func(*testing.T, cases.Case) error{
		"228-second-instance":    secondInstance,
		"229-index-torn-rebuild": tornIndex,
		"230-metrics-labels":     metricLabels,
	}
	cases.Run(t, cases.Vesti, func(t *testing.T, c cases.Case) error {
		check, ok := checks[c.ID]
		if !ok {
			return fmt.Errorf("no check for this case")
		}
		return check(t, c)
	})
}

func secondInstance(t *testing.T, c cases.Case) error {
	var want struct {
		Seconds  float64  `json:"second_exits_within_seconds"`
		Code     int      `json:"exit_code_not"`
		Mentions []string `json:"error_mentions"`
	}
	c.Decode(t, c.Expect, &want)
	d := newDesk(t)
	d.sources("sources: []\n")
	s := d.serve()
	s.login()
	began := time.Now()
	second := d.try("serve", "--set", "web.listen=127.0.0.1:0")
	var errs []error
	if took := time.Since(began).Seconds(); took > want.Seconds {
		errs = append(errs, fmt.Errorf("the second took %.1f s", took))
	}
	if second.code == want.Code {
		errs = append(errs, fmt.Errorf("exit code %d", second.code))
	}
	for _, m := range want.Mentions {
		if m == "D" {
			m = d.data
		}
		if !strings.Contains(second.stderr, m) {
			errs = append(errs, fmt.Errorf("error does not mention %q: %s", m, second.stderr))
		}
	}
	if code, _ := s.get("/healthz"); code != http.StatusOK {
		errs = append(errs, fmt.Errorf("the first answers %d", code))
	}
	return errors.Join(errs...)
}

// staticFeed is a server with one feed of n posts.
func staticFeed(t *testing.T, n int) *httptest.Server {
	t.Helper()
	var b strings.Builder
	b.WriteString(`<rss version="2.0"><channel><title>static</title>`)
	for i := range n {
		fmt.Fprintf(&b, `<item><title>Post %d</title><guid>post-%[1]d</guid><description>Body number %[1]d speaks of the linux kernel and of nothing else.</description></item>`, i)
	}
	b.WriteString(`</channel></rss>`)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/rss+xml")
		fmt.Fprint(w, b.String())
	}))
	t.Cleanup(srv.Close)
	return srv
}

func oneSource(url string) string {
	return fmt.Sprintf("sources:\n  - {slug: one, name: One, feed_url: %q, crawler: rss, direction: linux, lang: en, priority: P0, allow_private: true, full_text: false, max_items: 1000}\n", url)
}

func tornIndex(t *testing.T, _ cases.Case) error {
	d := newDesk(t)
	d.sources(oneSource(staticFeed(t, 30).URL))
	var sum crawl.Summary
	d.json(exitDone, &sum, "crawl", "--all")
	var before searchResult
	d.json(exitDone, &before, "search", "kernels")
	if before.Total != 30 {
		return fmt.Errorf("before: %d found", before.Total)
	}
	torn := 0
	err := filepath.WalkDir(filepath.Join(d.data, "search"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.Name() != "root.bolt" {
			return err
		}
		torn++
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteAt(bytes.Repeat([]byte{0xA5}, 4096), 0)
		return errors.Join(err, f.Close())
	})
	if err != nil || torn == 0 {
		t.Fatalf("no index to tear: %d, %v", torn, err)
	}
	var after searchResult
	d.json(exitDone, &after, "search", "kernels")
	if after.Total != before.Total {
		return fmt.Errorf("after: %d found, want %d", after.Total, before.Total)
	}
	var again crawl.Summary
	d.json(exitDone, &again, "crawl", "--all")
	if again.New != 0 {
		return fmt.Errorf("after: %d posts are new", again.New)
	}
	return nil
}

// metricLabels has sources fail, each with a text of its own: some by a status,
// some by a name that does not resolve, some by a body that is no feed.
func metricLabels(t *testing.T, c cases.Case) error {
	var want struct {
		Metrics struct {
			SeriesMax int      `json:"series_per_metric_max"`
			Never     []string `json:"labels_never_contain"`
		} `json:"metrics"`
	}
	c.Decode(t, c.Expect, &want)
	bad := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.URL.Path)%2 == 0 {
			http.Error(w, "no "+r.URL.Path, http.StatusTeapot)
			return
		}
		fmt.Fprintf(w, "this is no feed: %s", r.URL.Path)
	}))
	defer bad.Close()
	d := newDesk(t)
	d.env = append(d.env, "VESTI_LEDGER_DURABILITY=relaxed")
	var yaml strings.Builder
	yaml.WriteString("sources:\n")
	for i := range 500 {
		url := fmt.Sprintf("%s/f%d", bad.URL, i)
		if i%5 == 0 {
			url = fmt.Sprintf("http://host-%d.invalid/rss", i)
		}
		fmt.Fprintf(&yaml, "  - {slug: s%d, name: S, feed_url: %q, crawler: rss, direction: tech, priority: P2, allow_private: true}\n", i, url)
	}
	d.sources(yaml.String())
	s := d.serve()
	s.login()
	var sum crawl.Summary
	d.json(exitPartial, &sum, "crawl", "--all")
	if sum.Errors != 500 {
		return fmt.Errorf("%d of 500 sources failed", sum.Errors)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(s.page("/metrics")))
	if err != nil {
		return fmt.Errorf("/metrics is not valid: %w", err)
	}
	var errs []error
	for name, f := range families {
		if len(f.GetMetric()) > want.Metrics.SeriesMax {
			errs = append(errs, fmt.Errorf("%s has %d series", name, len(f.GetMetric())))
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				for _, never := range want.Metrics.Never {
					if strings.Contains(l.GetValue(), never) {
						errs = append(errs, fmt.Errorf("%s: label %s=%q", name, l.GetName(), l.GetValue()))
					}
				}
			}
		}
	}
	return errors.Join(errs...)
}
