package httpui_test

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"vesti.nixg.ru/classify"
	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/httpui"
	"vesti.nixg.ru/httpui/auth"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
	"vesti.nixg.ru/ledger/ledgertest"
	"vesti.nixg.ru/projections"
	"vesti.nixg.ru/projections/posts"
	"vesti.nixg.ru/projections/queue"
	"vesti.nixg.ru/projections/search"
	"vesti.nixg.ru/projections/sources"
)

// desk is a whole vesti without its crawlers and workers: a real store, real
// projections, and the web interface on a loopback server. The test puts in
// what crawlers and workers would.
type desk struct {
	t        *testing.T
	log      *badgerlog.Log
	runner   *projections.Runner
	crawler  *crawl.Crawler
	server   *httpui.Server
	http     *httptest.Server
	client   *http.Client // logged in, follows redirects
	password string
	registry *prometheus.Registry
	clock    *clock
	options  httpui.Options

	mu    sync.Mutex
	asked []string // commands that leave no trace in the ledger
	llm   classify.BreakerStatus
	ready error
}

// clock is a time that stands still until it is moved.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// noKind stands where a test has nothing to crawl.
type noKind struct{}

func (noKind) Crawl(context.Context, crawl.Job) (crawl.Report, error) { return crawl.Report{}, nil }

// newDesk opens a desk at 09:00 in Moscow and logs in.
func newDesk(t *testing.T, registered []crawl.Source) *desk {
	t.Helper()
	zone := time.FixedZone("MSK", 3*3600)
	d := &desk{t: t, clock: &clock{now: time.Date(2026, 3, 2, 6, 0, 0, 0, time.UTC)}}
	d.log = ledgertest.Open(t, ledgertest.Now(d.clock.Now))
	queueView, sourceView, postView := queue.New(d.log.Store), sources.New(d.log.Store), posts.New(d.log.Store)
	index := search.New(search.Options{Dir: filepath.Join(t.TempDir(), "search"), Texts: d.log, Posts: postView, Zone: zone})
	var err error
	d.runner, err = projections.New(projections.Options{
		Log: d.log, Stores: d.log.Store, Projections: []projections.Projection{queueView, sourceView, postView, index},
	})
	if err != nil {
		t.Fatal(err)
	}
	run(t, d.runner.Run)
	d.register(registered)
	d.options = httpui.Options{
		Queue: queueView, Registry: d, Sources: sourceView, Search: index, Posts: d.log, Commands: d,
		LLM:         func() classify.BreakerStatus { d.mu.Lock(); defer d.mu.Unlock(); return d.llm },
		Projections: d.runner.Status, Ready: func() error { d.mu.Lock(); defer d.mu.Unlock(); return d.ready },
		Store: d.log.Store("httpui"), Now: d.clock.Now, Location: zone, Version: "test",
		PasswordCost: auth.Cost{Passes: 1, Memory: 64},
	}
	d.rebuild()
	if d.password, err = d.server.EnsurePassword(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.client = newClient(t)
	d.logIn(d.client)
	return d
}

// rebuild starts the web interface anew, with other options.
func (d *desk) rebuild(change ...func(*httpui.Options)) {
	d.t.Helper()
	o := d.options
	d.registry = prometheus.NewRegistry()
	o.Registerer, o.Gatherer = d.registry, d.registry
	for _, f := range change {
		f(&o)
	}
	var err error
	if d.server, err = httpui.New(o); err != nil {
		d.t.Fatal(err)
	}
	d.http = httptest.NewServer(d.server.Handler())
	d.t.Cleanup(d.http.Close)
}

// register makes a crawler of sources, which takes their states in. It crawls
// nothing.
func (d *desk) register(registered []crawl.Source) {
	d.t.Helper()
	d.crawler = crawl.New(crawl.Options{
		Log: d.log, Kinds: map[ledger.Crawler]crawl.Kind{ledger.CrawlerRSS: noKind{}, ledger.CrawlerTelegram: noKind{}}, Now: d.clock.Now,
	})
	if _, err := d.crawler.Reload(d.t.Context(), registered); err != nil {
		d.t.Fatal(err)
	}
}

// Status implements httpui.Registry.
func (d *desk) Status() []crawl.SourceView { return d.crawler.Status() }

// run runs f until the test ends, and waits for it.
func run(t *testing.T, f func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func newClient(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar, Timeout: 20 * time.Second}
}

func (d *desk) logIn(c *http.Client) {
	d.t.Helper()
	res, _ := d.postAs(c, "/login", url.Values{"password": {d.password}})
	if res.StatusCode != http.StatusOK || res.Request.URL.Path != "/" {
		d.t.Fatalf("login led to %s: %s", res.Request.URL, res.Status)
	}
}

// CrawlNow, WorkNow, ResetDead, Review and Requeue implement httpui.Commands.

func (d *desk) CrawlNow(_ context.Context, slugs ...ledger.Slug) error {
	d.note("crawl", slugs)
	return d.crawler.RunNow(slugs...)
}

func (d *desk) WorkNow(context.Context) error {
	d.note("work", nil)
	return nil
}

func (d *desk) ResetDead(ctx context.Context, slugs ...ledger.Slug) (int, error) {
	d.note("reset", slugs)
	if len(slugs) == 0 {
		for _, v := range d.crawler.Status() {
			if v.State.Status == ledger.SourceDead || v.State.Status == ledger.SourceGone {
				slugs = append(slugs, v.Source.Slug)
			}
		}
	}
	err := d.crawler.Reset(ctx, ledger.ActorEditor, slugs...)
	d.settle()
	return len(slugs), err
}

func (d *desk) Review(ctx context.Context, post ledger.PostNum, word ledger.PostReviewed) error {
	return d.record(ctx, ledger.NewEvent(ledger.ActorEditor, post, "", word))
}

func (d *desk) Requeue(ctx context.Context, post ledger.PostNum) error {
	return d.record(ctx, ledger.NewEvent(ledger.ActorEditor, post, "", ledger.PostReturned{Reason: ledger.ReturnEditor, Lane: ledger.LaneEditor}))
}

func (d *desk) record(ctx context.Context, events ...ledger.Event) error {
	if _, err := d.log.Record(ctx, events...); err != nil {
		return err
	}
	d.settle()
	return nil
}

func (d *desk) note(command string, slugs []ledger.Slug) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range slugs {
		command += " " + string(s)
	}
	d.asked = append(d.asked, command)
}

