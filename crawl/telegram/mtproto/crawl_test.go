//go:build !notelegram

package mtproto_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/telegram"
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

func TestWaits(t *testing.T) {
	t.Run("short ones are sat out", func(t *testing.T) {
		w := newWorld(t)
		w.server.add(portChannel(1, 150))
		w.server.on(func(c call) effect {
			if c.method == history && c.n == 2 {
				return effect{err: tgerr.New(420, "FLOOD_WAIT_1")}
			}
			return effect{}
		})
		start := time.Now()
		w.mustCrawl()
		if took := time.Since(start); took < time.Second {
			t.Errorf("took %s", took)
		}
		w.wantIDs(span(1, 150))
	})
	t.Run("long ones pause the method, also after a restart", func(t *testing.T) {
		w := newWorld(t)
		w.server.add(portChannel(1, 1000))
		flood := func(c call) effect {
			if c.method == history && c.n == 4 {
				return effect{err: tgerr.New(420, "FLOOD_WAIT_900")}
			}
			return effect{}
		}
		w.server.on(flood)
		rep, err := w.crawl()
		w.wantWait(err, 900*time.Second)
		w.wantIDs(span(1, 200)) // two pages after the newest and the first look
		if rep.New != 200 {
			t.Errorf("report %+v, want the 200 that were stored", rep)
		}
		w.account.Close()
		w.open()
		w.pass(10 * time.Minute)
		_, err = w.crawl()
		w.wantWait(err, 5*time.Minute)
		if got := w.server.count(history); got != 4 {
			t.Errorf("%d calls of a paused method, want none after the fourth", got)
		}
		if st := w.status(); st.State != mtproto.StateThrottled || len(st.Pauses) != 1 || st.Pauses[0].Method != history {
			t.Errorf("status %+v", st)
		}
		// Another method goes on.
		w.server.add(&channel{id: 2000000002, hash: 1, name: "other_port", title: "Другой"})
		if ch, err := w.account.Resolve(t.Context(), "other_port", false); err != nil || ch.ID != 2000000002 {
			t.Errorf("resolve during the pause of another method: %+v, %v", ch, err)
		}
		w.pass(5*time.Minute + time.Second)
		w.mustCrawl()
		w.wantIDs(span(1, 1000))
	})
}

func (w *world) wantWait(err error, d time.Duration) {
	w.t.Helper()
	var wait *crawl.Throttled
	if !errors.As(err, &wait) {
		w.t.Fatalf("error %v, want a wait", err)
	}
	if got := wait.Until.Sub(w.time()); got != d {
		w.t.Errorf("wait of %s, want %s", got, d)
	}
}

func TestLostAnswers(t *testing.T) {
	quick := func(o *mtproto.Options) { o.CallTimeout = 2 * time.Second }
	for name, e := range map[string]effect{
		"dropped before an answer":      {drop: true},
		"acknowledged and dropped":      {ack: true, drop: true},
		"silence":                       {mute: true},
		"acknowledged and never answer": {ack: true, mute: true},
		"server in trouble":             {err: tgerr.New(500, "RPC_CALL_FAIL")},
		"busy worker":                   {err: tgerr.New(500, "WORKER_BUSY_TOO_LONG_RETRY")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, quick)
			w.server.add(portChannel(1, 1000))
			w.server.on(func(c call) effect {
				if c.method == history && c.n == 3 {
					return e
				}
				return effect{}
			})
			w.mustCrawl()
			w.wantIDs(span(1, 1000))
		})
	}
}

func TestServerThatNeverAnswers(t *testing.T) {
	w := newWorld(t, func(o *mtproto.Options) { o.CallTimeout = 100 * time.Millisecond })
	w.server.add(portChannel(1, 10))
	w.server.on(func(c call) effect { return effect{ack: c.method == history, mute: c.method == history} })
	_, err := w.crawl()
	w.wantCause(err, ledger.CauseTimeout)
}

