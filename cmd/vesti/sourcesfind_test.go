package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/discover"
)

const oneFeed = `<rss version="2.0"><channel><title>Found</title>
<item><guid>1</guid><title>Release of a kernel</title><description>The kernel is out, and here is what it brings to everybody.</description></item>
<item><guid>2</guid><title>An advert</title><description>Buy this advertised thing while there is some of it left.</description></item>
</channel></rss>`

func TestDiscoverAndPreview(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			_, _ = w.Write([]byte(`<html><link rel="alternate" type="application/rss+xml" href="/f"></html>`))
		case "/f":
			_, _ = w.Write([]byte(oneFeed))
		default:
			http.NotFound(w, r)
		}
	}))
	defer site.Close()
	d := newDesk(t)
	d.sources(oneSource(site.URL + "/f"))

	var found struct{ Feeds []discover.Found }
	d.json(exitDone, &found, "sources", "discover", "--allow-private", site.URL)
	if len(found.Feeds) != 1 || found.Feeds[0].FeedURL != site.URL+"/f" || found.Feeds[0].Entries != 2 {
		t.Errorf("found %+v", found)
	}
	if e := d.do(exitFailed, "sources", "discover", site.URL); !strings.Contains(e.stderr, "give --allow-private") {
		t.Errorf("a private site without leave: %s", e.stderr)
	}

	if e := d.do(exitFailed, "sources", "discover", "ftp://site.example/"); strings.Contains(e.stderr, "--allow-private") {
		t.Errorf("a flag that does not help: %s", e.stderr)
	}

	var sum crawl.Summary
	d.json(exitDone, &sum, "sources", "preview", "one", "--block", "advert*")
	if sum.Fetched != 2 || sum.Dropped != 1 || len(sum.Drops) != 1 || sum.Drops[0].Rule != "block advert*" || sum.New != 1 {
		t.Errorf("preview %+v", sum)
	}
	d.json(exitDone, &sum, "sources", "preview", "one")
	if sum.Dropped != 0 {
		t.Errorf("preview of the source's own rules, which are none: %+v", sum)
	}
	d.do(exitUsage, "sources", "preview", "one", "--block", "/[/")
	d.do(exitUsage, "sources", "preview", "nobody")
	d.json(exitDone, &sum, "crawl", "--all")
	if sum.New != 2 {
		t.Errorf("a preview stored something, or kept something out: %+v", sum)
	}
}
