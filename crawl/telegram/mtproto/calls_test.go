//go:build !notelegram

package mtproto_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/gotd/td/tgerr"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/telegram/mtproto"
	"vesti.nixg.ru/ledger"
)

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

// A pause of look-ups, which Telegram limits most, holds up new channels alone.
func TestPauseOfLookUps(t *testing.T) {
	w := newWorld(t)
	w.server.add(portChannel(1, 5))
	w.mustCrawl()
	known := w.source
	w.server.on(func(c call) effect {
		if c.method == resolve {
			return effect{err: tgerr.New(420, "FLOOD_WAIT_86400")}
		}
		return effect{}
	})
	for range 3 { // one call, then none, then none after a restart
		w.source.Slug, w.source.Channel = "new", "new_channel"
		_, err := w.crawl()
		w.wantWait(err, 24*time.Hour)
		w.source = known
		w.mustCrawl()
		w.account.Close()
		w.open()
	}
	if got := w.server.count(resolve); got != 1 {
		t.Errorf("%d look-ups during the pause, want the one that began it", got)
	}
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
	t.Parallel()
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
	t.Parallel()
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