func TestServerThatCannotBeReached(t *testing.T) {
	w := newWorld(t, func(o *mtproto.Options) {
		o.ConnectTimeout = 200 * time.Millisecond
		o.Dial = func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("network is unreachable")
		}
	})
	_, err := w.crawl()
	w.wantCause(err, ledger.CauseConnect)
	w.preview.Set("port_example", previewOf(portChannel(1, 5), true))
	if rep := w.mustCrawl(); rep.New != 5 {
		t.Errorf("from the preview: %+v", rep)
	}
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

func TestSessionRefused(t *testing.T) {
	for reason, says := range map[string]string{
		"AUTH_KEY_UNREGISTERED": "log in again",
		"SESSION_REVOKED":       "another device",
		"AUTH_KEY_DUPLICATED":   "two places",
		"USER_DEACTIVATED_BAN":  "banned",
		"FROZEN_METHOD_INVALID": "frozen",
		"BOT_METHOD_INVALID":    "bot",
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t)
			w.server.add(portChannel(1, 5))
			code := map[string]int{"AUTH_KEY_DUPLICATED": 406, "FROZEN_METHOD_INVALID": 420, "BOT_METHOD_INVALID": 400}[reason]
			if code == 0 {
				code = 401
			}
			before := w.stored()
			w.server.set(func() { w.server.refuse = tgerr.New(code, reason) })
			_, err := w.crawl()
			w.wantCause(err, ledger.CauseLogin)
			if !strings.Contains(err.Error(), says) {
				t.Errorf("error %q does not say %q", err, says)
			}
			if st := w.status(); st.State != mtproto.StateRevoked || !strings.Contains(st.Message, says) {
				t.Errorf("status %+v", st)
			}
			// No loop: Telegram is left alone, by a restarted program as well.
			w.account.Close()
			w.open()
			w.server.on(nil)
			for range 5 {
				_, err = w.crawl()
				w.wantCause(err, ledger.CauseLogin)
			}
			if got := w.server.count("refused"); got != 0 {
				t.Errorf("%d more calls with a refused session", got)
			}
			if !slices.Equal(w.stored(), before) {
				t.Error("the stored session was changed")
			}
			// The preview stands in.
			w.preview.Set("port_example", telegramChannel(w, true))
			if rep := w.mustCrawl(); rep.New != 5 {
				t.Errorf("from the preview: %+v", rep)
			}
			// A day later it is tried once more, and Telegram has thought better of it.
			w.server.set(func() { w.server.refuse = nil })
			w.pass(25 * time.Hour)
			w.mustCrawl()
			if st := w.status(); st.State != mtproto.StateReady {
				t.Errorf("status after it works again: %+v", st)
			}
		})
	}
}

// telegramChannel is the world's channel as preview pages show it.
func telegramChannel(w *world, preview bool) telegramPage {
	return previewOf(w.server.channels[port], preview)
}

func TestServerThatForgotTheKey(t *testing.T) {
	s := newOwnServer(t)
	w := bareWorld(t, s)
	w.login()
	w.server.add(portChannel(1, 5))
	w.mustCrawl()
	w.account.Close()
	before := w.stored()
	s.restart()
	w.open()
	_, err := w.crawl()
	w.wantCause(err, ledger.CauseLogin)
	if !strings.Contains(err.Error(), "does not know the session's key") {
		t.Errorf("error %q", err)
	}
	if !slices.Equal(w.stored(), before) {
		t.Fatal("the session of the last login was replaced")
	}
	if st := w.status(); st.State != mtproto.StateRevoked || st.Identity == nil {
		t.Errorf("status %+v", st)
	}
	// A new login takes its place, and the old one is kept beside it.
	w.login()
	w.server.set(func() { s.channels[port].messages = append(s.channels[port].messages, message(6)) })
	if rep := w.mustCrawl(); rep.New != 1 {
		t.Errorf("after the new login: %+v", rep)
	}
	var previous []byte
	w.store(func(tx ledger.Tx) (err error) {
		previous, err = tx.Get([]byte("session/previous"))
		return err
	})
	if !slices.Equal(previous, before) {
		t.Error("no copy of the last session")
	}
}

