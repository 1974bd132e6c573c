// Package discover finds the feeds of a site from any of its pages.
package discover

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/PuerkitoBio/goquery"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/feed"
	"vesti.nixg.ru/crawl/fetch"
	"vesti.nixg.ru/crawl/page"
	"vesti.nixg.ru/ledger"
)

// Getter gets pages and feeds; *fetch.Client is one.
type Getter interface {
	Get(ctx context.Context, r fetch.Request) (*fetch.Response, error)
}

// Found is a feed, or a Telegram channel, that a site has.
type Found struct {
	FeedURL string    `json:"feed_url,omitempty"`
	Channel string    `json:"channel,omitempty"`
	Title   string    `json:"title"`
	Site    string    `json:"site,omitempty"`
	Format  string    `json:"format,omitempty"` // rss, rdf, atom, json
	Lang    string    `json:"lang,omitempty"`
	Entries int       `json:"entries"`
	Newest  time.Time `json:"newest,omitzero"`
	How     string    `json:"how"` // itself, declared, linked, guessed
}

// How a feed was found.
const (
	HowItself   = "itself"   // the address is a feed
	HowDeclared = "declared" // by a link element of the page
	HowLinked   = "linked"   // by a link in the page's text
	HowGuessed  = "guessed"  // at an address where sites often have one
)

// Options alter a search. The zero value is sound.
type Options struct {
	AllowPrivate bool // the address's own host may be a private one
}

// The most addresses that are tried as feeds.
const mostCandidates = 12

// Feeds looks for feeds at address, which may lack its scheme. Each was fetched
// and read; the ones that the page declares come first. Where there is none,
// the error matches ledger.ErrNotFound and says what was tried; an address that
// does not answer gives the error of the fetch.
func Feeds(ctx context.Context, client Getter, address string, opts Options) ([]Found, error) {
	address = strings.TrimSpace(address)
	if found, ok := channel(address); ok {
		return []Found{found}, nil
	}
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	s := &search{client: client}
	if u, err := url.Parse(address); err == nil && opts.AllowPrivate {
		s.own = []string{fetch.HostPort(u)}
	}
	resp, err := s.get(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("discover feeds: %w", err)
	}
	if f, ok := read(resp, candidate{address, HowItself}); ok {
		return []Found{f}, nil
	}
	candidates, err := onPage(resp)
	if err != nil {
		return nil, fmt.Errorf("discover feeds: %w", err)
	}
	if !slices.ContainsFunc(candidates, func(c candidate) bool { return c.how == HowDeclared }) {
		candidates = append(candidates, guesses(resp.FinalURL)...)
	}
	return s.try(ctx, resp.FinalURL, candidates)
}

// channel recognises the address of a Telegram channel.
func channel(address string) (Found, bool) {
	if !strings.HasPrefix(address, "@") && !strings.Contains(address, "t.me/") {
		return Found{}, false
	}
	name, err := crawl.ChannelName(address)
	return Found{Channel: name, Title: "@" + name, Site: "https://t.me/" + name, How: HowItself}, err == nil
}

type search struct {
	client Getter
	own    []string
}

func (s *search) get(ctx context.Context, address string) (*fetch.Response, error) {
	return s.client.Get(ctx, fetch.Request{URL: address, AllowPrivate: s.own}) //nolint:wrapcheck // Feeds wraps it
}

// candidate is an address that may be a feed's.
type candidate struct{ url, how string }

