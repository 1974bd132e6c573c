package httpui

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"vesti.nixg.ru/classify"
	"vesti.nixg.ru/httpui/auth"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/projections"
)

// Options is what a Server is made of. The views and Commands, Store,
// Registerer and Gatherer must be given; everything else has a default.
type Options struct {
	Queue    Queue
	Registry Registry
	Sources  Sources
	Search   Search
	Posts    Posts
	Commands Commands

	// Store keeps the password, sessions and tokens: a namespace of its own.
	Store ledger.Store

	// LLM tells whether the language model's stage is paused; nil means that none
	// is configured.
	LLM func() classify.BreakerStatus
	// Telegram tells how the Telegram account stands: its state, one of ready,
	// no_session, revoked and throttled, and more of it for a person. Nil means
	// that none is configured.
	Telegram func(ctx context.Context) (state, message string)
	// Projections tell how far the views are behind; nil means never.
	Projections func() []projections.Status

	// Directions are those an editor can choose from; none means
	// ledger.DefaultDirections.
	Directions []ledger.Direction

	// Ready tells whether the process does its work; the error is the reason why
	// not, shown by /readyz. Nil means always.
	Ready func() error

	Logger     *slog.Logger // nil discards
	Registerer prometheus.Registerer
	Gatherer   prometheus.Gatherer // what /metrics shows
	Now        func() time.Time    // nil is time.Now
	Location   *time.Location      // of dates and of "today"; nil is UTC
	Version    string              // shown in the footer

	// ExternalURL is the address that browsers use where it is not that of the
	// listener: "https://desk.example.org/vesti" behind a proxy. Its path is put
	// before every link, its scheme decides whether cookies are Secure, and forms
	// sent from its origin are accepted. "" means: as the request came.
	ExternalURL string
	// TrustedProxies are the networks whose X-Forwarded-For is believed. None
	// means that the client is who connected.
	TrustedProxies []netip.Prefix
	// PasswordCost is what hashing a new password takes; zero is
	// auth.DefaultCost.
	PasswordCost auth.Cost
	// MetricsPublic opens /metrics to everybody who can connect; otherwise it
	// wants a login or a token.
	MetricsPublic bool
}

// settings is what New makes of the options' addresses.
type settings struct {
	base   string // path prefix of every link: "" or "/vesti"
	origin string // of ExternalURL; "" for none
	secure bool   // cookies travel by https only
}

func (o *Options) complete() (settings, error) {
	required := []struct {
		name  string
		given bool
	}{
		{"Queue", o.Queue != nil},
		{"Registry", o.Registry != nil},
		{"Sources", o.Sources != nil},
		{"Search", o.Search != nil},
		{"Posts", o.Posts != nil},
		{"Commands", o.Commands != nil},
		{"Store", o.Store != nil},
		{"Registerer", o.Registerer != nil},
		{"Gatherer", o.Gatherer != nil},
	}
	for _, r := range required {
		if !r.given {
			return settings{}, fmt.Errorf("httpui: option %s is missing", r.name)
		}
	}
	if len(o.Directions) == 0 {
		o.Directions = ledger.DefaultDirections()
	}
	if o.PasswordCost == (auth.Cost{}) {
		o.PasswordCost = auth.DefaultCost()
	}
	if o.Ready == nil {
		o.Ready = func() error { return nil }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Location == nil {
		o.Location = time.UTC
	}
	return parseExternal(o.ExternalURL)
}

func parseExternal(raw string) (settings, error) {
	if raw == "" {
		return settings{}, nil
	}
	u, err := url.Parse(raw)
	if err != nil {
		return settings{}, fmt.Errorf("external URL: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return settings{}, errors.New("external URL: want http(s)://host[/path] and nothing more")
	}
	return settings{
		base:   strings.TrimRight(u.EscapedPath(), "/"),
		origin: u.Scheme + "://" + u.Host,
		secure: u.Scheme == "https",
	}, nil
}