func TestDamagedSession(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"cut in half": func(b []byte) []byte { return b[:len(b)/2] },
		"empty":       func([]byte) []byte { return nil },
		"no key":      func([]byte) []byte { return []byte(`{"Version":1,"Data":{"DC":2}}`) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.server.add(portChannel(1, 5))
			damaged := damage(w.stored())
			w.store(func(tx ledger.Tx) error { return tx.Set([]byte("session/current"), damaged) })
			_, err := w.crawl()
			w.wantCause(err, ledger.CauseLogin)
			if !strings.Contains(err.Error(), "damaged") {
				t.Errorf("error %q", err)
			}
			if !slices.Equal(w.stored(), damaged) {
				t.Error("a new session, which nobody has logged in with, took its place")
			}
		})
	}
}

func TestAccessHashNoLongerGood(t *testing.T) {
	w := newWorld(t)
	c := w.server.add(portChannel(1, 5))
	w.mustCrawl()
	w.server.set(func() { c.hash++; c.messages = append(c.messages, message(6)) })
	w.server.on(nil)
	if rep := w.mustCrawl(); rep.New != 1 {
		t.Errorf("report %+v", rep)
	}
	if got := w.server.count(resolve); got != 1 {
		t.Errorf("%d look-ups of the name, want one", got)
	}
}

