package feed_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/ledger"
)

var now = time.Date(2025, 3, 10, 12, 0, 0, 0, time.UTC)

// site serves a feed and pages, and counts what is asked for.
type site struct {
	mu    sync.Mutex
	feed  string
	pages map[string]func(http.ResponseWriter)
	asked map[string]int
}

func (s *site) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked == nil {
		s.asked = map[string]int{}
	}
	s.asked[r.URL.Path]++
	if r.URL.Path == "/rss.xml" {
		w.Header().Set("Content-Type", "application/rss+xml")
		fmt.Fprint(w, s.feed)
		return
	}
	if page := s.pages[r.URL.Path]; page != nil {
		page(w)
		return
	}
	http.NotFound(w, r)
}

func rss(items ...string) string {
	return `<rss version="2.0"><channel><title>Courier</title><link>https://news.example.org/</link>` + strings.Join(items, "") + `</channel></rss>`
}

func item(n int, body string) string {
	return fmt.Sprintf(`<item><title>Item %d</title><link>https://news.example.org/a/%d</link><guid>%d</guid><pubDate>Sun, 09 Mar 2025 10:%02d:00 GMT</pubDate>%s</item>`, n, n, n, n, body)
}

func article(text string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, `<html><head><title>x</title></head><body><nav><a href="/">Home</a></nav><article><h1>Item</h1>%s</article></body></html>`, text)
	}
}

func paragraphs(about string) string {
	var b strings.Builder
	for i := range 8 {
		fmt.Fprintf(&b, "<p>Paragraph %d tells at some length what is to be said about %s, with commas, names and numbers.</p>", i, about)
	}
	return b.String()
}

func feedSource() crawl.Source {
	src := source("https://news.example.org/rss.xml")
	src.FullText = crawl.FullTextAuto
	return src
}

