package telegram_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/telegram"
	"vesti.nixg.ru/crawl/telegram/telegramtest"
	"vesti.nixg.ru/ledger"
)

func TestFirstRunIsBounded(t *testing.T) {
	w := newWorld(t)
	w.server.Set("port_example", channel(1, 250))
	rep := w.mustCrawl()
	if rep.New != 100 || rep.Cursor != "2000000001/250" || rep.Title != "Порт" {
		t.Errorf("report %+v, want 100 new to 250", rep)
	}
	w.wantIDs(span(151, 250))
	if got := len(w.server.Requests()); got != 5 {
		t.Errorf("%d pages fetched, want 5", got)
	}
	p := w.post(151)
	if p.Item.Lane != ledger.LaneBackfill || p.Item.TextFrom != ledger.TextPreview || p.Item.ItemID != "151" {
		t.Errorf("item %+v", p.Item)
	}
	if p.Item.URL != "https://t.me/Port_Example/151" || p.Item.CanonicalURL != "https://t.me/port_example/151" {
		t.Errorf("URL %q, canonical %q", p.Item.URL, p.Item.CanonicalURL)
	}
}

func TestWalkBackToLastSeen(t *testing.T) {
	w := newWorld(t)
	w.server.Set("port_example", channel(1, 30))
	w.mustCrawl()
	// 50 more, with a hole of deleted ones in between: no page holds them all.
	c := channel(1, 110)
	c.Messages = slices.DeleteFunc(c.Messages, func(m telegram.Message) bool { return m.ID > 40 && m.ID <= 70 })
	w.server.Set("port_example", c)
	w.server.Requests()
	rep := w.mustCrawl()
	if rep.New != 50 {
		t.Errorf("%d new, want 50", rep.New)
	}
	w.wantIDs(append(span(1, 40), span(71, 110)...))
	if w.post(110).Item.Lane != ledger.LaneP0 {
		t.Errorf("news of a known channel in lane %s", w.post(110).Item.Lane)
	}
	w.server.Requests()
	if rep = w.mustCrawl(); rep.New+rep.Revised+rep.SeenAgain != 0 || rep.Cursor != "2000000001/110" {
		t.Errorf("quiet run: %+v", rep)
	}
	if got := w.server.Requests(); len(got) != 1 {
		t.Errorf("quiet run asked %v, want one page", got)
	}
}

// A crash after any number of pages leaves no hole: pages go oldest first.
func TestStoppedBetweenPages(t *testing.T) {
	for stop := range 5 {
		t.Run(fmt.Sprint(stop), func(t *testing.T) {
			w := newWorld(t)
			w.server.Set("port_example", channel(1, 10))
			w.mustCrawl()
			w.server.Set("port_example", channel(1, 100))
			w.sink.failAfter(stop)
			if _, err := w.crawl(); !errors.Is(err, errStopped) {
				t.Fatalf("error %v", err)
			}
			got := w.ids()
			if want := span(1, len(got)); !slices.Equal(got, want) {
				t.Fatalf("after a stop: %v, want no hole", got)
			}
			w.server.Set("port_example", channel(1, 140)) // it goes on meanwhile
			w.sink.failAfter(-1)
			w.mustCrawl()
			w.wantIDs(span(1, 140))
		})
	}
}

// What was missed is too much to hold: it is read from its old end, and a run
// that is cut short has done what it has done.
func TestLongGap(t *testing.T) {
	w := newWorld(t)
	w.server.Set("port_example", channel(1, 10))
	w.mustCrawl()
	c := channel(1, 2000)
	c.Messages = slices.DeleteFunc(c.Messages, func(m telegram.Message) bool { return m.ID > 500 && m.ID <= 1400 })
	album := &c.Messages[199]
	album.Members, album.Media = []int{200, 201, 202}, []string{telegram.MediaPhoto, telegram.MediaPhoto, telegram.MediaPhoto}
	c.Messages = slices.Delete(c.Messages, 200, 202)
	w.server.Set("port_example", c)
	w.sink.failAfter(20)
	if rep, err := w.crawl(); !errors.Is(err, errStopped) || rep.New < 300 {
		t.Fatalf("report %+v, error %v", rep, err)
	}
	w.sink.failAfter(-1)
	w.server.Requests()
	w.mustCrawl()
	w.wantIDs(slices.Concat(span(1, 200), span(203, 500), span(1401, 2000)))
	if got := len(w.server.Requests()); got > 60 {
		t.Errorf("%d requests for the rest of a gap of 1500 ids, 700 of them there", got)
	}
}

