//go:build !notelegram

package mtproto_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/telegram/mtproto"
	"vesti.nixg.ru/ledger"
)

const (
	history  = "messages.getHistory"
	getByID  = "channels.getMessages"
	resolve  = "contacts.resolveUsername"
	pageSize = 100
)

func TestChannelIsReadToTheLastMessage(t *testing.T) {
	w := newWorld(t)
	c := portChannel(1, 250)
	want := span(1, 250)
	// Albums, one of them across the end of the first page of 100.
	for _, first := range []int{10, 97, 148, 200, 246} {
		for id := first; id < first+5; id++ {
			m := c.messages[id-1].(*tg.Message)
			m.GroupedID = int64(first)
			m.SetFlags()
			if id > first {
				m.Message = ""
				want = slices.DeleteFunc(want, func(i int) bool { return i == id })
			}
		}
	}
	w.server.add(c)
	rep := w.mustCrawl()
	if rep.New != 230 || rep.Entries != 230 || rep.Cursor != "2000000001/250" || rep.Title != "Порт" {
		t.Errorf("report %+v, want 230 new to 250", rep)
	}
	w.wantIDs(want)
	if p := w.post(97); p.Item.TextFrom != ledger.TextMessage || p.Item.URL != "https://t.me/Port_Example/97" || p.Item.Lane != ledger.LaneBackfill {
		t.Errorf("item %+v", p.Item)
	}

	for id := 251; id <= 257; id++ {
		w.server.set(func() { c.messages = append(c.messages, message(id)) })
	}
	w.server.on(nil)
	if rep = w.mustCrawl(); rep.New != 7 {
		t.Errorf("then %+v, want 7 new", rep)
	}
	if h, r := w.server.count(history), w.server.count(resolve); h != 1 || r != 0 {
		t.Errorf("%d calls for the history and %d look-ups of the name, want one and none", h, r)
	}
	w.remove(c, 220)
	if rep = w.mustCrawl(); rep.New+rep.Revised != 0 {
		t.Errorf("quiet run: %+v", rep)
	}
	if !w.post(220).State.Removed || w.post(219).State.Removed || w.post(246).State.Removed {
		t.Error("message 220 alone is deleted")
	}
	w.wantIDs(append(want, span(251, 257)...))
}

func TestFirstRunIsBounded(t *testing.T) {
	for _, tt := range []struct{ messages, backfill, first int }{
		{5, 100, 1}, {100, 100, 1}, {101, 100, 2}, {400, 100, 301}, {400, 250, 151}, {400, 1000, 1},
	} {
		t.Run(fmt.Sprintf("%d of %d", tt.backfill, tt.messages), func(t *testing.T) {
			w := newWorld(t)
			w.source.Backfill = tt.backfill
			w.server.add(portChannel(1, tt.messages))
			w.mustCrawl()
			w.wantIDs(span(tt.first, tt.messages))
		})
	}
}

func TestFirstRunBeginsWithAWholeAlbum(t *testing.T) {
	for _, backfill := range []int{50, 150} {
		w := newWorld(t)
		w.source.Backfill = backfill
		c := portChannel(1, 300)
		first := 300 - backfill - 3
		for id := first; id < first+6; id++ {
			m := c.messages[id-1].(*tg.Message)
			m.GroupedID = 7
			m.SetFlags()
		}
		w.server.add(c)
		w.mustCrawl()
		want := append([]int{first}, span(first+6, 300)...)
		w.wantIDs(want)
	}
}

func TestHiddenMessagesAreNoEnd(t *testing.T) {
	w := newWorld(t)
	c := w.server.add(portChannel(1, 1000))
	var want []int
	for id := 1; id <= 1000; id++ {
		if id%100 == 50 { // one in each page: pages of 99
			c.hidden[id] = true
			continue
		}
		want = append(want, id)
	}
	w.mustCrawl()
	w.wantIDs(want)
}

func TestLongHolesAreSteppedOver(t *testing.T) {
	w := newWorld(t)
	c := w.server.add(portChannel(1, 1006))
	var want []int
	for id := 1; id <= 1006; id++ {
		if id > 300 && id <= 550 { // hidden: they take places
			c.hidden[id] = true
			continue
		}
		if id > 700 && id <= 900 { // deleted: they take none
			continue
		}
		want = append(want, id)
	}
	w.remove(c, span(701, 900)...)
	w.mustCrawl()
	w.wantIDs(want)
}

func TestTypedFailures(t *testing.T) {
	for name, tt := range map[string]struct {
		set   func(w *world, c *channel)
		cause ledger.Cause
		says  string
	}{
		"name never was":                       {func(w *world, _ *channel) { w.source.Channel = "nobody_here" }, ledger.CauseVanished, "nobody_here"},
		"a person":                             {func(w *world, _ *channel) { w.source.Channel = "some_person" }, ledger.CauseNotFeed, "person"},
		"private":                              {func(w *world, c *channel) { c.err = tgerr.New(400, "CHANNEL_PRIVATE") }, ledger.CausePrivate, "port_example"},
		"private, as the documentation has it": {func(w *world, c *channel) { c.err = tgerr.New(406, "CHANNEL_PRIVATE") }, ledger.CausePrivate, "port_example"},
		"gone":                                 {func(w *world, c *channel) { c.err = tgerr.New(400, "CHANNEL_INVALID") }, ledger.CauseVanished, "port_example"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := w.server.add(portChannel(1, 5))
			w.server.set(func() { tt.set(w, c) })
			w.preview.Set("port_example", telegramChannel(w, false))
			_, err := w.crawl()
			w.wantCause(err, tt.cause)
			if !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %q does not mention %q", err, tt.says)
			}
			if st := w.status(); st.State != mtproto.StateReady {
				t.Errorf("one channel's trouble is not the account's: %+v", st)
			}
		})
	}
}