func TestPagesAreFetchedOncePerEntry(t *testing.T) {
	s := &site{
		feed: rss(item(1, "<description>Short.</description>"), item(2, "<description>Gone.</description>"),
			item(3, "<content:encoded><![CDATA["+paragraphs("bridges")+"]]></content:encoded>")),
		pages: map[string]func(http.ResponseWriter){"/a/1": article(paragraphs("tunnels"))},
	}
	w := newWorld(t, s.serve)
	first, err := w.crawl(feedSource(), now)
	if err != nil {
		t.Fatal(err)
	}
	if r := first.report; r.Fetched != 3 || r.New != 3 || len(first.items) != 3 {
		t.Fatalf("report %+v", r)
	}
	for i, want := range []struct {
		from ledger.TextOrigin
		text string
	}{{ledger.TextPage, "about tunnels"}, {ledger.TextSummary, "Gone."}, {ledger.TextContent, "about bridges"}} {
		if it := first.items[i]; it.TextFrom != want.from || !strings.Contains(it.Text, want.text) {
			t.Errorf("item %d: text from %s: %q", i+1, it.TextFrom, it.Text)
		}
	}
	second, err := w.crawl(feedSource(), now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if r := second.report; r.Fetched != 3 || r.New+r.Revised+r.SeenAgain != 0 {
		t.Errorf("second run: %+v", r)
	}
	if s.asked["/a/1"] != 1 || s.asked["/a/2"] != 1 || s.asked["/a/3"] != 0 {
		t.Errorf("pages asked for: %v", s.asked)
	}
}

func TestPageThatFailsForNowIsTriedAgainAnotherDay(t *testing.T) {
	s := &site{feed: rss(item(1, "<description>Short.</description>"))}
	s.pages = map[string]func(http.ResponseWriter){"/a/1": func(w http.ResponseWriter) {
		w.WriteHeader(http.StatusBadGateway)
	}}
	w := newWorld(t, s.serve)
	for _, after := range []time.Duration{0, time.Hour, 25 * time.Hour, 26 * time.Hour} {
		if _, err := w.crawl(feedSource(), now.Add(after)); err != nil {
			t.Fatal(err)
		}
	}
	if s.asked["/a/1"] != 2 {
		t.Errorf("the page was asked for %d times in two days, want 2", s.asked["/a/1"])
	}
	s.mu.Lock()
	s.pages["/a/1"] = article(paragraphs("tunnels"))
	s.mu.Unlock()
	run, err := w.crawl(feedSource(), now.Add(50*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if run.report.Revised != 1 || run.items[0].TextFrom != ledger.TextPage {
		t.Errorf("report %+v, items %+v", run.report, run.items)
	}
}

// A site whose pages hang has a feed that works all the same: the run ends in
// its time, and the next one goes on with the pages that were not asked for.
func TestPagesThatHangAreNoFailureOfTheSource(t *testing.T) {
	hang := make(chan struct{})
	s := &site{feed: rss(item(1, "<description>One.</description>"), item(2, "<description>Two.</description>"))}
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/a/1" {
			<-hang
		}
		s.serve(rw, r)
	})
	release := sync.OnceFunc(func() { close(hang) })
	t.Cleanup(release)
	s.pages = map[string]func(http.ResponseWriter){"/a/1": article(paragraphs("tunnels")), "/a/2": article(paragraphs("bridges"))}
	run := func(limit time.Duration) crawl.Report {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		report, err := w.kind.Crawl(ctx, crawl.Job{Source: feedSource(), Now: now, Unconditional: true, Sink: &sink{Log: w.log}})
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	if r := run(3 * time.Second); r.New != 2 || !r.Validators.BodyHash.IsZero() {
		t.Errorf("while a page hangs: %+v; want both entries, and that the document is asked for again", r)
	}
	release()
	if r := run(time.Minute); r.New != 0 || r.Revised != 1 || r.Validators.BodyHash.IsZero() {
		t.Errorf("after it: %+v; want the page that there was no time for", r)
	}
	if s.asked["/a/2"] != 1 {
		t.Errorf("asked for %v", s.asked)
	}
}

func TestSettingsOfFullText(t *testing.T) {
	s := &site{
		feed: rss(item(1, "<content:encoded><![CDATA["+paragraphs("bridges")+"]]></content:encoded>")),
		pages: map[string]func(http.ResponseWriter){
			"/a/1": article(paragraphs("tunnels") + paragraphs("trains") + `<div class="lead">Only this.</div>`),
		},
	}
	for name, c := range map[string]struct {
		change func(*crawl.Source)
		from   ledger.TextOrigin
		text   string
	}{
		"auto, full content": {func(*crawl.Source) {}, ledger.TextContent, "bridges"},
		"always":             {func(src *crawl.Source) { src.FullText = crawl.FullTextTrue }, ledger.TextPage, "trains"},
		"selector": {
			func(src *crawl.Source) { src.FullText, src.Selector = crawl.FullTextTrue, ".lead" },
			ledger.TextSelector, "Only this.",
		},
		"selector of nothing": {
			func(src *crawl.Source) { src.FullText, src.Selector = crawl.FullTextTrue, ".nothing" },
			ledger.TextPage, "trains",
		},
		"never": {func(src *crawl.Source) { src.FullText = crawl.FullTextFalse }, ledger.TextContent, "bridges"},
	} {
		t.Run(name, func(t *testing.T) {
			src := feedSource()
			c.change(&src)
			run, err := newWorld(t, s.serve).crawl(src, now)
			if err != nil {
				t.Fatal(err)
			}
			if it := run.items[0]; it.TextFrom != c.from || !strings.Contains(it.Text, c.text) {
				t.Errorf("text from %s: %q", it.TextFrom, it.Text)
			}
		})
	}
}

func TestEnclosuresAreNoPages(t *testing.T) {
	s := &site{feed: rss(`<item><title>Episode</title><enclosure url="https://news.example.org/e.mp3" type="audio/mpeg"/><description>Short.</description></item>`, "<item></item>")}
	run, err := newWorld(t, s.serve).crawl(feedSource(), now)
	if err != nil {
		t.Fatal(err)
	}
	if len(run.items) != 1 || run.items[0].URL != "https://news.example.org/e.mp3" || s.asked["/e.mp3"] != 0 {
		t.Errorf("items %+v, asked for %v", run.items, s.asked)
	}
}

func TestRedirectToTheFrontPageIsNoArticle(t *testing.T) {
	s := &site{feed: rss(item(1, "<description>Short.</description>"))}
	s.pages = map[string]func(http.ResponseWriter){
		"/a/1": func(w http.ResponseWriter) { w.Header().Set("Location", "/"); w.WriteHeader(http.StatusFound) },
		"/":    article(paragraphs("everything")),
	}
	run, err := newWorld(t, s.serve).crawl(feedSource(), now)
	if err != nil {
		t.Fatal(err)
	}
	if it := run.items[0]; it.TextFrom != ledger.TextSummary || it.CanonicalURL != "https://news.example.org/a/1" {
		t.Errorf("item %+v", it)
	}
}

func TestRulesDropBeforePagesAreFetched(t *testing.T) {
	s := &site{feed: rss(item(1, "<description>About football.</description>"), item(2, "<description>About kernels.</description>"))}
	w := newWorld(t, s.serve)
	src := feedSource()
	src.Block = []string{"football"}
	run, err := w.crawl(src, now)
	if err != nil {
		t.Fatal(err)
	}
	if run.report.Dropped != 1 || run.report.New != 1 || len(run.drops) != 1 || run.drops[0].Title != "Item 1" || run.drops[0].Rule == "" {
		t.Errorf("report %+v, drops %+v", run.report, run.drops)
	}
	if s.asked["/a/1"] != 0 {
		t.Error("the page of a dropped entry was fetched")
	}
}

func TestSameBytesEndTheRun(t *testing.T) {
	s := &site{feed: rss(item(1, "<description>One.</description>"))}
	w := newWorld(t, s.serve)
	src := source("https://news.example.org/rss.xml")
	first, err := w.run(crawl.Job{Source: src, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	job := crawl.Job{Source: src, Now: now, State: ledger.SourceState{Validators: first.report.Validators}}
	second, err := w.run(job)
	if err != nil {
		t.Fatal(err)
	}
	if !second.report.NotModified || second.report.Fetched != 0 {
		t.Errorf("report %+v", second.report)
	}
	job.Unconditional = true
	third, err := w.run(job)
	if err != nil {
		t.Fatal(err)
	}
	if third.report.NotModified || third.report.Fetched != 1 {
		t.Errorf("an unconditional run: %+v", third.report)
	}
}

func TestWhatIsNoFeed(t *testing.T) {
	for name, c := range map[string]struct {
		body  string
		cause ledger.Cause
		says  string
	}{
		"page": {"<!doctype html><html><head><title>Welcome</title></head><body>x</body></html>", ledger.CauseNotFeed, "an HTML page with the title “Welcome”"},
		"declares": {
			`<html><head><link rel="stylesheet" href="/a.css"><link rel="alternate" type="application/rss+xml" href="/all.xml"></head></html>`, ledger.CauseNotFeed,
			`declares the feed https://news.example.org/all.xml: give that as feed_url, or see "vesti sources discover"`,
		},
		"login":     {`<html><form><input type="password"></form></html>`, ledger.CauseNotFeed, "asks to log in"},
		"challenge": {`<html><title>Just a moment...</title></html>`, ledger.CauseNotFeed, "checks for robots"},
		"empty":     {" \n", ledger.CauseNotFeed, "an empty body"},
		"prolog":    {`<?xml version="1.0"?>`, ledger.CauseNotFeed, "an XML prolog and nothing after it"},
		"json":      {`{"error": "no such feed"}`, ledger.CauseNotFeed, "JSON, but no JSON Feed"},
		"sitemap":   {`<?xml version="1.0"?><urlset></urlset>`, ledger.CauseNotFeed, "a sitemap"},
		"opml":      {`<opml version="2.0"></opml>`, ledger.CauseNotFeed, "an OPML list"},
		"text":      {`not found`, ledger.CauseNotFeed, "plain text: “not found”"},
		"binary":    {"\x89PNG\r\n\x1a\n\x00", ledger.CauseNotFeed, "binary data"},
		"cut":       {`<?xml version="1.0"?><rss version="2.0"><channel><title>News</title><item><title>On`, ledger.CauseParse, "breaks off before the end of its first entry"},
		"broken":    {`{"version":"https://jsonfeed.org/version/1.1","items":`, ledger.CauseParse, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &site{feed: c.body}
			_, err := newWorld(t, s.serve).crawl(source("https://news.example.org/rss.xml"), now)
			var failed *crawl.Error
			if !errors.As(err, &failed) {
				t.Fatalf("error %v", err)
			}
			if failed.Cause != c.cause || !strings.Contains(failed.Message, c.says) || !strings.Contains(failed.Message, "https://news.example.org/rss.xml") {
				t.Errorf("%s: %s", failed.Cause, failed.Message)
			}
		})
	}
}

func TestEmptyAndCutFeeds(t *testing.T) {
	whole := rss(item(1, "<description>One.</description>"), item(2, "<description>Two.</description>"))
	for name, c := range map[string]struct {
		body      string
		items     int
		empty     bool
		truncated bool
	}{
		"empty":          {rss(), 0, true, false},
		"whole":          {whole, 2, false, false},
		"cut at the end": {whole[:len(whole)-4], 2, false, true},
		"cut in an item": {whole[:strings.Index(whole, "Two.")], 1, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &site{feed: c.body}
			run, err := newWorld(t, s.serve).crawl(source("https://news.example.org/rss.xml"), now)
			if err != nil {
				t.Fatal(err)
			}
			r := run.report
			if len(run.items) != c.items || r.Empty != c.empty || r.Truncated != c.truncated {
				t.Errorf("%d items, report %+v", len(run.items), r)
			}
			if asksAgain := r.Validators.BodyHash.IsZero(); asksAgain != c.truncated {
				t.Errorf("of a document that was cut the rest could not be had: %+v", r.Validators)
			}
		})
	}
}
