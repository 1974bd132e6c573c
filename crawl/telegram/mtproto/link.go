//go:build !notelegram

package mtproto

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	gotd "github.com/gotd/td/telegram"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/ledger"
)

// link is one connection, over all the reconnections that gotd makes by itself.
type link struct {
	client  *gotd.Client
	storage *guarded
	self    Identity
	probe   atomic.Bool // of a session that was refused once
	cancel  context.CancelFunc
	ready   chan struct{} // closed when calls can be made
	done    chan struct{} // closed when it has ended
	err     error         // why, after done
}

// stop ends the link and waits for its end. A nil link has none.
func (l *link) stop() {
	if l == nil {
		return
	}
	l.cancel()
	<-l.done
}

func (l *link) ended() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// connect returns a link that is ready, a new one where there is none. The
// caller calls release when its call is over.
func (a *Account) connect(ctx context.Context) (l *link, release func(), err error) {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return nil, nil, ErrClosed
	}
	l = a.link
	if l == nil || l.ended() {
		if l, err = a.open(ctx); err != nil {
			a.mu.Unlock()
			return nil, nil, err
		}
		a.link = l
	}
	a.uses++
	a.mu.Unlock()
	release = func() { a.release(l) }

	timeout := time.NewTimer(a.opts.ConnectTimeout)
	defer timeout.Stop()
	select {
	case <-l.ready:
		return l, release, nil
	case <-l.done:
		err = l.err
		if err == nil {
			err = errors.New("connection closed")
		}
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-timeout.C:
		err = a.unreachable()
	}
	release()
	return nil, nil, err
}

func (a *Account) unreachable() error {
	return &crawl.Error{Cause: ledger.CauseConnect, Message: fmt.Sprintf(
		"Telegram cannot be reached: no connection after %s. Where it is blocked, set a proxy (crawl.proxy)", a.opts.ConnectTimeout)}
}

// open starts a link on the stored session. a.mu is held.
func (a *Account) open(ctx context.Context) (*link, error) {
	s, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	// The link outlives the call that opens it; Close and idleness end it.
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l := &link{
		storage: &guarded{vault: a.vault, keyID: s.data.AuthKeyID, raw: s.raw},
		self:    s.self,
		cancel:  cancel,
		ready:   make(chan struct{}),
		done:    make(chan struct{}),
	}
	l.probe.Store(s.refused != nil)
	l.client = a.client(l.storage)
	go func() {
		defer close(l.done)
		defer cancel()
		l.err = l.client.Run(run, func(ctx context.Context) error {
			close(l.ready)
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	return l, nil
}

// release ends a use of l; a link that nothing uses is closed after a while.
func (a *Account) release(l *link) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.uses--
	if a.uses > 0 || a.link != l {
		return
	}
	stamp := a.opts.Now()
	a.idle = stamp
	time.AfterFunc(a.opts.IdleAfter, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.uses == 0 && a.link == l && a.idle.Equal(stamp) {
			l.cancel()
		}
	})
}
