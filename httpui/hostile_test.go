package httpui_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/feed"
	"vesti.nixg.ru/crawl/fetch"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/ledgertest/cases"
)

const hostileText = `<script>alert(1)</script><img src=x onerror=alert(2)>"' onmouseover="alert(3)` + " \u202egnp.exe"

// TestHostileContentStaysText: whatever a feed, a model or a server says, in
// every field that pages show.
func TestHostileContentStaysText(t *testing.T) {
	src := crawl.Source{
		Slug: "evil", Name: hostileText, URL: "javascript:alert(1)", FeedURL: `https://e.example.org/"><script>`, Crawler: ledger.CrawlerRSS,
		Direction: hostileText, Lang: hostileText, Enabled: true,
	}
	d := newDesk(t, []crawl.Source{src})
	it := ledger.Item{
		Source: "evil", Key: ledger.NewItemKey("evil", hostileText), URL: `javascript:alert(document.cookie)`, Title: hostileText,
		Author: hostileText, Text: "Searchable words. " + hostileText, Lang: hostileText, ForwardOf: hostileText, PublishedRaw: hostileText,
	}
	d.add(it)
	c := judged(hostileText, .5, .5, hostileText)
	c.Stage, c.Model, c.ModelDigest, c.PromptHash, c.RuleSet, c.RawReply = hostileText, hostileText, hostileText, hostileText, hostileText, hostileText
	c.Reasons = []ledger.Reason{{Stage: hostileText, Rule: hostileText, Matched: hostileText, Note: hostileText}}
	d.judge(c)
	it.Text = "Searchable words, other ones. " + hostileText
	post := d.add(it)
	run := ledger.Run{Started: d.clock.Now(), HTTPStatus: 500}
	err := d.record(t.Context(),
		ledger.NewEvent(ledger.ActorCrawler, 0, "evil", ledger.SourceCrawled{Run: run, Title: hostileText, Validators: ledger.Validators{
			ETag: hostileText, LastModified: hostileText, LastBuildDate: hostileText,
		}}),
		ledger.NewEvent(ledger.ActorCrawler, 0, "evil", ledger.SourceMoved{From: hostileText, URL: hostileText}),
		ledger.NewEvent(ledger.ActorCrawler, 0, "evil", ledger.SourceFailed{Run: run, Cause: ledger.Cause(hostileText), Message: hostileText}),
		ledger.NewEvent(ledger.ActorEditor, post.Num, "", ledger.PostReviewed{Verdict: ledger.VerdictPicked, Note: hostileText}),
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"/?tab=all", "/?q=searchable", "/?q=onerror", "/posts/" + post.ID.String(), "/crawlers", "/crawlers/evil", "/?source=evil&tab=all",
	} {
		inert(t, path, d.get(path))
	}
}

// inert parses a page as a browser would and looks for what is not ours.
func inert(t *testing.T, name, page string) {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range doc.Descendants() {
		if n.Type == html.TextNode && strings.ContainsAny(n.Data, "\u202a\u202b\u202d\u202e") && !isolated(n) {
			t.Errorf("%s: %q turns direction outside of an isolated element (in <%s>)", name, n.Data, n.Parent.Data)
		}
		if n.Type != html.ElementNode {
			continue
		}
		switch n.Data {
		case "img", "iframe", "object", "embed", "style", "base", "svg":
			t.Errorf("%s: there is a <%s>", name, n.Data)
		case "script":
			if n.FirstChild != nil || !strings.HasPrefix(attribute(n, "src"), "/assets/") {
				t.Errorf("%s: a script that is not ours", name)
			}
		}
		for _, a := range n.Attr {
			switch {
			case strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "srcdoc":
				t.Errorf("%s: <%s> has %s=%q", name, n.Data, a.Key, a.Val)
			case a.Key == "href" && !strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "http://") && !strings.HasPrefix(a.Val, "https://") && a.Val != "#main":
				t.Errorf("%s: link to %q", name, a.Val)
			case a.Key == "href" && strings.HasPrefix(a.Val, "http") && attribute(n, "rel") != "noopener noreferrer nofollow":
				t.Errorf("%s: link to %q with rel=%q", name, a.Val, attribute(n, "rel"))
			}
		}
	}
}