// A min object's hash cannot be used and must not replace a good one.
func TestMinObjects(t *testing.T) {
	w := newWorld(t)
	c := portChannel(1, 5)
	c.min = true
	w.server.add(c)
	w.mustCrawl()
	w.server.set(func() { c.messages = append(c.messages, message(6)) })
	w.server.on(nil)
	w.mustCrawl()
	w.wantIDs(span(1, 6))
	if got := w.server.count(resolve); got != 0 {
		t.Errorf("%d look-ups of the name", got)
	}
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

func TestEditsDeletionsAndCounts(t *testing.T) {
	w := newWorld(t)
	c := w.server.add(portChannel(1, 150))
	w.mustCrawl()
	w.edit(c, 20, func(m *tg.Message) { // beyond the newest page, in the window
		m.Message, m.EditDate = "Теперь тут написано совсем о другом порте", 1
	})
	w.edit(c, 140, func(m *tg.Message) { m.EditDate, m.EditHide = 1, true }) // a reaction counts as an edit
	w.edit(c, 141, func(m *tg.Message) {
		m.Views = 500
		m.Reactions = tg.MessageReactions{Results: []tg.ReactionCount{
			{Reaction: &tg.ReactionEmoji{Emoticon: "👍"}, Count: 30}, {Reaction: &tg.ReactionPaid{}, Count: 3},
		}}
	})
	w.remove(c, 30, 145)
	rep := w.mustCrawl()
	if rep.Revised != 1 || rep.New != 0 {
		t.Errorf("report %+v, want one revision", rep)
	}
	if p := w.post(20); p.Revisions != 1 || !strings.Contains(p.Item.Text, "о другом порте") {
		t.Errorf("post 20: %+v", p.Item)
	}
	for _, id := range []int{29, 30, 31, 144, 145, 146} {
		if got, want := w.post(id).State.Removed, id == 30 || id == 145; got != want {
			t.Errorf("message %d removed: %v", id, got)
		}
	}
	events, err := w.log.PostEvents(t.Context(), w.post(141).Num)
	if err != nil {
		t.Fatal(err)
	}
	m, ok := events[len(events)-1].Payload.(ledger.PostMeasured)
	if !ok || *m.Measures.Views != 500 || *m.Measures.Reactions != 33 || m.Measures.Rounded {
		t.Errorf("last event of post 141: %+v", events[len(events)-1].Payload)
	}
	head := w.log.Head()
	w.mustCrawl()
	if w.log.Head() != head {
		t.Error("a quiet run wrote to the ledger")
	}
	w.pass(73 * time.Hour) // out of the window
	w.edit(c, 21, func(m *tg.Message) { m.Message = "Поздняя правка никому не видна" })
	if rep := w.mustCrawl(); rep.Revised != 0 {
		t.Errorf("an edit after three days: %+v", rep)
	}
}

func TestAlbumThatIsStillComing(t *testing.T) {
	w := newWorld(t)
	c := portChannel(1, 3)
	part := func(id int) *tg.Message {
		m := message(id)
		m.GroupedID, m.Date = 7, int(noon.Unix())
		m.Media = &tg.MessageMediaPhoto{Photo: &tg.PhotoEmpty{}}
		if id > 4 {
			m.Message = ""
		}
		m.SetFlags()
		return m
	}
	c.messages = append(c.messages, part(4))
	w.server.add(c)
	if rep := w.mustCrawl(); rep.New != 3 || rep.Cursor != "2000000001/3" {
		t.Errorf("report %+v: an album may still grow", rep)
	}
	w.server.set(func() { c.messages = append(c.messages, part(5), part(6)) })
	w.pass(time.Minute)
	if rep := w.mustCrawl(); rep.New != 1 || rep.Cursor != "2000000001/6" {
		t.Errorf("report %+v", rep)
	}
	if got := w.post(4).Item.Media; len(got) != 3 {
		t.Errorf("media %v", got)
	}
	w.remove(c, 4)
	if rep := w.mustCrawl(); rep.New+rep.Revised != 0 {
		t.Errorf("after its first picture was deleted: %+v", rep)
	}
	if w.post(4).State.Removed {
		t.Error("the album is marked as removed")
	}
}

func TestTextsLinksForwardsAndMedia(t *testing.T) {
	w := newWorld(t)
	c := portChannel(1, 0)
	put := func(id int, change func(*tg.Message)) {
		m := message(id)
		m.Message = ""
		change(m)
		m.SetFlags()
		c.messages = append(c.messages, m)
	}
	put(1, func(m *tg.Message) { // the emoji takes two UTF-16 units
		m.Message = "🚢 читайте здесь и @port, https://example.org"
		m.Entities = []tg.MessageEntityClass{
			&tg.MessageEntityTextURL{Offset: 11, Length: 5, URL: "https://example.org/полно"},
			&tg.MessageEntityBold{Offset: 0, Length: 2},
			&tg.MessageEntityTextURL{Offset: 19, Length: 5, URL: "https://t.me/port"},
			&tg.MessageEntityURL{Offset: 26, Length: 19},
			&tg.MessageEntityTextURL{Offset: 400, Length: 5, URL: "https://example.org/broken"},
		}
	})
	put(2, func(m *tg.Message) {
		m.Message = "переслано из другого порта"
		m.FwdFrom = tg.MessageFwdHeader{FromID: &tg.PeerChannel{ChannelID: 55}, ChannelPost: 77}
		m.FwdFrom.SetFlags()
	})
	put(3, func(m *tg.Message) {
		m.Message = "переслано от человека без имени"
		m.FwdFrom = tg.MessageFwdHeader{FromName: "Некто"}
		m.FwdFrom.SetFlags()
	})
	put(4, func(m *tg.Message) { m.Media = &tg.MessageMediaPhoto{Photo: &tg.PhotoEmpty{}} })
	put(5, func(m *tg.Message) {
		m.Media = &tg.MessageMediaPoll{
			Poll: tg.Poll{
				Question: tg.TextWithEntities{Text: "Когда открывать порт?"},
				Answers: []tg.PollAnswerClass{
					&tg.PollAnswer{Text: tg.TextWithEntities{Text: "Весной"}, Option: []byte{0}},
					&tg.PollAnswer{Text: tg.TextWithEntities{Text: "Летом"}, Option: []byte{1}},
				},
			},
		}
	})
	put(6, func(m *tg.Message) {
		m.Media = &tg.MessageMediaDocument{Document: &tg.Document{Attributes: []tg.DocumentAttributeClass{&tg.DocumentAttributeAudio{Voice: true}}}}
	})
	c.messages = append(c.messages, &tg.MessageService{
		ID: 7, Post: true, PeerID: &tg.PeerChannel{ChannelID: port}, Date: 1, Action: &tg.MessageActionPinMessage{},
	})
	put(8, func(m *tg.Message) { m.Media = &tg.MessageMediaDice{Value: 3, Emoticon: "🎲"} })
	c.origins = []tg.ChatClass{(&channel{id: 55, name: "Other_Port", title: "Другой"}).chat(false)}
	w.server.add(c)
	if rep := w.mustCrawl(); rep.New != 7 || rep.Cursor != "2000000001/8" {
		t.Errorf("report %+v, want 7 new to 8", rep)
	}
	for id, want := range map[int]string{
		1: "🚢 читайте здесь (https://example.org/полно) и @port, https://example.org",
		4: "", 5: "Когда открывать порт?\n- Весной\n- Летом", 6: "", 8: "",
	} {
		if got := w.post(id).Item.Text; got != want {
			t.Errorf("message %d: text %q, want %q", id, got, want)
		}
	}
	for id, want := range map[int]string{4: telegram.MediaPhoto, 5: telegram.MediaPoll, 6: telegram.MediaVoice, 8: telegram.MediaUnsupported} {
		if got := w.post(id).Item.Media; !slices.Equal(got, []string{want}) {
			t.Errorf("message %d: media %v, want %s", id, got, want)
		}
	}
	if it := w.post(2).Item; it.ForwardOf != "https://t.me/Other_Port/77" || it.CanonicalURL != "https://t.me/other_port/77" {
		t.Errorf("forward of %q, canonical %q", it.ForwardOf, it.CanonicalURL)
	}
	if got := w.post(3).Item.ForwardOf; got != "Некто" {
		t.Errorf("forward of %q", got)
	}
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

func TestPaceOfCalls(t *testing.T) {
	const pace = 50 * time.Millisecond
	w := newWorld(t, func(o *mtproto.Options) { o.Pace = pace })
	w.server.add(portChannel(1, 1000))
	start := time.Now()
	w.mustCrawl()
	calls := w.server.count(history) + w.server.count(getByID)
	if took := time.Since(start); calls < 10 || took < pace*time.Duration(calls-1) {
		t.Errorf("%d calls within %s, want one each %s", calls, took, pace)
	}
}

func TestManyAccountsAtOnce(t *testing.T) {
	for i := range 12 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.server.add(portChannel(1, 120))
			w.mustCrawl()
			w.wantIDs(span(1, 120))
		})
	}
}

