package discover_test

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/crawltest"
	"vesti.nixg.ru/crawl/discover"
	"vesti.nixg.ru/crawl/fetch"
	"vesti.nixg.ru/ledger"
)

const (
	rss = `<?xml version="1.0"?><rss version="2.0"><channel><title>News of the site</title><link>https://site.example/</link>
<item><title>One</title><link>https://site.example/1</link><pubDate>Mon, 10 Mar 2025 10:00:00 GMT</pubDate></item></channel></rss>`
	atom     = `<feed xmlns="http://www.w3.org/2005/Atom"><title>Comments</title><id>urn:x</id><updated>2025-03-10T10:00:00Z</updated></feed>`
	jsonFeed = `{"version":"https://jsonfeed.org/version/1.1","title":"As JSON","items":[]}`
)

func find(t *testing.T, pages map[string]string, address string) ([]discover.Found, error) {
	t.Helper()
	w := crawltest.New(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := pages[r.Host+r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		for prefix, status := range map[string]int{"for good ": http.StatusMovedPermanently, "for now ": http.StatusFound} {
			if target, ok := strings.CutPrefix(body, prefix); ok {
				http.Redirect(w, r, target, status)
				return
			}
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, body)
	}))
	c := fetch.New(w.Options(fetch.Options{HostGap: -1}))
	t.Cleanup(c.Close)
	return discover.Feeds(t.Context(), c, address, discover.Options{})
}

func brief(found []discover.Found) []string {
	var list []string
	for _, f := range found {
		list = append(list, strings.Join([]string{f.How, f.FeedURL, f.Channel, f.Title}, " "))
	}
	return list
}

func TestFeeds(t *testing.T) {
	for name, c := range map[string]struct {
		pages   map[string]string
		address string
		want    []string
	}{
		"the feed itself": {
			map[string]string{"site.example/f": rss},
			"site.example/f",
			[]string{"itself https://site.example/f  News of the site"},
		},
		"declared, with a base, in order, a dead one left out": {
			map[string]string{
				"site.example/blog": `<html><head><base href="/sub/"><LINK REL="Alternate" TYPE="application/rss+xml; charset=utf-8" HREF="rss.xml">
<link rel="alternate" type="application/atom+xml" href="https://other.example/atom"><link rel=alternate type=application/rss+xml href=/dead>
<link rel="alternate" type="application/feed+json" href="/feed.json"><link rel="alternate" type="application/json" href="/wp-json/x">
<link rel="stylesheet" type="text/xml" href="/not"></head><body><a href="/rss">RSS</a></body></html>`,
				"site.example/sub/rss.xml": rss, "other.example/atom": atom, "site.example/feed.json": jsonFeed, "site.example/not": rss,
			},
			"https://site.example/blog",
			[]string{
				"declared https://site.example/sub/rss.xml  News of the site", "declared https://other.example/atom  Comments",
				"declared https://site.example/feed.json  As JSON",
			},
		},
		"linked in the text": {
			map[string]string{"site.example/": `<p><a href="feed:https://site.example/news.rss">Subscribe</a> <a href="/about">About</a></p>`, "site.example/news.rss": rss},
			"site.example",
			[]string{"linked https://site.example/news.rss  News of the site"},
		},
		"guessed": {
			map[string]string{"site.example/": "<p>Hello</p>", "site.example/rss.xml": rss, "site.example/atom.xml": atom},
			"http://site.example/",
			[]string{"guessed http://site.example/rss.xml  News of the site"},
		},
		"behind redirects": {
			map[string]string{
				"site.example/": `<link rel=alternate type=application/rss+xml href=/a><link rel=alternate type=application/rss+xml href=/b>` +
					`<link rel=alternate type=application/rss+xml href=/same>`,
				"site.example/a": "for now /session/1", "site.example/session/1": rss,
				"site.example/b": "for good /new", "site.example/new": atom, "site.example/same": "for now /new",
			},
			"site.example",
			[]string{"declared https://site.example/a  News of the site", "declared https://site.example/new  Comments"},
		},
		"a channel": {nil, "https://t.me/s/durov", []string{"itself  durov @durov"}},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := find(t, c.pages, c.address)
			if got := brief(found); err != nil || !slices.Equal(got, c.want) {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestNoFeed(t *testing.T) {
	_, err := find(t, map[string]string{"site.example/": "<p>Hello</p>"}, "site.example")
	if !errors.Is(err, ledger.ErrNotFound) || !strings.Contains(err.Error(), "https://site.example/rss.xml") {
		t.Errorf("got %v, want ErrNotFound and what was tried", err)
	}
	_, err = find(t, nil, "127.0.0.1")
	if failed, ok := errors.AsType[*crawl.Error](err); !ok || failed.Cause != ledger.CauseBlocked {
		t.Errorf("a private address: got %v, want blocked", err)
	}
}
