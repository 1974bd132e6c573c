package httpui_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"vesti.nixg.ru/classify"
	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/httpui"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/ledgertest/cases"
	"vesti.nixg.ru/projections"
)

func TestQueueCards(t *testing.T) {
	d := newDesk(t, demoSources())
	for i := range 12 {
		d.add(ledger.Item{Title: fmt.Sprintf("Post %d", i), Text: fmt.Sprintf("Post number %d with enough letters.", i)})
	}
	d.claim()
	d.claim()
	page := d.get("/crawlers")
	wantIn(t, page, `<dd id="queue-pending">10</dd>`, `<dd id="queue-processing">2</dd>`, `<dd id="queue-done">0</dd>`, `<dd id="queue-parked">0</dd>`)
	d.clock.advance(90 * time.Second) // less than a lease
	d.judge(judged("tech", .5, .5, ""))
	page = d.get("/crawlers")
	wantIn(t, page, `<dd id="queue-pending">9</dd>`, `<dd id="queue-done">1</dd>`, `<dd id="queue-oldest">1 min</dd>`)
	d.clock.advance(24 * time.Hour)
	wantIn(t, d.get("/crawlers"), `<dd id="queue-done">0</dd>`)
}

func TestSourceTable(t *testing.T) {
	d := newDesk(t, demoSources())
	d.fill()
	page := d.get("/crawlers")
	row := rowOf(t, page, "lwn")
	wantIn(t, row, "Kernel Weekly", "<code>lwn</code>", "feed", "alive", "P0", "11 min ago", "in 4 min", "HTTP 200", "3 / 1 / 2",
		"&#34;5f1c-62a0b&#34;", "Mon, 02 Mar 2026 05:50:00 GMT", "Mon, 02 Mar 2026 05:49:58 GMT")
	wantIn(t, rowOf(t, page, "broken"), "dead", "404 Not Found", ">7<", "Reset")
	wantIn(t, rowOf(t, page, "busy"), "throttled")
	wantIn(t, rowOf(t, page, "chips"), "Telegram")
	wantIn(t, rowOf(t, page, "attic"), "disabled", "never")
	wantIn(t, rowOf(t, page, "fresh"), "new", "due now")

	page = d.get("/crawlers?show=trouble")
	wantIn(t, page, `id="source-broken"`, `id="source-flaky"`)
	wantNotIn(t, page, `id="source-lwn"`)
	wantNotIn(t, d.get("/crawlers?show=dead"), `id="source-flaky"`)
	wantIn(t, d.get("/crawlers?show=nonsense"), "No source is in this state.")

	page = d.get("/crawlers/broken")
	wantIn(t, page, "7 failed runs in a row", "https://broken.example.org/rss.xml", "7 runs, 7 failed")
	if n := strings.Count(page, ">failed</span>"); n != 7 {
		t.Errorf("%d failed runs listed, want 7", n)
	}
	if res, _ := d.getAs(d.client, "/crawlers/nobody"); res.StatusCode != http.StatusNotFound {
		t.Errorf("unknown source: %s", res.Status)
	}
	// A source that sources.yaml no longer names keeps its page.
	d.register(demoSources()[1:])
	wantIn(t, d.get("/crawlers?show=removed"), `id="source-lwn"`, "removed")
	wantIn(t, d.get("/crawlers/lwn"), "Kernel Weekly")
}

// rowOf cuts a source's row out of the table.
func rowOf(t *testing.T, page, slug string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, fmt.Sprintf(`<tr id="source-%s">`, slug))
	if !ok {
		t.Fatalf("no row of %s", slug)
	}
	row, _, _ := strings.Cut(rest, "</tr>")
	return row
}

func TestRunNow(t *testing.T) {
	d := newDesk(t, demoSources())
	wantIn(t, d.post("/crawlers/run", url.Values{"next": {"/crawlers"}}), "Crawling has started.")
	wantIn(t, d.post("/crawlers/run", url.Values{"slug": {"lwn"}, "next": {"/crawlers/lwn"}}), "<h1><bdi>Kernel Weekly</bdi></h1>", "Crawling has started.")
	wantIn(t, d.post("/crawlers/work", url.Values{"next": {"/crawlers"}}), "The workers are looking at the queue.")
	want := []string{"crawl", "crawl lwn", "work"}
	if got := d.commands(); !reflect.DeepEqual(got, want) {
		t.Errorf("asked for %q, want %q", got, want)
	}
	if res, _ := d.postAs(d.client, "/crawlers/run", url.Values{"slug": {"nobody"}}); res.StatusCode != http.StatusNotFound {
		t.Errorf("unknown source: %s", res.Status)
	}
	if got := d.commands(); len(got) != 0 {
		t.Errorf("an unknown source made it %q", got)
	}
}

