package crawl_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/ledgertest/cases"
)

// playFeeds polls several feeds, each once, in their order.
func playFeeds(t *testing.T, c cases.Case) error {
	var in struct {
		Feeds []struct{ File, URL string }
		Now   time.Time
	}
	c.Decode(t, c.Input, &in)
	var expect struct {
		Documents         int
		CanonicalURL      string   `json:"canonical_url"`
		SourcesOnDocument []string `json:"sources_on_document"`
		CrawlerCounts     *struct{ Fetched, New, Duplicate int }
	}
	c.Decode(t, c.Expect, &expect)
	var sources []crawl.Source
	var steps []step
	for i, f := range in.Feeds {
		sources = append(sources, caseSource(ledger.Slug(fmt.Sprintf("feed%d", i+1)), f.URL))
		steps = append(steps, step{Request: request{URL: f.URL}, Response: response{
			Status: 200, BodyFile: f.File, Headers: map[string]string{"Content-Type": "application/rss+xml; charset=utf-8"},
		}})
	}
	s := &server{t: t, c: c}
	d := newDesktop(t, in.Now, time.Minute, s, sources...)
	for i := range sources {
		d.sources[i].FullText = crawl.FullTextFalse
	}
	d.reload(t)
	s.expect(steps, false)
	var total crawl.Summary
	for _, src := range sources {
		got, err := d.run(t, src.Slug)
		if err != nil {
			return err
		}
		total.Fetched += got.result.Fetched
		total.New += got.result.New
		total.SeenAgain += got.result.SeenAgain
	}
	posts := d.posts(t)
	errs := []error{s.verdict()}
	if len(posts) != expect.Documents {
		errs = append(errs, fmt.Errorf("%d posts, want %d", len(posts), expect.Documents))
	}
	if n := expect.CrawlerCounts; n != nil && (total.Fetched != n.Fetched || total.New != n.New || total.SeenAgain != n.Duplicate) {
		errs = append(errs, fmt.Errorf("fetched %d, new %d, seen again %d; want %+v", total.Fetched, total.New, total.SeenAgain, *n))
	}
	for _, post := range posts {
		if expect.CanonicalURL != "" && post.Item.CanonicalURL != expect.CanonicalURL {
			errs = append(errs, fmt.Errorf("canonical URL %q, want %q", post.Item.CanonicalURL, expect.CanonicalURL))
		}
		carriers, err := d.carriers(t, post.Num)
		if err != nil {
			return err
		}
		for _, url := range expect.SourcesOnDocument {
			if !slices.Contains(carriers, url) {
				errs = append(errs, fmt.Errorf("carriers are %q, not %s", carriers, url))
			}
		}
	}
	return errors.Join(errs...)
}

// carriers returns the feeds that carried the post.
func (d *desktop) carriers(t *testing.T, num ledger.PostNum) ([]string, error) {
	events, err := d.log.PostEvents(t.Context(), num)
	if err != nil {
		return nil, err
	}
	var urls []string
	for _, e := range events {
		for _, s := range d.sources {
			if s.Slug == e.Source {
				urls = append(urls, s.FeedURL)
			}
		}
	}
	return urls, nil
}
