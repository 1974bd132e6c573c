//go:build !notelegram

package mtproto

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gotd/contrib/middleware/floodwait"
	"github.com/gotd/td/bin"
	gotd "github.com/gotd/td/telegram"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"
	"golang.org/x/time/rate"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/ledger"
)

// The methods that are called, as Telegram names them.
const (
	methodHistory  = "messages.getHistory"
	methodMessages = "channels.getMessages"
	methodResolve  = "contacts.resolveUsername"
)

const (
	maxTries   = 6 // of one call whose answer is lost
	waitRounds = 5 // short waits that one call sits out
)

// middlewares are around each call: short waits are sat out, and an answer that
// does not come is given up, since a request that was acknowledged is never
// sent again by itself.
func (a *Account) middlewares() []gotd.Middleware {
	return []gotd.Middleware{
		floodwait.NewSimpleWaiter().WithMaxRetries(waitRounds).WithMaxWait(a.opts.MaxWait),
		gotd.MiddlewareFunc(func(next tg.Invoker) gotd.InvokeFunc {
			return func(ctx context.Context, in bin.Encoder, out bin.Decoder) error {
				ctx, cancel := context.WithTimeout(ctx, a.opts.CallTimeout)
				defer cancel()
				err := next.Invoke(ctx, in, out)
				a.metrics.called(in, err)
				return err
			}
		}),
	}
}

// call calls a method that only reads, which may be repeated. A wait that is
// too long to sit out pauses the method for the account, in the store, so that
// nobody asks again before its end.
func call[T any](ctx context.Context, a *Account, method string, f func(context.Context, *tg.Client) (T, error)) (T, error) {
	var zero T
	s, err := a.session(ctx)
	if err != nil {
		return zero, err
	}
	until, err := a.vault.pausedUntil(ctx, s.self.ID, method)
	if err != nil {
		return zero, err
	}
	if until.After(a.opts.Now()) {
		return zero, throttled(method, until)
	}
	for try := 1; ; try++ {
		out, err := callOnce(ctx, a, a.limiterOf(method), f)
		if err == nil {
			return out, nil
		}
		if ctx.Err() != nil {
			return zero, context.Cause(ctx)
		}
		if !lost(err) || try == maxTries {
			return zero, a.translate(ctx, s, method, err)
		}
		a.metrics.repeated.Inc()
		a.log.DebugContext(ctx, "repeat a call to Telegram", "method", method, "try", try, "error", err)
		if err := pause(ctx, time.Duration(try)*100*time.Millisecond); err != nil {
			return zero, err
		}
	}
}

func callOnce[T any](ctx context.Context, a *Account, limit *rate.Limiter, f func(context.Context, *tg.Client) (T, error)) (T, error) {
	var zero T
	if err := limit.Wait(ctx); err != nil {
		return zero, err
	}
	l, release, err := a.connect(ctx)
	if err != nil {
		return zero, err
	}
	defer release()
	out, err := f(ctx, l.client.API())
	if err != nil {
		return zero, err
	}
	if l.probe.CompareAndSwap(true, false) {
		if err := a.vault.forgive(ctx); err != nil {
			return zero, err
		}
	}
	return out, nil
}