// try fetches the candidates in their order and returns those that are feeds.
// What is guessed is tried only as long as nothing was found.
func (s *search) try(ctx context.Context, from string, candidates []candidate) ([]Found, error) {
	var found []Found
	var tried []string
	seen, answered := map[string]bool{}, map[string]bool{}
	for _, c := range candidates {
		if seen[c.url] || len(tried) == mostCandidates || c.how == HowGuessed && len(found) > 0 {
			continue
		}
		seen[c.url] = true
		tried = append(tried, c.url)
		resp, err := s.get(ctx, c.url)
		if ctx.Err() != nil {
			return found, fmt.Errorf("discover feeds: %w", ctx.Err())
		}
		if err != nil {
			continue // it is in what was tried
		}
		f, ok := read(resp, c)
		if ok && !answered[resp.FinalURL] {
			answered[resp.FinalURL] = true
			found = append(found, f)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("discover feeds: %w: %s declares no feed that can be read; tried %s",
			ledger.ErrNotFound, from, strings.Join(tried, ", "))
	}
	return found, nil
}

// read reads the answer to c as a feed. Its address is the target of permanent
// redirects; where a temporary one leads is for this once.
func read(resp *fetch.Response, c candidate) (Found, bool) {
	doc, err := feed.Parse(resp.Body, feed.ParseOptions{ContentType: resp.Header.Get("Content-Type"), URL: resp.FinalURL})
	if err != nil {
		return Found{}, false
	}
	f := Found{
		FeedURL: c.url, Title: doc.Title, Site: doc.Link, Format: doc.Format, Lang: doc.Language, Entries: len(doc.Entries), How: c.how,
	}
	if resp.PermanentURL != "" {
		f.FeedURL = resp.PermanentURL
	}
	for i := range doc.Entries {
		if at := doc.Entries[i].Published; at.After(f.Newest) {
			f.Newest = at
		}
	}
	return f, true
}

var errNoPage = errors.New("the address is neither a feed nor a page")

// onPage returns what the page declares or links to.
func onPage(resp *fetch.Response) ([]candidate, error) {
	base, err := url.Parse(resp.FinalURL)
	if err != nil {
		return nil, fmt.Errorf("read address: %w", err)
	}
	doc, err := goquery.NewDocumentFromReader(strings.NewReader(page.Decode(resp.Body, resp.Header.Get("Content-Type"))))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoPage, err)
	}
	if href, ok := doc.Find("base[href]").First().Attr("href"); ok {
		if b, err := base.Parse(strings.TrimSpace(href)); err == nil {
			base = b
		}
	}
	var declared, linked []candidate
	doc.Find("link[rel][href]").Each(func(_ int, e *goquery.Selection) {
		if c, ok := declares(e, base); ok {
			declared = append(declared, c)
		}
	})
	doc.Find("a[href]").Each(func(_ int, e *goquery.Selection) {
		if c, ok := linksTo(e, base); ok {
			linked = append(linked, c)
		}
	})
	return append(declared, linked...), nil
}

// declares reads a link element: rel="alternate" with a feed's type.
func declares(e *goquery.Selection, base *url.URL) (candidate, bool) {
	rel := strings.Fields(strings.ToLower(e.AttrOr("rel", "")))
	kind, _, _ := strings.Cut(strings.ToLower(e.AttrOr("type", "")), ";")
	switch strings.TrimSpace(kind) {
	case "application/rss+xml", "application/atom+xml", "application/feed+json", "application/rdf+xml", "application/xml", "text/xml":
	case "application/json":
		// WordPress declares its API so; a feed says that it is one.
		if !strings.Contains(strings.ToLower(e.AttrOr("href", "")+e.AttrOr("title", "")), "feed") {
			return candidate{}, false
		}
	default:
		if !slices.Contains(rel, "feed") {
			return candidate{}, false
		}
	}
	if !slices.Contains(rel, "alternate") && !slices.Contains(rel, "feed") {
		return candidate{}, false
	}
	return resolve(e.AttrOr("href", ""), base, HowDeclared)
}

// linksTo reads a link in the text whose address looks like a feed's.
func linksTo(e *goquery.Selection, base *url.URL) (candidate, bool) {
	c, ok := resolve(e.AttrOr("href", ""), base, HowLinked)
	if !ok {
		return c, false
	}
	u, err := url.Parse(c.url)
	if err != nil {
		return c, false
	}
	path := strings.ToLower(strings.TrimSuffix(u.Path, "/"))
	last := path[strings.LastIndexByte(path, '/')+1:]
	switch last {
	case "rss", "feed", "atom", "rss2", "feeds", "rss.php":
		return c, true
	}
	for _, ending := range []string{".rss", ".atom", ".rdf", "rss.xml", "feed.xml", "atom.xml", "feed.json", "index.xml"} {
		if strings.HasSuffix(last, ending) {
			return c, true
		}
	}
	return c, false
}

func resolve(href string, base *url.URL, how string) (candidate, bool) {
	u, err := base.Parse(strings.TrimSpace(href))
	if err == nil && u.Scheme == "feed" {
		if u.Opaque != "" { // feed:https://…
			u, err = url.Parse(u.Opaque)
		} else {
			u.Scheme = "https"
		}
	}
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return candidate{}, false
	}
	u.Fragment = ""
	return candidate{url: u.String(), how: how}, true
}

// guesses are addresses where software for sites puts feeds, below the page
// and at the host's root.
func guesses(from string) []candidate {
	base, err := url.Parse(from)
	if err != nil {
		return nil
	}
	base.RawQuery, base.Fragment = "", ""
	var list []candidate
	for _, path := range []string{"/feed", "/rss", "/rss.xml", "/feed.xml", "/atom.xml", "/index.xml", "/feed.json"} {
		root := *base
		root.Path, root.RawPath = path, ""
		list = append(list, candidate{url: root.String(), how: HowGuessed})
	}
	if dir := strings.TrimSuffix(base.Path, "/"); dir != "" {
		below := *base
		below.Path, below.RawPath = dir+"/feed", ""
		list = append(list, candidate{url: below.String(), how: HowGuessed})
	}
	return list
}
