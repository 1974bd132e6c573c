//go:build !notelegram

package mtproto_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gotd/td/tgerr"

	"vesti.nixg.ru/crawl/telegram/mtproto"
	"vesti.nixg.ru/ledger"
)

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
			before := authKey(t, w.stored())
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
			if authKey(t, w.stored()) != before {
				t.Error("the stored session was replaced")
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

func TestServerThatForgotTheKey(t *testing.T) {
	t.Parallel()
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

// Access hashes are an account's own: another one looks the name up for itself,
// and goes on where the last one stopped.
func TestAnotherAccount(t *testing.T) {
	w := newWorld(t)
	c := w.server.add(portChannel(1, 5))
	w.mustCrawl()
	w.store(func(tx ledger.Tx) error {
		return tx.Set([]byte("session/self"), []byte(`{"id":777000222,"name":"Другой"}`))
	})
	w.server.set(func() { c.hash, c.messages = c.hash+1, append(c.messages, message(6)) })
	w.server.on(nil)
	if rep := w.mustCrawl(); rep.New != 1 {
		t.Errorf("report %+v, want the one new message", rep)
	}
	if h, r := w.server.count(history), w.server.count(resolve); h != 1 || r != 1 {
		t.Errorf("%d calls for the history, %d look-ups: the other account's hash was tried", h, r)
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
