package telegram

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/fetch"
	"vesti.nixg.ru/ledger"
)

// Fetcher gets pages; *fetch.Client is one.
type Fetcher interface {
	Get(ctx context.Context, r fetch.Request) (*fetch.Response, error)
}

// ErrNoAccount is what Account.Ready's error matches where there never was a
// login: previews are then not second best, and nothing is wrong.
var ErrNoAccount = errors.New("no Telegram account")

// Account reads channels by MTProto with a user's session;
// *mtproto.Account is one. It is safe for concurrent use.
//
// Its errors are *crawl.Error with the causes login, private, vanished,
// renamed, not_a_feed, timeout and connect; *crawl.Throttled where Telegram
// asked to wait; and ctx's own.
type Account interface {
	// Ready returns nil when a session is there and was not refused, else an
	// error with the cause login, which matches ErrNoAccount where nobody has
	// logged in. It asks nobody.
	Ready(ctx context.Context) error
	// Resolve finds the channel that a username leads to. It asks Telegram once
	// and remembers the answer; fresh asks again.
	Resolve(ctx context.Context, name string, fresh bool) (Channel, error)
	// History returns at most limit messages around offset, in ascending order:
	// those below id offset (0 for the newest) where add is 0; a negative add
	// moves the window that many messages towards newer ones, a positive one
	// towards older. Hidden messages leave holes: a short page is no end.
	History(ctx context.Context, channel int64, offset, add, limit int) (History, error)
	// Messages returns those of the messages that exist, in ascending order.
	Messages(ctx context.Context, channel int64, ids []int) (History, error)
}

// History is an answer with messages.
type History struct {
	Channel  Channel  // as the answer shows it; the zero value where it does not
	Names    []string // every username that the channel has
	Messages []Message
	Count    int // of all messages that the channel has, hidden ones included
}

// Options set a Kind up. Fetch and Store are needed; the zero value of each
// other field takes its default.
type Options struct {
	Fetch   Fetcher
	Store   ledger.Store // of the namespace Namespace
	Account Account      // nil reads preview pages alone

	// PreviewURL is where the preview pages are; default https://t.me. Another
	// one is a mirror that the operator trusts: it may have a private address.
	PreviewURL  string
	PreviewPace time.Duration // between two requests for pages, over all channels; default 1 s, negative for none
	// PreviewAgain is how often the whole window of young posts is looked at on
	// preview pages, for edits and deletions; the newest page is each time.
	// Default 6 h.
	PreviewAgain time.Duration

	Log        *slog.Logger          // default discards
	Registerer prometheus.Registerer // default none
}

// Kind crawls Telegram channels, by MTProto where its account can and from the
// public preview pages elsewhere. Both give the same items. It is safe for
// concurrent use, for different channels.
type Kind struct {
	fetch   Fetcher
	account Account
	book    book
	base    string
	private []string // hosts that may have private addresses
	pace    *rate.Limiter
	again   time.Duration
	log     *slog.Logger
	metrics *metrics
}

var _ crawl.Kind = (*Kind)(nil)

const defaultPreviewURL = "https://t.me"

// New returns a Kind. It needs no closing; the account, if any, is its owner's.
func New(opts Options) (*Kind, error) {
	if opts.Fetch == nil || opts.Store == nil {
		return nil, fmt.Errorf("%w: a Telegram crawler needs a fetcher and a store", ledger.ErrInvalid)
	}
	k := &Kind{
		fetch:   opts.Fetch,
		account: opts.Account,
		book:    book{store: opts.Store},
		base:    strings.TrimSuffix(opts.PreviewURL, "/"),
		again:   opts.PreviewAgain,
		log:     opts.Log,
		metrics: newMetrics(opts.Registerer),
	}
	if k.base == "" {
		k.base = defaultPreviewURL
	}
	u, err := url.Parse(k.base)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("%w: preview address %q: want an http or https address", ledger.ErrInvalid, opts.PreviewURL)
	}
	if k.base != defaultPreviewURL {
		k.private = []string{fetch.HostPort(u)}
	}
	switch {
	case opts.PreviewPace < 0:
		k.pace = rate.NewLimiter(rate.Inf, 1)
	case opts.PreviewPace == 0:
		k.pace = rate.NewLimiter(rate.Every(time.Second), 1)
	default:
		k.pace = rate.NewLimiter(rate.Every(opts.PreviewPace), 1)
	}
	if k.again == 0 {
		k.again = 6 * time.Hour
	}
	if k.log == nil {
		k.log = slog.New(slog.DiscardHandler)
	}
	return k, nil
}

// way is how a channel is read.
type way string

const (
	wayMTProto way = "mtproto"
	wayPreview way = "preview"
)

// Crawl implements crawl.Kind. Causes of failures: no_preview, private,
// renamed (the name leads to another channel), vanished, login, not_a_feed (a
// person, a bot), and those of the connection.
func (k *Kind) Crawl(ctx context.Context, job crawl.Job) (crawl.Report, error) {
	r, err := k.begin(ctx, job)
	if err != nil {
		return crawl.Report{}, err
	}
	err = k.read(ctx, r)
	r.finish()
	return r.report, err
}

// read reads the channel by MTProto where the account can, from the preview
// where it cannot.
func (k *Kind) read(ctx context.Context, r *run) error {
	if k.account == nil {
		return k.metrics.ran(wayPreview, r.preview(ctx))
	}
	cannot := k.account.Ready(ctx)
	if cannot == nil {
		err := k.metrics.ran(wayMTProto, r.mtproto(ctx))
		if !accounts(err) {
			return err
		}
		cannot = err
	}
	err := k.metrics.ran(wayPreview, r.preview(ctx))
	if errors.Is(cannot, ErrNoAccount) {
		return err
	}
	if err == nil {
		k.log.WarnContext(ctx, "read from the preview page: the account cannot", "source", r.job.Source.Slug, "error", cannot)
		return nil
	}
	// What is wrong with the account is what the operator can put right.
	var failed *crawl.Error
	if errors.As(err, &failed) && failed.Cause == ledger.CauseNoPreview {
		return cannot
	}
	return err
}

// accounts reports whether err is the account's trouble, not the channel's.
func accounts(err error) bool {
	var failed *crawl.Error
	if !errors.As(err, &failed) {
		return false
	}
	switch failed.Cause {
	case ledger.CauseLogin, ledger.CausePrivate, ledger.CauseConnect, ledger.CauseTimeout:
		return true
	default:
		return false
	}
}

// Forget lets go of the channel that a name was bound to, so that the next run
// begins anew with whatever the name leads to then. It is the way out when a
// name was given to another channel. It reports whether the name was bound.
func (k *Kind) Forget(ctx context.Context, name string) (bool, error) {
	return k.book.forget(ctx, name)
}