// isolated reports whether a text stands in an element that keeps its
// direction to itself.
func isolated(n *html.Node) bool {
	for p := n.Parent; p != nil; p = p.Parent {
		if p.Data == "bdi" || attribute(p, "dir") == "auto" || p.Data == "title" || p.Data == "textarea" || p.Data == "option" {
			return true
		}
	}
	return false
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// TestHostileFeeds crawls the feeds of the cases about markup for real and
// looks at what the cases say of pages.
func TestHostileFeeds(t *testing.T) {
	root := cases.Folder(t, "VESTI_CASES", "../shared/cases")
	for _, tt := range []struct {
		id     string
		absent []string
		search string
		found  string
	}{
		{"178-script-in-title", []string{"<img src=x", "<script>alert", "<body onload"}, "onload", "<mark>onload</mark>"},
		{"179-script-in-author", []string{"<script>alert", `" onmouseover="`}, "note", ""},
		{"180-link-with-markup", []string{`"><img`, "<img src=1"}, "cut", ""},
		{"181-bidi-override", nil, "invoice", ""},
	} {
		t.Run(tt.id, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/rss+xml; charset=utf-8")
				http.ServeFile(w, r, filepath.Join(root, tt.id, "feed.xml"))
			}))
			t.Cleanup(server.Close)
			client := fetch.New(fetch.Options{})
			t.Cleanup(client.Close)
			src := crawl.Source{
				Slug: "feed", Name: "Feed", FeedURL: server.URL + "/rss.xml", Crawler: ledger.CrawlerRSS, Enabled: true, AllowPrivate: true,
				FullText: crawl.FullTextFalse, MaxItems: 25,
			}
			d := newDesk(t, nil)
			d.crawler = crawl.New(crawl.Options{
				Log: d.log, Kinds: map[ledger.Crawler]crawl.Kind{ledger.CrawlerRSS: feed.New(feed.Options{Client: client})}, Now: d.clock.Now,
			})
			if _, err := d.crawler.Reload(t.Context(), []crawl.Source{src}); err != nil {
				t.Fatal(err)
			}
			summary, err := d.crawler.RunOnce(t.Context(), crawl.Selection{All: true}, crawl.Once{})
			if err != nil || summary.New == 0 {
				t.Fatalf("crawled %+v, %v", summary, err)
			}
			d.settle()
			paths := []string{"/", "/?q=" + tt.search, "/crawlers", "/crawlers/feed"}
			for _, m := range regexp.MustCompile(`href="(/posts/[0-9a-f]+)"`).FindAllStringSubmatch(d.get("/"), -1) {
				paths = append(paths, m[1])
			}
			if len(paths) < 5 {
				t.Fatal("no post on the list")
			}
			for _, path := range paths {
				page := d.get(path)
				inert(t, path, page)
				wantNotIn(t, page, tt.absent...)
			}
			wantIn(t, d.get("/?q="+tt.search), "1 post", tt.found)
			wantNotIn(t, d.get("/metrics"), "<script>")
		})
	}
}

func TestEveryAnswerHasTheSecurityHeaders(t *testing.T) {
	d := newDesk(t, demoSources())
	sheet := regexp.MustCompile(`/assets/[^"]+\.css`).FindString(d.get("/"))
	for _, path := range append(pagePaths(), "/login", "/nowhere", "/metrics", "/healthz", "/api/v1/queue", "/api/v1/nowhere", sheet, "/assets/0/app.css", "/assets/../assets/") {
		res, _ := d.getAs(d.client, path)
		for header, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY", "Cross-Origin-Opener-Policy": "same-origin",
		} {
			if got := res.Header.Get(header); got != want {
				t.Errorf("%s: %s: %q, want %q", path, header, got, want)
			}
		}
		policy := res.Header.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
			if !strings.Contains(policy, part) {
				t.Errorf("%s: policy %q lacks %s", path, policy, part)
			}
		}
		if strings.Contains(policy, "unsafe") {
			t.Errorf("%s: policy %q", path, policy)
		}
		cache, want := res.Header.Get("Cache-Control"), "no-store"
		if path == sheet {
			want = "public, max-age=31536000, immutable"
		}
		if cache != want {
			t.Errorf("%s: Cache-Control %q, want %q", path, cache, want)
		}
	}
}
