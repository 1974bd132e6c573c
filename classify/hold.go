package classify

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"vesti.nixg.ru/ledger"
)

// minBeat keeps a lease that is nearly over from making a busy loop.
const minBeat = 10 * time.Millisecond

// held is a claim whose lease is renewed until end.
type held struct {
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu    sync.Mutex
	claim ledger.Claim
	lost  bool
}

// hold renews the claim's lease at every third of it. The context returned is
// that of the work on the claim: it ends when the claim is lost.
func (p *Pool) hold(work context.Context, claim ledger.Claim) (context.Context, *held) {
	ctx, cancel := context.WithCancel(work)
	h := &held{claim: claim, cancel: cancel}
	h.done.Go(func() {
		beat := time.NewTimer(p.beat(claim))
		defer beat.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-beat.C:
			}
			renewed, err := p.queue.Heartbeat(ctx, h.claim)
			switch {
			case err == nil:
				h.set(renewed)
			case errors.Is(err, ledger.ErrStale):
				h.lose()
				return
			case ctx.Err() == nil:
				p.troubles.tell(slog.LevelWarn, "cannot renew a lease", err, slog.Uint64("post", uint64(claim.Post)))
			}
			beat.Reset(p.beat(h.claim))
		}
	})
	return ctx, h
}

func (p *Pool) beat(claim ledger.Claim) time.Duration {
	return max(claim.Lease.Sub(p.now())/3, minBeat)
}

// end stops the heartbeats and returns the claim as last renewed; lost says
// that it is somebody else's by now.
func (h *held) end() (claim ledger.Claim, lost bool) {
	h.cancel()
	h.done.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.claim, h.lost
}

func (h *held) set(claim ledger.Claim) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.claim = claim
}

func (h *held) lose() {
	h.mu.Lock()
	h.lost = true
	h.mu.Unlock()
	h.cancel()
}
