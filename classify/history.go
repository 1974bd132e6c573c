package classify

import (
	"context"
	"fmt"

	"vesti.nixg.ru/ledger"
)

// History is what is read of the ledger to judge history again and to learn
// from it. The contracts are in ledger/DESIGN.md.
type History interface {
	Head() ledger.Seq
	Read(ctx context.Context, after ledger.Seq, limit int) ([]ledger.Event, error)
	ReadTexts(ctx context.Context, after ledger.Seq, limit int) ([]ledger.Event, error)
	Post(ctx context.Context, post ledger.PostNum) (ledger.Post, error)
}

// batch is how many events are read at once.
const batch = 1000

// eachEvent calls f with the events after a Seq up to head, in order.
func eachEvent(ctx context.Context, h History, after, head ledger.Seq, texts bool, f func(ledger.Event) error) error {
	read := h.Read
	if texts {
		read = h.ReadTexts
	}
	for after < head {
		events, err := read(ctx, after, batch)
		if err != nil {
			return fmt.Errorf("read history: %w", err)
		}
		if len(events) == 0 {
			return nil
		}
		for _, e := range events {
			if e.Seq > head {
				return nil
			}
			if err := f(e); err != nil {
				return err
			}
		}
		after = events[len(events)-1].Seq
	}
	return nil
}
