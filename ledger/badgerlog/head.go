package badgerlog

import (
	"context"
	"sync"
	"sync/atomic"

	"vesti.nixg.ru/ledger"
)

// head is the newest durable Seq, and wakes those who wait for a newer one.
type head struct {
	seq atomic.Uint64

	mu     sync.Mutex
	moved  chan struct{} // closed and replaced when seq grows; nil while nobody waits
	closed bool
}

func (h *head) get() ledger.Seq { return ledger.Seq(h.seq.Load()) }

func (h *head) advance(s ledger.Seq) {
	if ledger.Seq(h.seq.Load()) == s {
		return
	}
	h.seq.Store(uint64(s))
	h.wake()
}

func (h *head) wake() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.moved != nil {
		close(h.moved)
		h.moved = nil
	}
}

// close wakes everybody; wait returns ErrClosed from now on.
func (h *head) close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.wake()
}

func (h *head) wait(ctx context.Context, after ledger.Seq) error {
	for {
		h.mu.Lock()
		if h.get() > after {
			h.mu.Unlock()
			return nil
		}
		if h.closed {
			h.mu.Unlock()
			return ledger.ErrClosed
		}
		if h.moved == nil {
			h.moved = make(chan struct{})
		}
		moved := h.moved
		h.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