func TestStoppedFirstRun(t *testing.T) {
	w := newWorld(t)
	w.server.Set("port_example", channel(1, 200))
	w.sink.failAfter(2)
	if _, err := w.crawl(); !errors.Is(err, errStopped) {
		t.Fatalf("error %v", err)
	}
	w.server.Set("port_example", channel(1, 280))
	w.sink.failAfter(-1)
	w.mustCrawl()
	w.wantIDs(span(101, 280)) // from where the first run began, not the newest 100
}

func TestEmptyHistory(t *testing.T) {
	w := newWorld(t)
	w.server.Set("port_example", channel(1, 0))
	if rep := w.mustCrawl(); !rep.Empty || rep.New != 0 {
		t.Errorf("report %+v", rep)
	}
	w.server.Set("port_example", channel(1, 3))
	if rep := w.mustCrawl(); rep.Empty || rep.New != 3 {
		t.Errorf("report %+v", rep)
	}
}

func TestServiceMessagesMoveOn(t *testing.T) {
	w := newWorld(t)
	c := channel(1, 5)
	c.Messages[4].Service = true
	c.Messages[1].Text, c.Messages[1].Media = "", []string{telegram.MediaPhoto}
	w.server.Set("port_example", c)
	rep := w.mustCrawl()
	if rep.New != 4 || rep.Cursor != "2000000001/5" {
		t.Errorf("report %+v, want 4 new to 5", rep)
	}
	if it := w.post(2).Item; it.Text != "" || !slices.Equal(it.Media, []string{telegram.MediaPhoto}) {
		t.Errorf("picture without caption: %+v", it)
	}
}

func TestTypedFailures(t *testing.T) {
	landing := func(extra string) string {
		return `<div class="tgme_page"><div class="tgme_page_title">X</div><div class="tgme_page_extra">` + extra + `</div></div>`
	}
	for name, tt := range map[string]struct {
		set   func(s *telegramtest.Preview)
		cause ledger.Cause
		says  string
	}{
		"no preview": {func(s *telegramtest.Preview) {
			s.Set("port_example", telegramtest.Channel{Title: "X", NoPreview: true})
		}, ledger.CauseNoPreview, "vesti telegram login"},
		"group":    {func(s *telegramtest.Preview) { s.Land("port_example", landing("97 957 members, 4 138 online")) }, ledger.CauseNoPreview, "group"},
		"person":   {func(s *telegramtest.Preview) { s.Land("port_example", landing("@port_example")) }, ledger.CauseNotFeed, "person or a bot"},
		"vanished": {func(s *telegramtest.Preview) { s.Land("port_example", telegramtest.VacantPage) }, ledger.CauseVanished, "nobody has the name"},
		"foreign":  {func(s *telegramtest.Preview) { s.Land("port_example", "<h1>Access denied</h1>") }, ledger.CauseNotFeed, "neither"},
		"500":      {func(s *telegramtest.Preview) { s.Fail(func(*http.Request) int { return 500 }) }, ledger.CauseHTTP, "500"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tt.set(w.server)
			_, err := w.crawl()
			var failed *crawl.Error
			if !errors.As(err, &failed) || failed.Cause != tt.cause || !strings.Contains(failed.Message, tt.says) {
				t.Errorf("error %v, want cause %s that says %q", err, tt.cause, tt.says)
			}
		})
	}
}

func TestTooManyRequestsIsAWait(t *testing.T) {
	w := newWorld(t)
	w.server.Fail(func(*http.Request) int { return http.StatusTooManyRequests })
	_, err := w.crawl()
	var wait *crawl.Throttled
	if !errors.As(err, &wait) || wait.Until.IsZero() {
		t.Errorf("error %v, want a wait", err)
	}
}

