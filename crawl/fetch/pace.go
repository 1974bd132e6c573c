package fetch

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// pacer keeps requests to one host apart and counts them; it remembers which
// hosts asked to be left alone. Hosts are whatever the caller's keys say.
type pacer struct {
	parallel int
	gap      time.Duration
	now      func() time.Time // pauses; gaps go by the timer's clock

	mu    sync.Mutex
	hosts map[string]*hostPace
	uses  int // acquires since the last sweep
}

type hostPace struct {
	slots   chan struct{}
	users   int       // who holds or waits for a slot
	next    time.Time // the earliest start
	paused  time.Time // until
	strikes int       // pauses in a row
}

// pausedError: the host is not to be asked before until.
type pausedError struct{ until time.Time }

func (e *pausedError) Error() string {
	return fmt.Sprintf("host is paused until %s", e.until.UTC().Format(time.RFC3339))
}

func newPacer(parallel int, gap time.Duration, now func() time.Time) *pacer {
	return &pacer{parallel: parallel, gap: max(gap, 0), now: now, hosts: make(map[string]*hostPace)}
}

// acquire waits for the host's turn and returns what ends it. The error is a
// *pausedError or ctx's.
func (p *pacer) acquire(ctx context.Context, key string) (release func(), err error) {
	h := p.enter(key)
	defer func() {
		if err != nil {
			p.leave(h)
		}
	}()
	if err := p.pausedErr(h); err != nil {
		return nil, err
	}
	select {
	case h.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := p.await(ctx, h); err != nil {
		<-h.slots
		return nil, err
	}
	return sync.OnceFunc(func() {
		<-h.slots
		p.leave(h)
	}), nil
}

// await waits until the gap since the host's last start is over.
func (p *pacer) await(ctx context.Context, h *hostPace) error {
	p.mu.Lock()
	start := time.Now()
	if h.next.After(start) {
		start = h.next
	}
	h.next = start.Add(p.gap)
	p.mu.Unlock()
	if wait := time.Until(start); wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return p.pausedErr(h)
}

func (p *pacer) pausedErr(h *hostPace) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.paused.After(p.now()) {
		return &pausedError{until: h.paused}
	}
	return nil
}

// pause keeps the host from being asked until then. A pause during a pause, by
// a request that was under way, is the same strike.
func (p *pacer) pause(key string, until time.Time) {
	h := p.enter(key)
	defer p.leave(h)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !h.paused.After(p.now()) {
		h.strikes++
	}
	if until.After(h.paused) {
		h.paused = until
	}
}

func (p *pacer) strikes(key string) int {
	h := p.enter(key)
	defer p.leave(h)
	p.mu.Lock()
	defer p.mu.Unlock()
	return h.strikes
}

// forgive ends the count of pauses in a row.
func (p *pacer) forgive(key string) {
	h := p.enter(key)
	defer p.leave(h)
	p.mu.Lock()
	defer p.mu.Unlock()
	h.strikes = 0
}

func (p *pacer) enter(key string) *hostPace {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep()
	h := p.hosts[key]
	if h == nil {
		h = &hostPace{slots: make(chan struct{}, p.parallel)}
		p.hosts[key] = h
	}
	h.users++
	return h
}

func (p *pacer) leave(h *hostPace) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h.users--
}

// sweep forgets, now and then, the hosts that nothing is known of but that they
// were asked. A strike is forgotten a day after its pause.
func (p *pacer) sweep() {
	p.uses++
	if p.uses < 1024 {
		return
	}
	p.uses = 0
	now, forgotten := time.Now(), p.now().Add(-maxPause)
	for key, h := range p.hosts {
		if h.users == 0 && h.next.Before(now) && (h.paused.IsZero() || h.paused.Before(forgotten)) {
			delete(p.hosts, key)
		}
	}
}