func (w *world) wantCause(err error, cause ledger.Cause) {
	w.t.Helper()
	var failed *crawl.Error
	if !errors.As(err, &failed) || failed.Cause != cause {
		w.t.Fatalf("error %v, want cause %s", err, cause)
	}
}

// telegramChannel is the world's channel as preview pages show it.
func telegramChannel(w *world, preview bool) telegramPage {
	return previewOf(w.server.channels[port], preview)
}

func TestRenamedChannel(t *testing.T) {
	w := newWorld(t)
	c := w.server.add(portChannel(1, 5))
	w.mustCrawl()
	w.server.rename(c, "New_Port", 0)
	w.server.set(func() { c.messages = append(c.messages, message(6)) })
	rep := w.mustCrawl()
	if rep.New != 1 || rep.MovedTo != "https://t.me/New_Port" {
		t.Errorf("report %+v: it is read on by its id, and the new name is told", rep)
	}
	if got := w.post(6).Item.URL; got != "https://t.me/New_Port/6" {
		t.Errorf("URL %q", got)
	}
	w.wantIDs(span(1, 6))
	w.server.on(nil)
	w.mustCrawl()
	if got := w.server.count(resolve); got != 0 {
		t.Errorf("the old name was looked up %d times within a day", got)
	}
}

func TestNameThatLeadsToAnotherChannel(t *testing.T) {
	w := newWorld(t)
	c := w.server.add(portChannel(1, 5))
	w.mustCrawl()
	w.server.add(&channel{id: 2000000009, hash: 5, title: "Казино"})
	w.server.rename(c, "New_Port", 2000000009)
	for range 3 {
		_, err := w.crawl()
		w.wantCause(err, ledger.CauseRenamed)
		if !strings.Contains(err.Error(), "Казино") {
			t.Errorf("error %q", err)
		}
	}
	if got := w.server.count(resolve); got != 2 {
		t.Errorf("the name was looked up %d times, want once before and once after", got)
	}
	w.wantIDs(span(1, 5))
	// The name comes back to its channel: a day later that is noticed.
	w.server.rename(c, "Port_Example", 0)
	w.pass(25 * time.Hour)
	w.mustCrawl()
}

// The ways give the same items: a change from one to the other makes no second
// post and revises nothing.
func TestChangeOfWays(t *testing.T) {
	w := newWorld(t)
	c := portChannel(1, 30)
	for i, m := range c.messages {
		m := m.(*tg.Message)
		switch {
		case i < 3:
			m.GroupedID = 9
			m.Media = &tg.MessageMediaPhoto{Photo: &tg.PhotoEmpty{}}
			if i > 0 {
				m.Message = ""
			}
		case i == 10:
			m.Message = "смотрите тут и 🚢"
			m.Entities = []tg.MessageEntityClass{&tg.MessageEntityTextURL{Offset: 9, Length: 3, URL: "https://example.org/a?b=1"}}
		case i == 11:
			m.Message, m.Media = "", &tg.MessageMediaPhoto{Photo: &tg.PhotoEmpty{}}
		case i == 12:
			m.Views = 1234567
		}
		m.SetFlags()
	}
	w.server.add(c)
	preview := func() crawl.Report {
		w.preview.Set("port_example", telegramChannel(w, true))
		w.server.set(func() { w.server.refuse = tgerr.New(401, "AUTH_KEY_UNREGISTERED") })
		defer w.server.set(func() { w.server.refuse = nil })
		return w.mustCrawl()
	}
	if rep := preview(); rep.New != 28 {
		t.Fatalf("preview: %+v", rep)
	}
	w.pass(25 * time.Hour) // the session is tried again
	for id := 31; id <= 35; id++ {
		w.server.set(func() { c.messages = append(c.messages, message(id)) })
	}
	if rep := w.mustCrawl(); rep.New != 5 || rep.Revised+rep.SeenAgain != 0 {
		t.Errorf("MTProto after the preview: %+v, want 5 new", rep)
	}
	for id := 36; id <= 40; id++ {
		w.server.set(func() { c.messages = append(c.messages, message(id)) })
	}
	if rep := preview(); rep.New != 5 || rep.Revised+rep.SeenAgain != 0 {
		t.Errorf("the preview after MTProto: %+v, want 5 new", rep)
	}
	w.wantIDs(append([]int{1}, span(4, 40)...))
}

func TestPrivateForTheAccountPublicInThePreview(t *testing.T) {
	w := newWorld(t)
	c := w.server.add(portChannel(1, 5))
	w.server.set(func() { c.err = tgerr.New(400, "CHANNEL_PRIVATE") })
	w.preview.Set("port_example", telegramChannel(w, true))
	if rep := w.mustCrawl(); rep.New != 5 {
		t.Errorf("report %+v", rep)
	}
}

func TestThrottledPreviewAndNoLogin(t *testing.T) {
	w := bareWorld(t, newServer(t))
	w.server.add(portChannel(1, 5))
	w.preview.Set("port_example", telegramChannel(w, false))
	_, err := w.crawl()
	w.wantCause(err, ledger.CauseNoPreview)
	if !strings.Contains(err.Error(), "vesti telegram login") {
		t.Errorf("error %q does not say how to read it", err)
	}
	w.preview.Fail(func(*http.Request) int { return http.StatusTooManyRequests })
	_, err = w.crawl()
	if _, ok := errors.AsType[*crawl.Throttled](err); !ok {
		t.Errorf("error %v, want a wait", err)
	}
}