func TestResetDead(t *testing.T) {
	d := newDesk(t, demoSources())
	d.fill()
	page := d.post("/crawlers/reset", url.Values{"slug": {"broken"}, "next": {"/crawlers"}})
	row := rowOf(t, page, "broken")
	wantIn(t, row, "alive", ">0<")
	wantNotIn(t, row, "404 Not Found", "Reset")
	wantIn(t, page, "Reset; the sources are crawled again.")
	state := d.options.Sources.State("broken")
	if state.Status != ledger.SourceAlive || state.ErrorCount != 0 || state.LastError != "" {
		t.Errorf("state %+v", state)
	}
	wantIn(t, d.post("/crawlers/reset", url.Values{"next": {"/crawlers"}}), "No source is dead.")
}

func TestAwayModelAndLaggingViewsAreShown(t *testing.T) {
	d := newDesk(t, demoSources())
	d.mu.Lock()
	d.llm = classify.BreakerStatus{Open: true, Since: d.clock.Now(), Reason: "connection refused by 127.0.0.1:11434", Retry: d.clock.Now().Add(2 * time.Minute)}
	d.mu.Unlock()
	wantIn(t, d.get("/crawlers"), "The language model is away: connection refused by 127.0.0.1:11434.", "in 2 min")
	d.mu.Lock()
	d.llm.Reason = `model "qwen3" is not installed: ollama pull qwen3`
	d.mu.Unlock()
	d.rebuild(func(o *httpui.Options) {
		o.Projections = func() []projections.Status {
			return []projections.Status{{Name: "queue", Error: "apply events 5 to 9: not enough free disk space"}}
		}
	})
	d.client = newClient(t)
	d.logIn(d.client)
	page := d.post("/preferences", map[string][]string{"lang": {"ru"}, "next": {"/crawlers"}})
	wantIn(t, page, "Языковая модель недоступна: модель &#34;qwen3&#34; не установлена: ollama pull qwen3.",
		"Представление «очередь» остановилось: применение событий с 5 по 9: не хватает места на диске")
}

func TestTelegramAccountInNeedIsShown(t *testing.T) {
	d := newDesk(t, nil)
	for state, want := range map[string]bool{"ready": false, "revoked": true, "throttled": true, "no_session": true} {
		d.rebuild(func(o *httpui.Options) {
			o.Telegram = func(context.Context) (string, string) { return state, "the way out of it" }
		})
		d.client = newClient(t)
		d.logIn(d.client)
		if got := strings.Contains(d.get("/crawlers"), "the way out of it"); got != want {
			t.Errorf("%s: shown %t, want %t", state, got, want)
		}
	}
}

// Each state that a Telegram channel can be in is one glance away.
func TestStatesOfChannels(t *testing.T) {
	d := newDesk(t, nil)
	now := d.clock.Now()
	run := ledger.Run{Started: now.Add(-time.Minute), Next: now.Add(time.Hour)}
	cut := run
	cut.Truncated = true
	failed := func(cause ledger.Cause) ledger.Payload {
		return ledger.SourceFailed{Run: run, Cause: cause, Message: "what to do"}
	}
	states := map[ledger.Slug]struct {
		payloads []ledger.Payload
		shows    []string
	}{
		"login":      {[]ledger.Payload{failed(ledger.CauseLogin)}, []string{"failing", "A login to Telegram is needed.", "what to do"}},
		"private":    {[]ledger.Payload{failed(ledger.CausePrivate)}, []string{"failing", "private channel"}},
		"no-preview": {[]ledger.Payload{failed(ledger.CauseNoPreview)}, []string{"failing", "no public preview"}},
		"vanished":   {[]ledger.Payload{failed(ledger.CauseVanished)}, []string{"failing", "vanished"}},
		"taken":      {[]ledger.Payload{failed(ledger.CauseRenamed)}, []string{"failing", "name leads to another channel"}},
		"renamed": {[]ledger.Payload{
			ledger.SourceMoved{From: "old_name", URL: "https://t.me/new_name"}, ledger.SourceCrawled{Run: run},
		}, []string{"alive", "https://t.me/new_name"}},
		"throttled": {[]ledger.Payload{
			ledger.SourceThrottled{Run: run, Until: now.Add(time.Hour), Message: "Telegram asked this account to wait"},
		}, []string{"throttled", "in 1 h"}},
		"cut":    {[]ledger.Payload{ledger.SourceCrawled{Run: cut}, ledger.SourceCrawled{Run: run, NotModified: true}}, []string{"alive", ">cut<"}},
		"mended": {[]ledger.Payload{ledger.SourceCrawled{Run: cut}, ledger.SourceCrawled{Run: run}}, []string{"alive"}},
	}
	var registry []crawl.Source
	for slug, s := range states {
		for _, p := range s.payloads {
			if err := d.record(t.Context(), ledger.NewEvent(ledger.ActorCrawler, 0, slug, p)); err != nil {
				t.Fatal(err)
			}
		}
		registry = append(registry, crawl.Source{Slug: slug, Channel: "old_name", Crawler: ledger.CrawlerTelegram, Enabled: true})
	}
	d.register(registry)
	page := d.get("/crawlers")
	for slug, s := range states {
		wantIn(t, rowOf(t, page, string(slug)), s.shows...)
	}
	if strings.Contains(rowOf(t, page, "mended"), ">cut<") {
		t.Error("a feed that was read whole again is still said to be cut")
	}
	_, page = d.getAs(d.client, "/crawlers/login", "Accept-Language", "ru")
	if n := strings.Count(page, `<strong>Нужен вход в Telegram.</strong> <span class="soft" lang="en" dir="auto">what to do</span>`); n != 2 {
		t.Errorf("the page in Russian says %d times why the source fails, want it above and in the run", n)
	}
	wantIn(t, d.get("/crawlers/cut"), "was not read whole", ">cut<")
}

