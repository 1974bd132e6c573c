package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"vesti.nixg.ru/classify"
	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/ledger"
)

// A hundred posts and eight workers: each post is classified, once. A second
// run does nothing.
func TestHundredPostsEightWorkers(t *testing.T) {
	d := newDesk(t)
	d.sources(oneSource(staticFeed(t, 100).URL))
	var crawled crawl.Summary
	d.json(exitDone, &crawled, "crawl", "--source", "one")
	if crawled.New != 100 {
		t.Fatalf("%d new posts", crawled.New)
	}
	var before statusResult
	d.json(exitDone, &before, "status")
	if before.Queue.Pending != 100 || before.Queue.DoneToday != 0 {
		t.Errorf("a crawl alone classified something: %+v", before.Queue)
	}
	var worked classify.Summary
	d.json(exitDone, &worked, "work", "--workers", "8", "--limit", "200")
	if worked.Classified != 100 || worked.Claimed != 100 {
		t.Errorf("first run: %+v", worked)
	}
	d.json(exitDone, &worked, "work", "--workers", "8", "--limit", "200")
	if worked.Claimed != 0 {
		t.Errorf("second run: %+v", worked)
	}
	inApp(t, d, func(ctx context.Context, a *App) {
		events, err := a.log.Read(ctx, 0, 10_000)
		if err != nil {
			t.Fatal(err)
		}
		decided := map[ledger.PostNum]int{}
		for _, e := range events {
			if e.Type == ledger.TypePostClassified {
				decided[e.Post]++
			}
		}
		for post, n := range decided {
			if n != 1 {
				t.Errorf("post %d was classified %d times", post, n)
			}
		}
		if len(decided) != 100 {
			t.Errorf("%d posts were classified", len(decided))
		}
	})
}

// Ten posts wait and two are in workers' hands: the page says so. A dead source
// with seven errors is alive after a reset, with none.
func TestCrawlersPage(t *testing.T) {
	d := newDesk(t)
	d.sources(oneSource(staticFeed(t, 12).URL))
	inApp(t, d, func(ctx context.Context, a *App) {
		if _, err := a.crawler.RunOnce(ctx, crawl.Selection{All: true}, crawl.Once{}); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			if _, err := a.log.Claim(ctx, ledger.ClaimRequest{Worker: fmt.Sprint(i), NoWait: true}); err != nil {
				t.Fatal(err)
			}
		}
		for range 7 {
			failed := ledger.SourceFailed{Cause: ledger.CauseConnect, Message: "connection refused by test"}
			if _, err := a.log.Record(ctx, ledger.NewEvent(ledger.ActorCrawler, 0, "one", failed)); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.catchUp(ctx); err != nil {
			t.Fatal(err)
		}
		p := newPages(t, a)
		page := p.get("/crawlers")
		for card, n := range map[string]int{"pending": 10, "processing": 2, "done": 0, "parked": 0} {
			if !strings.Contains(page, fmt.Sprintf(`id="queue-%s">%d<`, card, n)) {
				t.Errorf("the card %s does not say %d", card, n)
			}
		}
		if !strings.Contains(page, "dead") || !strings.Contains(page, "connection refused by test") {
			t.Error("the page does not show the dead source and its error")
		}
		p.post("/crawlers/reset", nil)
		state, err := a.log.Source(ctx, "one")
		if err != nil {
			t.Fatal(err)
		}
		if state.Status != ledger.SourceAlive || state.ErrorCount != 0 || state.LastError != "" {
			t.Errorf("after the reset: %s, %d errors, %q", state.Status, state.ErrorCount, state.LastError)
		}
		if page := p.get("/crawlers"); strings.Contains(page, "connection refused by test") {
			t.Error("the page still shows the error after the reset")
		}
	})
}

// inApp runs f in this process, on the desk's data folder.
func inApp(t *testing.T, d *desk, f func(context.Context, *App)) {
	t.Helper()
	cfg, err := loadConfig(configLayers{env: map[string]string{"VESTI_LEDGER_FREE_SPACE": "64MiB"}, flags: map[string]string{"data": d.data}, cwd: "/"})
	if err != nil {
		t.Fatal(err)
	}
	app, err := openApp(t.Context(), cfg, appOptions{logTo: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	err = app.run(t.Context(), func(ctx context.Context) error {
		f(ctx, app)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := app.Close(); err != nil {
		t.Error(err)
	}
}

// pages is an editor who is logged in.
type pages struct {
	t      *testing.T
	url    string
	client *http.Client
}

func newPages(t *testing.T, a *App) *pages {
	t.Helper()
	ui, err := a.newUI()
	if err != nil {
		t.Fatal(err)
	}
	password, err := ui.EnsurePassword(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(ui.Handler())
	t.Cleanup(srv.Close)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &pages{t: t, url: srv.URL, client: &http.Client{Jar: jar}}
	p.post("/login", url.Values{"password": {password}})
	return p
}

func (p *pages) get(path string) string {
	p.t.Helper()
	resp, err := p.client.Get(p.url + path)
	return p.read(resp, err)
}

func (p *pages) post(path string, form url.Values) string {
	p.t.Helper()
	resp, err := p.client.PostForm(p.url+path, form)
	return p.read(resp, err)
}

func (p *pages) read(resp *http.Response, err error) string {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		p.t.Fatalf("%s: %s, %v\n%s", resp.Request.URL, resp.Status, err, b)
	}
	return string(b)
}