func TestIdleConnectionIsClosedAndOpenedAgain(t *testing.T) {
	w := newWorld(t, func(o *mtproto.Options) { o.IdleAfter = 20 * time.Millisecond })
	c := w.server.add(portChannel(1, 3))
	w.mustCrawl()
	w.server.on(nil)
	deadline := time.Now().Add(10 * time.Second)
	for id := 4; w.server.count("help.getConfig") == 0; id++ {
		if time.Now().After(deadline) {
			t.Fatal("the connection was never closed")
		}
		<-time.After(50 * time.Millisecond)
		w.server.set(func() { c.messages = append(c.messages, message(id)) })
		if rep := w.mustCrawl(); rep.New != 1 {
			t.Fatalf("report %+v", rep)
		}
	}
}

func TestThrottledPreviewAndNoLogin(t *testing.T) {
	w := bareWorld(t, newServer(t))
	w.server.add(portChannel(1, 5))
	w.preview.Set("port_example", telegramChannel(w, false))
	_, err := w.crawl()
	w.wantCause(err, ledger.CauseLogin) // what the operator can put right, not "no preview"
	w.preview.Fail(func(*http.Request) int { return http.StatusTooManyRequests })
	_, err = w.crawl()
	var wait *crawl.Throttled
	if !errors.As(err, &wait) {
		t.Errorf("error %v, want a wait", err)
	}
}