func TestNameThatLeadsToAnotherChannel(t *testing.T) {
	w := newWorld(t)
	w.server.Set("port_example", channel(1, 5))
	w.mustCrawl()
	other := channel(1, 9)
	other.ID, other.Title = 2000000002, "Казино"
	w.server.Set("port_example", other)
	for range 2 {
		_, err := w.crawl()
		var failed *crawl.Error
		if !errors.As(err, &failed) || failed.Cause != ledger.CauseRenamed || !strings.Contains(failed.Message, "Казино") {
			t.Fatalf("error %v, want cause renamed", err)
		}
	}
	w.wantIDs(span(1, 5))
	if was, err := w.kind.Forget(t.Context(), "port_example"); err != nil || !was {
		t.Fatalf("forget: %v, %v", was, err)
	}
	if rep := w.mustCrawl(); rep.New+rep.SeenAgain != 9 || rep.Cursor != "2000000002/9" {
		t.Errorf("after it was forgotten: %+v", rep)
	}
}

func TestChannelReadUnderAnotherName(t *testing.T) {
	w := newWorld(t)
	w.server.Set("port_example", channel(1, 5))
	w.mustCrawl()
	w.server.Set("port_new_name", channel(1, 150))
	w.source.Channel = "port_new_name"
	if rep := w.mustCrawl(); rep.New != 145 {
		t.Errorf("%d new, want the 145 that follow what was read under the old name", rep.New)
	}
	w.wantIDs(span(1, 150))
}

// Blocks without an id are keyed by the channel's name until a page tells it;
// what was read by then is not read again.
func TestPageWithoutChannelID(t *testing.T) {
	w := newWorld(t)
	c := channel(1, 5)
	c.NoID = true
	w.server.Set("port_example", c)
	if rep := w.mustCrawl(); rep.New != 5 || rep.Cursor != "@port_example/5" {
		t.Errorf("report %+v", rep)
	}
	w.server.Set("port_example", channel(1, 8))
	if rep := w.mustCrawl(); rep.New != 3 || rep.Cursor != "2000000001/8" {
		t.Errorf("report %+v, want 3 new", rep)
	}
	w.server.Set("port_example", func() telegramtest.Channel { c := channel(1, 9); c.NoID = true; return c }())
	if rep := w.mustCrawl(); rep.New != 1 || rep.Cursor != "2000000001/9" {
		t.Errorf("report %+v, want 1 new under the known id", rep)
	}
}

func TestDryRunMovesNothing(t *testing.T) {
	w := newWorld(t)
	w.server.Set("port_example", channel(1, 5))
	w.sink.dry = true
	if rep := w.mustCrawl(); rep.New != 5 || rep.Cursor != "" {
		t.Errorf("report %+v", rep)
	}
	w.sink.dry = false
	if rep := w.mustCrawl(); rep.New != 5 {
		t.Errorf("after a dry run: %+v, want 5 new", rep)
	}
}

func TestRulesOfTheSource(t *testing.T) {
	w := newWorld(t)
	w.source.Block = []string{"сообщение 3"}
	w.server.Set("port_example", channel(1, 5))
	if rep := w.mustCrawl(); rep.New != 4 || rep.Dropped != 1 {
		t.Errorf("report %+v", rep)
	}
	w.wantIDs([]int{1, 2, 4, 5})
}

func TestOneRequestAtATimeOverAllChannels(t *testing.T) {
	const pace = 40 * time.Millisecond
	w := newWorld(t, func(o *telegram.Options) { o.PreviewPace = pace })
	var wg sync.WaitGroup
	for i := range 4 {
		name := fmt.Sprintf("channel_%d", i)
		c := channel(1, 30)
		c.ID, c.Name = port+int64(i), name
		w.server.Set(name, c)
		src := w.source
		src.Slug, src.Channel = ledger.Slug(fmt.Sprint("source", i)), name
		wg.Go(func() {
			if _, err := w.kind.Crawl(t.Context(), crawl.Job{Source: src, Now: noon, Sink: w.sink}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	requests := w.server.Requests()
	if len(requests) < 8 {
		t.Fatalf("%d requests", len(requests))
	}
	if took := requests[len(requests)-1].At.Sub(requests[0].At); took < pace*time.Duration(len(requests)-2) {
		t.Errorf("%d requests within %s, want one each %s", len(requests), took, pace)
	}
}