// TestPublicCases runs the cases about what pages show.
func TestPublicCases(t *testing.T) {
	cases.Run(t, cases.HTTPUI, func(t *testing.T, c cases.Case) error {
		if !strings.HasPrefix(c.ID, "231-") {
			t.Skip("no such scenario is known here")
		}
		return errorVisible(t)
	})
}

// errorVisible: one source fails with too_large three times, another is
// healthy; the reason is one glance away.
func errorVisible(t *testing.T) error {
	d := newDesk(t, []crawl.Source{
		{Slug: "big", Name: "Big Feed", FeedURL: "https://big.example.org/rss", Crawler: ledger.CrawlerRSS, Enabled: true},
		{Slug: "fine", Name: "Fine Feed", FeedURL: "https://fine.example.org/rss", Crawler: ledger.CrawlerRSS, Enabled: true},
	})
	now := d.clock.Now()
	run := func(ago time.Duration) ledger.Run {
		return ledger.Run{Trigger: ledger.TriggerSchedule, Started: now.Add(-ago), HTTPStatus: 200, Next: now.Add(10 * time.Minute), Fetched: 9, New: 4, SeenAgain: 2, Dropped: 1}
	}
	events := []ledger.Event{
		ledger.NewEvent(ledger.ActorCrawler, 0, "big", ledger.SourceCrawled{Run: run(5 * time.Hour)}),
		ledger.NewEvent(ledger.ActorCrawler, 0, "fine", ledger.SourceCrawled{Run: run(5 * time.Minute)}),
	}
	for i := range 3 {
		failed := ledger.Run{Started: now.Add(-time.Duration(40-15*i) * time.Minute), HTTPStatus: 200, Next: now.Add(5 * time.Minute)}
		events = append(events, ledger.NewEvent(ledger.ActorCrawler, 0, "big", ledger.SourceFailed{
			Run: failed, Cause: ledger.CauseTooLarge, Message: "big.example.org sent more than 16 MiB",
		}))
	}
	if err := d.record(t.Context(), events...); err != nil {
		return err
	}
	d.register([]crawl.Source{d.crawler.Sources()[0], d.crawler.Sources()[1]})
	page := d.get("/crawlers")
	shows := map[string]string{
		"state": "failing", "last error text": "big.example.org sent more than 16 MiB", "cause": "too large", "HTTP status": "HTTP 200",
		"time of last success": "5 h ago", "time of next poll": "in 5 min", "errors in a row": ">3<", "counts": "4 / 2 / 1",
	}
	row := rowOf(t, page, "big")
	for what, text := range shows {
		if !strings.Contains(row, text) {
			return fmt.Errorf("the row does not show the %s (%q):\n%s", what, text, row)
		}
	}
	if fine := rowOf(t, page, "fine"); strings.Contains(fine, "more than") || !strings.Contains(fine, "alive") || !strings.Contains(fine, ">0<") {
		return fmt.Errorf("the healthy source shows an error:\n%s", fine)
	}
	return nil
}
