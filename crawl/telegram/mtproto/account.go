//go:build !notelegram

package mtproto

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	gotd "github.com/gotd/td/telegram"
	"github.com/gotd/td/telegram/dcs"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/transport"
	"golang.org/x/time/rate"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/telegram"
	"vesti.nixg.ru/ledger"
)

// Account is a Telegram user's account, read with. It connects when it is first
// used and again after an idle time. It is safe for concurrent use.
type Account struct {
	opts    Options
	vault   vault
	general *rate.Limiter
	resolve *rate.Limiter
	log     *slog.Logger
	metrics *metrics

	mu     sync.Mutex
	link   *link     // nil when not connected
	uses   int       // calls that use it
	idle   time.Time // since when uses is 0
	closed bool
	login  sync.Mutex // one login, logout or import at a time
}

var _ telegram.Account = (*Account)(nil)

// New returns an account. It connects to nobody yet. Close it at the end.
func New(opts Options) (*Account, error) {
	if opts.Store == nil {
		return nil, fmt.Errorf("%w: a Telegram account needs a store", ledger.ErrInvalid)
	}
	if (opts.APIID == 0) != (opts.APIHash == "") {
		return nil, fmt.Errorf("%w: Telegram's api_id and api_hash go together", ledger.ErrInvalid)
	}
	setDefault(&opts.Pace, 500*time.Millisecond)
	setDefault(&opts.ResolvePace, 5*time.Second)
	setDefault(&opts.CallTimeout, 15*time.Second)
	setDefault(&opts.MaxWait, 30*time.Second)
	setDefault(&opts.IdleAfter, 2*time.Minute)
	setDefault(&opts.ConnectTimeout, 40*time.Second)
	if opts.Now == nil {
		opts.Now = time.Now
	}
	dial, err := dialer(opts.Dial, opts.Proxy)
	if err != nil {
		return nil, err
	}
	opts.Dial = dial
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	a := &Account{
		opts:    opts,
		vault:   vault{store: opts.Store},
		general: limiter(opts.Pace),
		resolve: limiter(opts.ResolvePace),
		log:     opts.Log,
	}
	a.metrics = newMetrics(opts.Registerer, a.readyGauge)
	return a, nil
}

// readyGauge is 1 for an account that can read.
func (a *Account) readyGauge() float64 {
	if a.Ready(context.Background()) != nil {
		return 0
	}
	return 1
}

func setDefault(field *time.Duration, value time.Duration) {
	if *field == 0 {
		*field = value
	}
}

func limiter(every time.Duration) *rate.Limiter {
	if every < 0 {
		return rate.NewLimiter(rate.Inf, 1)
	}
	return rate.NewLimiter(rate.Every(every), 1)
}

// Close ends the connection and waits for its end.
func (a *Account) Close() error {
	a.mu.Lock()
	a.closed = true
	l := a.link
	a.mu.Unlock()
	l.stop()
	return nil
}

// refusedAgain is after how long a refused session is tried again: servers are
// known to forget a key for a while.
const refusedAgain = 24 * time.Hour

// Ready implements telegram.Account.
func (a *Account) Ready(ctx context.Context) error {
	_, err := a.session(ctx)
	return err
}

// session is the stored session, when it can be used.
func (a *Account) session(ctx context.Context) (state, error) {
	if a.opts.APIID == 0 {
		return state{}, needsLogin(ErrNoAPI.Error(), ErrNoAPI)
	}
	s, err := a.vault.load(ctx)
	switch {
	case err != nil:
		return state{}, err
	case s.raw == nil:
		return state{}, needsLogin(ErrNoSession.Error(), ErrNoSession)
	case s.broken != nil:
		return state{}, needsLogin(fmt.Sprintf(`the stored Telegram session is damaged: log in again with "vesti telegram login" (%v)`, s.broken), s.broken)
	case s.refused != nil && a.opts.Now().Sub(s.refused.At) < refusedAgain:
		return state{}, needsLogin(s.refused.Reason, nil)
	}
	return s, nil
}

func needsLogin(message string, err error) error {
	return &crawl.Error{Cause: ledger.CauseLogin, Message: message, Err: err}
}

// Status tells how the account stands, from what is stored: it asks nobody.
func (a *Account) Status(ctx context.Context) (Status, error) {
	s, err := a.vault.load(ctx)
	if err != nil {
		return Status{}, err
	}
	var st Status
	if s.raw != nil && s.self.ID != 0 {
		st.Identity = &s.self
	}
	switch {
	case a.opts.APIID == 0:
		st.State, st.Message = StateNoAPI, ErrNoAPI.Error()
	case s.raw == nil:
		st.State, st.Message = StateNeedsLogin, ErrNoSession.Error()
	case s.broken != nil:
		st.State, st.Message = StateRevoked, `the stored session is damaged: log in again with "vesti telegram login"`
	case s.refused != nil:
		st.State, st.Message, st.Refused = StateRevoked, s.refused.Reason, s.refused.At
	default:
		st.State, st.Message = StateReady, "logged in as "+s.self.Name
		if st.Pauses, err = a.vault.pauses(ctx, s.self.ID, a.opts.Now()); err != nil {
			return Status{}, err
		}
		if len(st.Pauses) > 0 {
			st.State = StateThrottled
			var what []string
			for _, p := range st.Pauses {
				what = append(what, p.Method+" until "+p.Until.UTC().Format(time.RFC3339))
			}
			st.Message += "; Telegram asked to wait: " + strings.Join(what, ", ")
		}
	}
	return st, nil
}

// client makes a client of gotd on a session storage.
func (a *Account) client(storage gotd.SessionStorage) *gotd.Client {
	version := a.opts.Version
	if version == "" {
		version = "dev"
	}
	o := gotd.Options{
		SessionStorage: storage,
		NoUpdates:      true, // channels are polled
		Middlewares:    a.middlewares(),
		Device:         gotd.DeviceConfig{DeviceModel: "vesti", SystemVersion: "server", AppVersion: version},
		DialTimeout:    15 * time.Second,
	}
	plain := dcs.PlainOptions{Dial: a.opts.Dial}
	if s := a.opts.Server; s != nil {
		plain.Protocol = transport.Intermediate
		o.DC = s.DC
		o.PublicKeys = []gotd.PublicKey{{RSA: s.Key}}
		o.DCList = dcs.List{Options: []tg.DCOption{{ID: s.DC, IPAddress: s.Host, Port: s.Port}}}
	}
	o.Resolver = dcs.Plain(plain)
	return gotd.NewClient(a.opts.APIID, a.opts.APIHash, o)
}

// refuse notes that Telegram does not take the session any more, and ends the
// connection. The session stays: it is tried again now and then.
func (a *Account) refuse(ctx context.Context, reason string) error {
	a.log.ErrorContext(ctx, "Telegram refuses the session", "reason", reason)
	a.metrics.refused.Inc()
	a.mu.Lock()
	l := a.link
	a.mu.Unlock()
	if l != nil {
		l.cancel()
	}
	if err := a.vault.refuse(ctx, refusal{At: a.opts.Now(), Reason: reason}); err != nil {
		return errors.Join(needsLogin(reason, nil), err)
	}
	return needsLogin(reason, nil)
}
