package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"vesti.nixg.ru/classify"
	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/ledger/ledgertest/cases"
)

// Every captured feed is a source on a real server. The whole way is walked by
// commands, then looked at through a running server: the ledger, the page and
// the metrics must tell the same.
func TestWildFeedsEndToEnd(t *testing.T) {
	dir := cases.Corpora(t, "feeds/wild")
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	feeds := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer feeds.Close()
	d := newDesk(t)
	var yaml strings.Builder
	yaml.WriteString("sources:\n")
	for i, f := range files {
		// Article pages are elsewhere: only the feeds themselves are here.
		fmt.Fprintf(&yaml, "  - {slug: wild-%d, name: wild %[1]d, feed_url: %q, crawler: rss, direction: tech, lang: en, priority: P2, allow_private: true, full_text: false}\n",
			i, feeds.URL+"/"+f.Name())
	}
	d.sources(yaml.String())
	d.env = append(d.env, "VESTI_LEDGER_DURABILITY=relaxed")

	var first crawl.Summary
	d.json(exitDone, &first, "crawl", "--all")
	if first.Sources != len(files) || first.Errors != 0 || first.New == 0 {
		t.Fatalf("first crawl: %d sources of %d, %d new, %d failed", first.Sources, len(files), first.New, first.Errors)
	}
	var worked classify.Summary
	d.json(exitDone, &worked, "work", "--workers", "8")
	if worked.Classified != first.New || worked.Failed != 0 {
		t.Fatalf("%d new posts, but %d classified and %d failed", first.New, worked.Classified, worked.Failed)
	}

	var again crawl.Summary
	d.json(exitDone, &again, "crawl", "--all")
	if again.New != 0 || again.Revised != 0 || again.SeenAgain != 0 || again.Errors != 0 {
		t.Errorf("second crawl: %d new, %d revised, %d seen again, %d failed; want none", again.New, again.Revised, again.SeenAgain, again.Errors)
	}
	d.json(exitDone, &worked, "work", "--workers", "8")
	if worked.Claimed != 0 || worked.Classified != 0 {
		t.Errorf("second work: %d claimed, %d classified; want none", worked.Claimed, worked.Classified)
	}

	var status statusResult
	d.json(exitDone, &status, "status")
	if q := status.Queue; q.Pending != 0 || q.Processing != 0 || q.Parked != 0 || q.DoneToday != first.New {
		t.Errorf("status: %+v; want %d done today and nothing else", q, first.New)
	}
	s := d.serve()
	s.login()
	if got := s.metric(`vesti_queue_posts{state="done_today"}`); got != float64(first.New) {
		t.Errorf("/metrics has %v posts done today, the crawl found %d", got, first.New)
	}
	if got := s.metric(`vesti_queue_posts{state="pending"}`); got != 0 {
		t.Errorf("/metrics has %v posts pending", got)
	}
	if page := s.page("/crawlers"); !strings.Contains(page, fmt.Sprint(first.New)) {
		t.Errorf("/crawlers does not show the %d posts done today", first.New)
	}
	if code := s.stop(); code != exitDone {
		t.Errorf("SIGTERM: exit code %d", code)
	}
}
