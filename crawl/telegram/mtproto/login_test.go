//go:build !notelegram

package mtproto_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gotd/td/tgerr"

	"vesti.nixg.ru/crawl/telegram/mtproto"
	"vesti.nixg.ru/ledger"
)

func TestLoginWithCodeAndPassword(t *testing.T) {
	t.Parallel()
	w := bareWorld(t, newOwnServer(t))
	if st := w.status(); st.State != mtproto.StateNeedsLogin || !strings.Contains(st.Message, "vesti telegram login") {
		t.Errorf("before: %+v", st)
	}
	ask := &answers{phone: "+49 (151) 00000-000", wrongCode: "11111", wrongPassword: "пристань"}
	self, err := w.account.Login(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	if self.ID != userID || self.Name != "Вахтенный" || self.Username != "watch" {
		t.Errorf("logged in as %+v", self)
	}
	if want := []string{
		"code by the Telegram app false", "code by the Telegram app true",
		`password "где стоят суда" false`, `password "где стоят суда" true`,
	}; !slices.Equal(ask.asked, want) {
		t.Errorf("asked %q, want %q", ask.asked, want)
	}
	if st := w.status(); st.State != mtproto.StateReady || st.Identity == nil || st.Identity.ID != userID {
		t.Errorf("after: %+v", st)
	}
	if _, err := w.account.Login(t.Context(), &answers{}); !errors.Is(err, mtproto.ErrLoggedIn) {
		t.Errorf("second login: %v, want ErrLoggedIn: a session that works is never replaced", err)
	}
	// A new start reads with the stored session.
	w.server.add(portChannel(1, 3))
	w.account.Close()
	w.open()
	if rep := w.mustCrawl(); rep.New != 3 {
		t.Errorf("after a restart: %+v", rep)
	}
	if err := w.account.Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w.server.count("auth.logOut") != 1 {
		t.Error("Telegram was not told of the logout")
	}
	if st := w.status(); st.State != mtproto.StateNeedsLogin || st.Identity != nil {
		t.Errorf("after the logout: %+v", st)
	}
	if err := w.account.Logout(t.Context()); !errors.Is(err, mtproto.ErrNoSession) {
		t.Errorf("second logout: %v", err)
	}
}

func TestLoginThatFailsStoresNothing(t *testing.T) {
	t.Parallel()
	s := newOwnServer(t)
	for name, tt := range map[string]struct {
		ask    *answers
		signIn *tgerr.Error
		bot    bool
		says   string
	}{
		"number":    {ask: &answers{phone: "+100"}, says: "international form"},
		"code":      {ask: &answers{wrongCode: "1"}, signIn: tgerr.New(400, "PHONE_NUMBER_BANNED"), says: "banned"},
		"published": {ask: &answers{}, signIn: tgerr.New(400, "API_ID_PUBLISHED_FLOOD"), says: "one of your own"},
		"flood":     {ask: &answers{}, signIn: tgerr.New(420, "FLOOD_WAIT_86400"), says: "86400 s"},
		"bot":       {ask: &answers{}, bot: true, says: "bots cannot read channels"},
	} {
		t.Run(name, func(t *testing.T) {
			w := bareWorld(t, s)
			s.set(func() { s.signIn, s.bot = tt.signIn, tt.bot })
			defer s.set(func() { s.signIn, s.bot = nil, false })
			_, err := w.account.Login(t.Context(), tt.ask)
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want one that says %q", err, tt.says)
			}
			if st := w.status(); st.State != mtproto.StateNeedsLogin {
				t.Errorf("afterwards: %+v", st)
			}
		})
	}
}

// A connection that is lost in the middle of a login ends it with an error, even
// where gotd's Run says nothing, and the next try is not disturbed.
func TestLoginOverALostConnection(t *testing.T) {
	for name, e := range map[string]effect{
		"acknowledged and dropped":       {ack: true, drop: true},
		"acknowledged and never answers": {ack: true, mute: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := bareWorld(t, newOwnServer(t), func(o *mtproto.Options) { o.CallTimeout = 6 * time.Second })
			w.server.on(func(c call) effect {
				if c.method == "auth.checkPassword" {
					return e
				}
				return effect{}
			})
			if _, err := w.account.Login(t.Context(), &answers{}); err == nil || !strings.Contains(err.Error(), "try again") {
				t.Errorf("error %v, want one that says to try again", err)
			}
			if st := w.status(); st.State != mtproto.StateNeedsLogin {
				t.Errorf("afterwards: %+v", st)
			}
			w.server.on(nil)
			w.login()
			if st := w.status(); st.State != mtproto.StateReady {
				t.Errorf("after another try: %+v", st)
			}
		})
	}
}

// Where nothing can be reached, a login ends by itself, and at once when the
// person has enough of waiting.
func TestLoginWithoutANetwork(t *testing.T) {
	asked := make(chan struct{}, 100)
	w := bareWorld(t, newServer(t), func(o *mtproto.Options) {
		o.ConnectTimeout = time.Second
		o.Dial = func(context.Context, string, string) (net.Conn, error) {
			asked <- struct{}{}
			return nil, errors.New("network is unreachable")
		}
	})
	_, err := w.account.Login(t.Context(), &answers{})
	if err == nil || !strings.Contains(err.Error(), "set a proxy") {
		t.Errorf("error %v, want one that names the way out", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	for len(asked) > 0 {
		<-asked
	}
	go func() {
		<-asked
		cancel()
	}()
	if _, err := w.account.Login(ctx, &answers{}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

func TestWithoutAPIID(t *testing.T) {
	w := bareWorld(t, newServer(t), func(o *mtproto.Options) { o.APIID, o.APIHash = 0, "" })
	if _, err := w.account.Login(t.Context(), &answers{}); !errors.Is(err, mtproto.ErrNoAPI) {
		t.Errorf("login: %v", err)
	}
	if st := w.status(); st.State != mtproto.StateNoAPI {
		t.Errorf("status: %+v", st)
	}
	if _, err := mtproto.New(mtproto.Options{APIID: 1, Store: w.log.Store("x")}); !errors.Is(err, ledger.ErrInvalid) {
		t.Errorf("api_id without api_hash: %v", err)
	}
}

func (w *world) status() mtproto.Status {
	w.t.Helper()
	st, err := w.account.Status(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return st
}
