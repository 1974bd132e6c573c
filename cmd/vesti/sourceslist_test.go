package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The list says why a source is as it is, and when it is asked again.
func TestSourcesListTellsWhy(t *testing.T) {
	item := `<item><title>One post</title><guid>%[1]s</guid><description>A text.</description></item>`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := `<rss version="2.0"><channel><title>feed</title>`
		switch r.URL.Path {
		case "/throttled":
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusTooManyRequests)
		case "/cut":
			fmt.Fprintf(w, head+item+`<item><title>The second`, r.URL.Path)
		case "/moved":
			http.Redirect(w, r, "/target", http.StatusMovedPermanently)
		case "/lent":
			http.Redirect(w, r, "/whole?lent", http.StatusFound)
		case "/empty":
			fmt.Fprint(w, head+`</channel></rss>`)
		default:
			fmt.Fprintf(w, head+item+`</channel></rss>`, r.URL.Path)
		}
	}))
	t.Cleanup(server.Close)
	d := newDesk(t)
	list := "sources:\n"
	for _, slug := range []string{"throttled", "cut", "empty", "moved", "lent", "whole"} {
		address := server.URL
		if slug == "throttled" { // a host that asks to wait is left alone as a whole
			address = strings.Replace(address, "127.0.0.1", "localhost", 1)
		}
		list += fmt.Sprintf("  - {slug: %s, name: %[1]s, feed_url: %q, crawler: rss, direction: linux, priority: P0, allow_private: true, full_text: false}\n", slug, address+"/"+slug)
	}
	d.sources(list)
	d.try("crawl", "--all")
	var got struct{ Sources []sourceRow }
	d.json(exitDone, &got, "sources", "list")
	notes := map[string]string{"throttled": "told to wait until", "cut": "not read whole", "empty": "no entries", "moved": "moved for good to " + server.URL + "/target"}
	for _, r := range got.Sources {
		want := notes[string(r.Slug)]
		if !strings.Contains(r.Note, want) || want == "" && r.Note != "" || r.Next.IsZero() {
			t.Errorf("%s: note %q, next %s", r.Slug, r.Note, r.Next)
		}
		if r.Truncated != (r.Slug == "cut") || r.Throttled.IsZero() == (r.Slug == "throttled") {
			t.Errorf("%s: truncated %t, throttled until %s", r.Slug, r.Truncated, r.Throttled)
		}
	}
	text := d.do(exitDone, "sources", "list").stdout
	for _, want := range []string{"told to wait until", "not read whole", "no entries", "moved for good to", "next 20"} {
		if !strings.Contains(text, want) {
			t.Errorf("the list does not say %q:\n%s", want, text)
		}
	}
	if log := d.do(exitDone, "log", "cut").stdout; !strings.Contains(log, "not read whole") {
		t.Errorf("the log does not tell that the feed was cut:\n%s", log)
	}
}
