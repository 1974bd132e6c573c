package badgerlog_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
)

// counter is a projection as small as one can be: its checkpoint moves with its
// data.
type counter struct {
	Seq        ledger.Seq
	Posts      int
	Classified int
}

var counterKey = []byte("state")

// forever is further than any ledger goes.
const forever = ledger.Seq(1<<64 - 1)

// followCounter applies events to the counter until upTo.
func followCounter(ctx context.Context, l *badgerlog.Log, upTo ledger.Seq) error {
	s := l.Store(ledger.DerivedNamespace + "counter")
	for {
		c, err := readCounter(ctx, s)
		if err != nil {
			return err
		}
		if c.Seq >= upTo {
			return nil
		}
		if err := l.Wait(ctx, c.Seq); err != nil {
			return err
		}
		events, err := l.Read(ctx, c.Seq, 500)
		if err != nil {
			return err
		}
		for _, e := range events {
			c.Seq = e.Seq
			switch e.Payload.(type) {
			case ledger.PostFetched:
				c.Posts++
			case ledger.PostClassified:
				c.Classified++
			}
		}
		err = s.Update(ctx, func(tx ledger.Tx) error {
			b, err := json.Marshal(c)
			if err != nil {
				return err
			}
			return tx.Set(counterKey, b)
		})
		if err != nil {
			return err
		}
	}
}

func readCounter(ctx context.Context, s ledger.Store) (counter, error) {
	var c counter
	err := s.View(ctx, func(tx ledger.Tx) error {
		b, err := tx.Get(counterKey)
		if errors.Is(err, ledger.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		return json.Unmarshal(b, &c)
	})
	if err != nil {
		return c, fmt.Errorf("counter: %w", err)
	}
	return c, nil
}

// checkCounter brings the counter up to date from where it stood and compares.
func checkCounter(t *testing.T, l *badgerlog.Log, posts, classified int) {
	t.Helper()
	c, err := readCounter(t.Context(), l.Store(ledger.DerivedNamespace+"counter"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Seq > l.Head() {
		t.Errorf("the counter is at %d, the ledger at %d", c.Seq, l.Head())
	}
	if err := followCounter(t.Context(), l, l.Head()); err != nil {
		t.Fatal(err)
	}
	c, err = readCounter(t.Context(), l.Store(ledger.DerivedNamespace+"counter"))
	if err != nil || c.Posts != posts || c.Classified != classified {
		t.Errorf("the counter says %+v, %v; there are %d posts, %d classified", c, err, posts, classified)
	}
}