// commands returns what was asked for since the last call.
func (d *desk) commands() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	asked := d.asked
	d.asked = nil
	return asked
}

// settle waits until the views show all that is in the ledger.
func (d *desk) settle() {
	d.t.Helper()
	if err := d.runner.CatchUp(d.t.Context(), d.log.Head()); err != nil {
		d.t.Fatal(err)
	}
}

// add puts an item in, as a crawler would, and returns its post.
func (d *desk) add(it ledger.Item) ledger.Post {
	d.t.Helper()
	if it.Source == "" {
		it.Source = "lwn"
	}
	if it.Key == "" {
		it.Key = ledger.NewItemKey(it.Source, it.URL+it.Title)
	}
	appended, err := d.log.Append(d.t.Context(), []ledger.Item{it})
	if err != nil {
		d.t.Fatal(err)
	}
	post, err := d.log.Post(d.t.Context(), appended[0].Post)
	if err != nil {
		d.t.Fatal(err)
	}
	d.settle()
	return post
}

// judge claims the next post and completes it, as a worker would.
func (d *desk) judge(c ledger.Classification) ledger.PostNum {
	d.t.Helper()
	claim := d.claim()
	if err := d.log.Complete(d.t.Context(), claim, ledger.PostClassified{Classification: c, Revision: claim.Revision}); err != nil {
		d.t.Fatal(err)
	}
	d.settle()
	return claim.Post
}

func (d *desk) claim() ledger.Claim {
	d.t.Helper()
	claim, err := d.log.Claim(d.t.Context(), ledger.ClaimRequest{Worker: "worker/1", NoWait: true})
	if err != nil {
		d.t.Fatal(err)
	}
	return claim
}

// get asks for a page as the editor and returns it.
func (d *desk) get(path string) string {
	d.t.Helper()
	res, body := d.getAs(d.client, path)
	if res.StatusCode != http.StatusOK {
		d.t.Fatalf("GET %s: %s\n%s", path, res.Status, body)
	}
	return body
}

func (d *desk) getAs(c *http.Client, path string, headers ...string) (*http.Response, string) {
	d.t.Helper()
	return d.send(c, http.MethodGet, path, nil, headers...)
}

// post presses a button as the editor and returns the page it leads to.
func (d *desk) post(path string, form url.Values) string {
	d.t.Helper()
	res, body := d.postAs(d.client, path, form)
	if res.StatusCode != http.StatusOK {
		d.t.Fatalf("POST %s: %s\n%s", path, res.Status, body)
	}
	return body
}

func (d *desk) postAs(c *http.Client, path string, form url.Values, headers ...string) (*http.Response, string) {
	d.t.Helper()
	return d.send(c, http.MethodPost, path, strings.NewReader(form.Encode()),
		slices.Concat([]string{"Content-Type", "application/x-www-form-urlencoded"}, headers)...)
}

func (d *desk) send(c *http.Client, method, path string, body io.Reader, headers ...string) (*http.Response, string) {
	d.t.Helper()
	req, err := http.NewRequestWithContext(d.t.Context(), method, d.http.URL+path, body)
	if err != nil {
		d.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := c.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return res, string(b)
}

// wantIn fails the test unless the page holds each of the texts.
func wantIn(t *testing.T, page string, texts ...string) {
	t.Helper()
	missing := slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return strings.Contains(page, text) })
	if len(missing) > 0 {
		_, main, _ := strings.Cut(page, "<main")
		main, _, _ = strings.Cut(main, "</main>")
		t.Errorf("page does not hold %q\n%s", missing, main)
	}
}

func wantNotIn(t *testing.T, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(page, text) {
			t.Errorf("page holds %q", text)
		}
	}
}