func (a *Account) limiterOf(method string) *rate.Limiter {
	if method == methodResolve {
		return a.resolve
	}
	return a.general
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// lost reports whether a call came to no answer of Telegram's: it may be
// repeated. The errors of a connection that dies have many forms, a cancelled
// context of gotd's own among them; so all count that Telegram did not send.
func lost(err error) bool {
	var typed *crawl.Error
	if errors.As(err, &typed) || errors.Is(err, ErrClosed) {
		return false
	}
	rpc, ok := tgerr.As(err)
	if !ok {
		return true
	}
	return rpc.Code >= 500 || rpc.Code < 0 // Telegram's own trouble, its timeouts
}

// translate makes of an error what the crawler understands.
func (a *Account) translate(ctx context.Context, s state, method string, err error) error {
	var typed *crawl.Error
	if errors.As(err, &typed) || errors.Is(err, ErrClosed) {
		return err
	}
	rpc, ok := tgerr.As(err)
	if !ok {
		return unanswered(method, err)
	}
	if reason, refused := a.refusal(rpc); refused {
		return a.refuse(ctx, reason)
	}
	switch {
	case rpc.Code == 420:
		until := a.opts.Now().Add(time.Duration(max(rpc.Argument, 1)) * time.Second)
		if err := a.vault.pause(ctx, s.self.ID, method, until); err != nil {
			return err
		}
		a.metrics.paused.Inc()
		return throttled(method, until)
	case rpc.IsOneOf("CHANNEL_PRIVATE", "CHANNEL_PUBLIC_GROUP_NA", "USER_BANNED_IN_CHANNEL"):
		return &crawl.Error{Cause: ledger.CausePrivate, Message: "the channel is private, or its owner has banned this account", Err: err}
	case rpc.IsOneOf("USERNAME_NOT_OCCUPIED", "USERNAME_INVALID"):
		return &crawl.Error{Cause: ledger.CauseVanished, Message: "nobody has this name now: the channel was renamed or deleted", Err: err}
	case rpc.IsType("CHANNEL_INVALID"):
		return &crawl.Error{Cause: ledger.CauseVanished, Message: "Telegram knows no such channel any more", Err: err}
	case rpc.Code >= 500 || rpc.Code < 0:
		return unanswered(method, err)
	}
	return &crawl.Error{Cause: ledger.CauseInternal, Message: fmt.Sprintf("Telegram refused %s: %s", method, rpc.Message), Err: err}
}

func unanswered(method string, err error) error {
	cause := ledger.CauseConnect
	if errors.Is(err, context.DeadlineExceeded) {
		cause = ledger.CauseTimeout
	}
	return &crawl.Error{Cause: cause, Message: fmt.Sprintf("Telegram did not answer %s after %d tries", method, maxTries), Err: err}
}

func throttled(method string, until time.Time) error {
	return &crawl.Throttled{Until: until, Message: "Telegram asked this account to wait with " + method}
}

// refusal tells whether an answer means that the session is no good, and what
// the operator is to do.
func (a *Account) refusal(rpc *tgerr.Error) (reason string, refused bool) {
	again := `: log in again with "vesti telegram login"`
	switch {
	case rpc.IsType("AUTH_KEY_DUPLICATED"):
		return "Telegram ended the session because it was used from two places at once" + again, true
	case rpc.IsOneOf("USER_DEACTIVATED", "USER_DEACTIVATED_BAN", "INPUT_USER_DEACTIVATED", "PHONE_NUMBER_BANNED"):
		return "Telegram has deleted or banned this account (" + rpc.Type + "): another account has to log in", true
	case rpc.IsOneOf("FROZEN_METHOD_INVALID", "FROZEN_PARTICIPANT_MISSING"):
		return "Telegram has frozen this account (" + rpc.Type + "); appeal in the Telegram app, or log in with another one", true
	case rpc.IsOneOf("API_ID_INVALID", "API_ID_PUBLISHED_FLOOD"):
		return "Telegram refuses the api_id (" + rpc.Type + "): use one of your own from https://my.telegram.org/apps", true
	case rpc.IsType("BOT_METHOD_INVALID"):
		return "the session is a bot's, and bots cannot read channels: log in with a user's account", true
	case rpc.IsType("SESSION_REVOKED"):
		return "the session was ended from another device" + again, true
	case rpc.IsType("AUTH_KEY_UNREGISTERED"):
		if a.keyLost() {
			return "Telegram's server does not know the session's key any more; the stored session is kept and tried again tomorrow" + again, true
		}
		return "Telegram knows no such session any more" + again, true
	case rpc.Code == 401:
		return "Telegram refuses the session (" + rpc.Type + ")" + again, true
	}
	return "", false
}

func (a *Account) keyLost() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.link != nil && a.link.storage.lost()
}
