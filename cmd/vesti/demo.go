package main

import (
	"context"
	"embed"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/goccy/go-yaml"

	"vesti.nixg.ru/ledger"
)

//go:embed starter/sources.yaml starter/demo.yaml
var starter embed.FS

const (
	demoSlug  = "demo"
	demoFirst = 10               // entries that are there from the start
	demoEvery = 10 * time.Second // then one more
)

// demo is a feed that vesti serves to itself on loopback, so that there is
// something to see on a machine without a network. Its entries carry summaries
// only; their texts are on its pages, as with many real feeds.
type demo struct {
	entries   []demoEntry
	published atomic.Int64
	started   time.Time
	listener  net.Listener
}

type demoEntry struct {
	Title string `yaml:"title"`
	Lang  string `yaml:"lang"`
	Text  string `yaml:"text"`
}

func newDemo() (*demo, error) {
	b, err := starter.ReadFile("starter/demo.yaml")
	if err != nil {
		return nil, fmt.Errorf("read demo entries: %w", err)
	}
	d := &demo{started: time.Now()}
	if err := yaml.Unmarshal(b, &d.entries); err != nil {
		return nil, fmt.Errorf("read demo entries: %w", err)
	}
	d.published.Store(min(demoFirst, int64(len(d.entries))))
	return d, nil
}

// listen takes the address at which the first demo on this store was, so that
// the links of its posts work again, or where another program has it any other
// one for this time.
func (d *demo) listen(ctx context.Context, store ledger.Store, logger *slog.Logger) error {
	key := []byte("address")
	var first []byte
	err := store.View(ctx, func(tx ledger.Tx) (err error) {
		first, err = tx.Get(key)
		return err
	})
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return fmt.Errorf("read the demo feed's address: %w", err)
	}
	var lc net.ListenConfig
	if first != nil {
		if d.listener, err = lc.Listen(ctx, "tcp", string(first)); err == nil {
			return nil
		}
		logger.Warn("the demo feed's address is taken; links of its earlier posts lead nowhere until the next start", "error", err)
	}
	if d.listener, err = lc.Listen(ctx, "tcp", "127.0.0.1:0"); err != nil {
		return fmt.Errorf("listen for the demo feed: %w", err)
	}
	if first != nil {
		return nil
	}
	err = store.Update(ctx, func(tx ledger.Tx) error { return tx.Set(key, []byte(d.listener.Addr().String())) })
	if err != nil {
		logger.Warn("the demo feed will be at another address after a restart", "error", err)
	}
	return nil
}

// url is the address of the feed.
func (d *demo) url() string { return "http://" + d.listener.Addr().String() + "/feed.xml" }

// run serves the feed and calls more after each entry that it publishes.
func (d *demo) run(ctx context.Context, more func(context.Context)) error {
	srv := &http.Server{Handler: d.handler(), ReadHeaderTimeout: 5 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = srv.Close() })()
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.publish(ctx, more)
	}()
	err := srv.Serve(d.listener)
	<-done
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the demo feed: %w", err)
	}
	return nil
}

func (d *demo) publish(ctx context.Context, more func(context.Context)) {
	tick := time.NewTicker(demoEvery)
	defer tick.Stop()
	for d.published.Load() < int64(len(d.entries)) {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			d.published.Add(1)
			more(ctx)
		}
	}
}

func (d *demo) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /feed.xml", func(w http.ResponseWriter, r *http.Request) {
		n := d.published.Load()
		tag := fmt.Sprintf("%q", fmt.Sprint("demo-", n))
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Content-Type", "application/rss+xml; charset=utf-8")
		d.writeFeed(w, r.Host, int(n))
	})
	mux.HandleFunc("GET /articles/{n}", func(w http.ResponseWriter, r *http.Request) {
		var n int
		if _, err := fmt.Sscan(r.PathValue("n"), &n); err != nil || n < 1 || n > len(d.entries) {
			http.NotFound(w, r)
			return
		}
		e := d.entries[n-1]
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, "<!doctype html><html lang=%q><head><title>%s</title></head><body><article><h1>%[2]s</h1>", e.Lang, html.EscapeString(e.Title))
		for p := range strings.SplitSeq(strings.TrimSpace(e.Text), "\n\n") {
			fmt.Fprintf(w, "<p>%s</p>", html.EscapeString(p))
		}
		fmt.Fprint(w, "</article></body></html>")
	})
	return mux
}

func (d *demo) writeFeed(w http.ResponseWriter, host string, n int) {
	type guid struct {
		Permanent bool   `xml:"isPermaLink,attr"`
		Value     string `xml:",chardata"`
	}
	type item struct {
		Title string `xml:"title"`
		Link  string `xml:"link"`
		GUID  guid   `xml:"guid"`
		Date  string `xml:"pubDate"`
		Text  string `xml:"description"`
	}
	var feed struct {
		XMLName xml.Name `xml:"rss"`
		Version string   `xml:"version,attr"`
		Title   string   `xml:"channel>title"`
		Link    string   `xml:"channel>link"`
		Items   []item   `xml:"channel>item"`
	}
	feed.Version, feed.Title, feed.Link = "2.0", "vesti demo", "http://"+host+"/"
	for i := n; i >= 1; i-- {
		e := d.entries[i-1]
		lead, _, _ := strings.Cut(e.Text, ". ")
		feed.Items = append(feed.Items, item{
			Title: e.Title,
			Link:  fmt.Sprintf("http://%s/articles/%d", host, i),
			GUID:  guid{Value: fmt.Sprint("vesti-demo-", i)},
			Date:  d.date(i).Format(time.RFC1123Z),
			Text:  lead + ".",
		})
	}
	fmt.Fprint(w, xml.Header)
	_ = xml.NewEncoder(w).Encode(feed)
}

// date spreads the first entries over the hours before the start.
func (d *demo) date(i int) time.Time {
	if i <= demoFirst {
		return d.started.Add(-time.Duration(demoFirst-i+1) * 20 * time.Minute)
	}
	return d.started.Add(time.Duration(i-demoFirst) * demoEvery)
}
