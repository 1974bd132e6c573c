package crawl_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/crawltest"
	"vesti.nixg.ru/crawl/feed"
	"vesti.nixg.ru/crawl/fetch"
	"vesti.nixg.ru/crawl/page"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
	"vesti.nixg.ru/ledger/ledgertest"
	"vesti.nixg.ru/ledger/ledgertest/cases"
)

// TestPublicCases plays the exchanges between a crawler and its servers: real
// requests of the real client and the real kind of feeds into a real ledger,
// with a clock, a DNS and servers that the case scripts.
func TestPublicCases(t *testing.T) {
	cases.Run(t, cases.Crawl, func(t *testing.T, c cases.Case) error {
		switch c.InputType(t) {
		case "exchange":
			return playExchange(t, c)
		case "feeds":
			return playFeeds(t, c)
		default:
			return errors.New("no player for this input")
		}
	})
}

// playLimit is the size limit of feeds that players set, in bytes.
const playLimit = 2 << 20

// desktop is a crawler of feeds as cmd/vesti wires it, in a scripted world.
type desktop struct {
	*crawl.Crawler
	world   *crawltest.World
	log     *badgerlog.Log
	clock   atomic.Pointer[time.Time]
	sources []crawl.Source
	last    map[ledger.Slug]poll
}

// poll is what a case may ask of one source's run.
type poll struct {
	result  crawl.Result
	payload ledger.Payload
	before  ledger.SourceState
	after   ledger.SourceState
	took    time.Duration
}

func newDesktop(t *testing.T, now time.Time, timeout time.Duration, server *server, sources ...crawl.Source) *desktop {
	t.Helper()
	d := &desktop{sources: sources, last: map[ledger.Slug]poll{}, world: crawltest.New(t, server, crawltest.HTTP1)}
	d.clock.Store(&now)
	server.now = d.now
	client := fetch.New(d.world.Options(fetch.Options{
		Now: d.now, HostGap: -1, Timeout: timeout, MaxFeedBytes: playLimit,
	}))
	t.Cleanup(client.Close)
	pages := page.New(page.Options{Client: client})
	t.Cleanup(pages.Close)
	d.log = ledgertest.Open(t, ledgertest.Now(d.now))
	d.Crawler = crawl.New(crawl.Options{
		Log: d.log, Now: d.now, Rand: func() float64 { return 0.5 },
		Kinds: map[ledger.Crawler]crawl.Kind{ledger.CrawlerRSS: feed.New(feed.Options{Client: client, Pages: pages})},
	})
	d.reload(t)
	return d
}

func (d *desktop) now() time.Time { return *d.clock.Load() }

func (d *desktop) reload(t *testing.T) {
	t.Helper()
	if _, err := d.Reload(t.Context(), d.sources); err != nil {
		t.Fatal(err)
	}
}

