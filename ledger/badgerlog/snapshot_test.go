package badgerlog

import (
	"fmt"
	"testing"
	"time"

	"vesti.nixg.ru/ledger"
)

// TestSharedViewGrowsNotOld: a backlog is claimed with nothing appended
// meanwhile, so that the view which the first claim opened would do for all.
func TestSharedViewGrowsNotOld(t *testing.T) {
	l, err := Open(t.Context(), Options{Dir: t.TempDir(), FreeSpaceFloor: -1, Tick: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	var items []ledger.Item
	for i := range 3 {
		key := fmt.Sprint(i)
		items = append(items, ledger.Item{Source: "a", Key: ledger.NewItemKey("a", key), Text: "text " + key})
	}
	if _, err := l.Append(t.Context(), items); err != nil {
		t.Fatal(err)
	}
	for range items {
		c, err := l.Claim(t.Context(), ledger.ClaimRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Complete(t.Context(), c, ledger.PostClassified{Classification: ledger.Classification{Direction: "tech", Stage: "keyword"}}); err != nil {
			t.Fatal(err)
		}
		for start := time.Now(); l.snapshot.held(); time.Sleep(time.Millisecond) {
			if time.Since(start) > 10*time.Second {
				t.Fatal("the view is held on to")
			}
		}
	}
}

func (s *snapshot) held() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.txn != nil
}
