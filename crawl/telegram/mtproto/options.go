// Package mtproto reads Telegram channels with a user's account, through
// gotd/td. It is the only package that imports gotd, whose generated code takes
// minutes and gigabytes to compile; with the build tag notelegram it is left
// out, and an Account then says so.
package mtproto

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"vesti.nixg.ru/crawl/telegram"
	"vesti.nixg.ru/ledger"
)

// Errors of logging in and out.
var (
	// ErrNotBuilt: this vesti was built without MTProto (build tag notelegram).
	ErrNotBuilt = errors.New("this vesti was built without Telegram's MTProto (build tag notelegram): only public preview pages can be read")
	// ErrNoAPI: no api_id and api_hash are configured.
	ErrNoAPI = fmt.Errorf("%w: no api_id and api_hash: make your own at https://my.telegram.org/apps and set telegram.api_id and telegram.api_hash", telegram.ErrNoAccount)
	// ErrLoggedIn: there is a working session already; it is never replaced
	// silently.
	ErrLoggedIn = errors.New(`already logged in: log out first with "vesti telegram logout"`)
	// ErrNoSession: nobody has logged in.
	ErrNoSession = fmt.Errorf(`%w: not logged in: use "vesti telegram login"`, telegram.ErrNoAccount)
	// ErrClosed: the account was closed.
	ErrClosed = errors.New("the Telegram account is closed")
)

// LoginNotice is what a person should have read before logging in.
const LoginNotice = `Before you log in:
- Use your own api_id and api_hash (https://my.telegram.org/apps). Published ones are refused.
- Use an account that is some months old, on a real SIM card. Telegram bans new accounts, and
  accounts on internet telephone numbers, for little; a login from a data centre may be enough.
- Begin with few channels. vesti only reads, slowly, and waits when Telegram asks it to.
- Channels with a public preview need no login at all.`

// Options set an Account up. APIID, APIHash and Store are needed; the zero
// value of each other field takes its default.
type Options struct {
	APIID   int
	APIHash string
	Store   ledger.Store // of the namespace telegram.Namespace

	Version string // of vesti, as Telegram shows it in the list of devices

	Pace        time.Duration // between two calls; default 500 ms, negative for none
	ResolvePace time.Duration // between two look-ups of names, which Telegram limits most; default 5 s, negative for none
	CallTimeout time.Duration // for an answer, after which the call is repeated; default 15 s
	MaxWait     time.Duration // the longest wait that a call sits out; longer ones pause its method; default 30 s
	// ConnectTimeout is how long it may take until calls can be made; default 40 s.
	ConnectTimeout time.Duration
	IdleAfter      time.Duration // a connection that nothing uses is closed; default 2 min

	// Proxy is a SOCKS5 or HTTP proxy on the way to Telegram, socks5://, http:// or https://,
	// with a name and a password where it wants them; nil for none.
	Proxy *url.URL
	// Dial connects, to the proxy where there is one; default a net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Server stands for Telegram's own; nil for those.
	Server *Server

	Now        func() time.Time      // default time.Now
	Log        *slog.Logger          // default discards
	Registerer prometheus.Registerer // default none
}

// Server is one data centre with its key, in place of Telegram's own.
type Server struct {
	DC   int
	Host string // an IP address
	Port int
	Key  *rsa.PublicKey
}

// Prompter asks a person during a login. Its methods return ctx's error when
// ctx ends.
type Prompter interface {
	// Phone asks for the account's number, in international form.
	Phone(ctx context.Context) (string, error)
	// Code asks for the code that Telegram sent; sentBy says how, as in "the
	// Telegram app". wrong is true when the last one was refused.
	Code(ctx context.Context, sentBy string, wrong bool) (string, error)
	// Password asks for the second factor. hint is the account's own, "" for
	// none. wrong is true when the last one was refused.
	Password(ctx context.Context, hint string, wrong bool) (string, error)
}

// Identity is whose session it is.
type Identity struct {
	ID       int64     `json:"id"`
	Name     string    `json:"name"`
	Username string    `json:"username,omitempty"`
	Since    time.Time `json:"since"` // of the login
}

// Status is how the account stands.
type Status struct {
	State    State     `json:"state"`
	Message  string    `json:"message"` // for a person, with the way out
	Identity *Identity `json:"identity,omitempty"`
	Refused  time.Time `json:"refused,omitzero"`
	Pauses   []Pause   `json:"pauses,omitempty"`
}

// State is the account's state, from a closed set.
type State string

// The states.
const (
	StateNotBuilt   State = "not_built"  // the build tag notelegram
	StateNoAPI      State = "no_api"     // no api_id
	StateNeedsLogin State = "no_session" // nobody has logged in
	StateReady      State = "ready"
	StateRevoked    State = "revoked"   // Telegram refused the session
	StateThrottled  State = "throttled" // ready, with a method that must wait
)

// Pause is a method that Telegram asked this account to leave alone.
type Pause struct {
	Method string    `json:"method"`
	Until  time.Time `json:"until"`
}