func (d *desktop) state(t *testing.T, slug ledger.Slug) ledger.SourceState {
	t.Helper()
	s, err := d.log.Source(t.Context(), slug)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// run runs a source once.
func (d *desktop) run(t *testing.T, slug ledger.Slug) (poll, error) {
	t.Helper()
	p := poll{before: d.state(t, slug)}
	started := time.Now()
	sum, err := d.RunOnce(t.Context(), crawl.Selection{Slugs: []ledger.Slug{slug}}, crawl.Once{})
	if err != nil {
		return p, err
	}
	p.took, p.result, p.after = time.Since(started), sum.Results[0], d.state(t, slug)
	events, err := d.log.SourceEvents(t.Context(), slug, 1)
	if err != nil || len(events) == 0 {
		t.Fatalf("no record of the run: %v", err)
	}
	p.payload = events[0].Payload
	d.last[slug] = p
	return p, nil
}

// posts returns all posts, the oldest first.
func (d *desktop) posts(t *testing.T) []ledger.Post {
	t.Helper()
	events, err := d.log.Read(t.Context(), 0, 100_000)
	if err != nil {
		t.Fatal(err)
	}
	var posts []ledger.Post
	for _, e := range events {
		if e.Type != ledger.TypePostFetched {
			continue
		}
		p, err := d.log.Post(t.Context(), e.Post)
		if err != nil {
			t.Fatal(err)
		}
		posts = append(posts, p)
	}
	return posts
}

func caseSource(slug ledger.Slug, url string) crawl.Source {
	s := feedSource(slug, ledger.P1)
	s.FeedURL = url
	return s
}

// exchange is an exchange.json.
type exchange struct {
	Now         time.Time                  `json:"now"`
	SourceURL   string                     `json:"source_url"`
	MoreSources []json.RawMessage          `json:"more_sources"`
	DNS         map[string]json.RawMessage `json:"dns"`
	Limit       int                        `json:"limit"`
	Steps       []step                     `json:"steps"`
}

// The slug of a case's first source.
const caseSlug = ledger.Slug("source")

func (x exchange) sources() ([]crawl.Source, error) {
	sources := []crawl.Source{caseSource(caseSlug, x.SourceURL)}
	for i, raw := range x.MoreSources {
		var url string
		if json.Unmarshal(raw, &url) != nil {
			var object struct {
				URL       string `json:"url"`
				SourceURL string `json:"source_url"`
			}
			if err := json.Unmarshal(raw, &object); err != nil {
				return nil, fmt.Errorf("more_sources: %w", err)
			}
			url = object.URL + object.SourceURL
		}
		sources = append(sources, caseSource(ledger.Slug(fmt.Sprintf("source%d", i+2)), url))
	}
	for i := range sources {
		if x.Limit > 0 {
			sources[i].MaxItems = x.Limit
		}
		if !x.hasPages(sources) {
			sources[i].FullText = crawl.FullTextFalse
		}
	}
	return sources, nil
}

// hasPages reports whether the script has answers for article pages: for what
// is neither a feed nor where one redirects to. Without any, none is asked for.
func (x exchange) hasPages(sources []crawl.Source) bool {
	feeds := map[string]bool{}
	for _, s := range sources {
		feeds[s.FeedURL] = true
	}
	for _, s := range x.Steps {
		if !feeds[s.Request.URL] {
			return true
		}
		if to := s.Response.Headers["Location"]; to != "" {
			feeds[to] = true
		}
	}
	return false
}

// timeout is short where the script has a server that would use it up.
func (x exchange) timeout() time.Duration {
	for _, s := range x.Steps {
		if s.Response.Drip != nil || s.Response.Hang != "" {
			return time.Second
		}
	}
	return 20 * time.Second
}

// script puts the case's answers into the world's DNS: a list of addresses, or
// named lists that are given one after the other.
func (x exchange) script(w *crawltest.World) error {
	for host, raw := range x.DNS {
		var one []netip.Addr
		if json.Unmarshal(raw, &one) == nil {
			w.SetDNS(host, one)
			continue
		}
		var named map[string][]netip.Addr
		if err := json.Unmarshal(raw, &named); err != nil {
			return fmt.Errorf("dns of %s: %w", host, err)
		}
		var answers [][]netip.Addr
		for _, name := range []string{"first_lookup", "second_lookup", "mixed"} {
			if a, ok := named[name]; ok {
				answers = append(answers, a)
			}
		}
		w.SetDNS(host, answers...)
	}
	return nil
}

// offset reads a step's time: "+1h", "+8d".
func offset(s string) (time.Duration, error) {
	s = strings.TrimPrefix(s, "+")
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.Atoi(days)
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(s)
}

func playExchange(t *testing.T, c cases.Case) error {
	var in struct{ File string }
	c.Decode(t, c.Input, &in)
	var x exchange
	c.Decode(t, c.File(t, in.File), &x)
	var e expectations
	c.Decode(t, c.Expect, &e)
	sources, err := x.sources()
	if err != nil {
		return err
	}
	s := &server{t: t, c: c}
	healthy := caseSource("healthy", "https://healthy.example/feed")
	if e.OtherSourcesUnaffected {
		sources = append(sources, healthy)
	}
	d := newDesktop(t, x.Now, x.timeout(), s, sources...)
	if err := x.script(d.world); err != nil {
		return err
	}
	p := &play{t: t, desktop: d, server: s, expect: e, timeout: x.timeout(), rss: residentMB()}
	for n := range lastPoll(x.Steps) {
		if err := p.poll(n+1, x); err != nil {
			return fmt.Errorf("poll %d: %w", n+1, err)
		}
	}
	return errors.Join(p.final()...)
}

func lastPoll(steps []step) int {
	last := 0
	for _, s := range steps {
		last = max(last, s.Poll)
	}
	return last
}

// play is one exchange under way.
type play struct {
	*desktop
	t        *testing.T
	server   *server
	expect   expectations
	timeout  time.Duration
	polls    []poll // of the case's source
	rss      int64  // resident memory before, MB
	captured int64  // bytes read before the poll
}

// poll lets the case's sources run once, at the time of the poll's steps, and
// checks what the case expects of it.
func (p *play) poll(n int, x exchange) error {
	var steps []step
	at := x.Now
	for _, s := range x.Steps {
		if s.Poll != n {
			continue
		}
		steps = append(steps, s)
		if s.At != "" {
			d, err := offset(s.At)
			if err != nil {
				return fmt.Errorf("at: %w", err)
			}
			at = x.Now.Add(d)
		}
	}
	if at.Before(p.now()) {
		at = p.now()
	}
	p.clock.Store(&at)
	if agent := p.expect.ConfigBetweenPolls["user_agent_for_source"]; n == 2 && agent != "" {
		p.sources[0].UserAgent = agent
		p.reload(p.t)
	}
	failedBefore := len(p.polls) > 0 && p.polls[len(p.polls)-1].result.Outcome == crawl.OutcomeFailed
	p.server.expect(steps, failedBefore)
	p.captured = p.world.BytesRead()
	for _, src := range p.sources {
		got, err := p.run(p.t, src.Slug)
		if err != nil {
			return err
		}
		if src.Slug == caseSlug {
			p.polls = append(p.polls, got)
		} else if got.result.Outcome == crawl.OutcomeFailed {
			return fmt.Errorf("source %s: %s", src.Slug, got.result.Error)
		}
	}
	if err := p.server.verdict(); err != nil {
		return err
	}
	return p.checkPoll(n, p.polls[len(p.polls)-1])
}
