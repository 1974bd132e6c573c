package badgerlog

import (
	"testing"
	"time"

	badger "github.com/dgraph-io/badger/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"vesti.nixg.ru/ledger"
)

func testItem(guid, text string) ledger.Item {
	return ledger.Item{
		Source: "a", Key: ledger.NewItemKey("a", guid), URL: "https://a.example.org/" + guid, CanonicalURL: "https://a.example.org/" + guid,
		Title: guid, Text: text, Lane: ledger.LaneP1,
	}
}

func openSmall(t *testing.T, r prometheus.Registerer) *Log {
	t.Helper()
	l, err := Open(t.Context(), Options{
		Dir: t.TempDir(), Durability: Relaxed, FreeSpaceFloor: -1, MemTable: 8 << 20, GCInterval: -1, Registerer: r, Tick: time.Millisecond,
		RetryFirst: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// TestVerifyRepairs spoils every kind of derived key and has it put right.
func TestVerifyRepairs(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	l := openSmall(t, nil)
	texts := []string{"Первый текст из нескольких слов", "Второй текст из нескольких слов", "Третий текст из нескольких слов", "Четвёртый текст из нескольких слов"}
	var items []ledger.Item
	for i, text := range texts {
		items = append(items, testItem(string(rune('1'+i)), text))
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := l.Append(ctx, items)
	must(err)
	c, err := l.Claim(ctx, ledger.ClaimRequest{})
	must(err)
	_, err = l.Fail(ctx, c, ledger.Failure{Cause: ledger.CauseTimeout})
	must(err)
	c, err = l.Claim(ctx, ledger.ClaimRequest{})
	must(err)
	_, err = l.Fail(ctx, c, ledger.Failure{Cause: ledger.CauseBadReply, Final: true})
	must(err)
	items[2].Text = texts[3] // becomes what another post is
	_, err = l.Append(ctx, items[2:3])
	must(err)
	_, err = l.Record(ctx, ledger.NewEvent(ledger.ActorCrawler, 0, "a", ledger.SourceCrawled{Run: ledger.Run{New: 4}}))
	must(err)

	check := func(repair bool) VerifyReport {
		t.Helper()
		r, err := l.Verify(ctx, VerifyOptions{Repair: repair})
		must(err)
		return r
	}
	if r := check(false); !r.OK() || r.Posts != 4 || r.Parked != 1 {
		t.Fatalf("before: %+v", r)
	}
	for _, prefix := range []byte{keyHash, keyItem, keyURL, keyVariant, keyPost, keyReady, keyDelayed, keyParked, keyPostIdx, keySrcIdx, keySource} {
		if prefix == keyPostIdx || prefix == keySource {
			continue // below
		}
		spoil(t, l, prefix)
		broken := check(false)
		if broken.OK() {
			t.Errorf("%c: its absence went unnoticed", prefix)
			continue
		}
		if r := check(true); !r.OK() {
			t.Errorf("%c: not put right: %+v", prefix, r)
		}
		if r := check(false); r.Problems != 0 {
			t.Errorf("%c: after the repair: %+v", prefix, r)
		}
	}
	// Everything can be claimed still.
	for range 2 {
		c, err := l.Claim(ctx, ledger.ClaimRequest{NoWait: true})
		must(err)
		must(l.Complete(ctx, c, ledger.PostClassified{Classification: ledger.Classification{Direction: "linux"}}))
	}
	// A text that is gone cannot be had again, and is named.
	spoil(t, l, keyBody)
	if r := check(true); r.OK() {
		t.Error("a text that is gone went unnoticed")
	}
}

// spoil removes all keys of a prefix, and plants one that nothing stands behind.
func spoil(t *testing.T, l *Log, prefix byte) {
	t.Helper()
	err := l.db.Update(func(txn *badger.Txn) error {
		var keys [][]byte
		it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{prefix}})
		for it.Rewind(); it.Valid(); it.Next() {
			keys = append(keys, it.Item().KeyCopy(nil))
		}
		it.Close()
		if len(keys) == 0 {
			t.Fatalf("%c: there is none", prefix)
		}
		for _, k := range keys {
			if err := txn.Delete(k); err != nil {
				return err
			}
		}
		if prefix == keyReady {
			return txn.Set(readyKey(queueID{0, ledger.LaneP2}, 1<<40), seqBytes(1))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestMetrics: what happens is counted, and the metrics are taken back at close.
func TestMetrics(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	l := openSmall(t, r)
	if _, err := l.Append(t.Context(), []ledger.Item{testItem("1", "текст"), testItem("1", "текст"), testItem("2", "ещё")}); err != nil {
		t.Fatal(err)
	}
	c, err := l.Claim(t.Context(), ledger.ClaimRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Fail(t.Context(), c, ledger.Failure{Cause: "made up", Final: true}); err != nil {
		t.Fatal(err)
	}
	if _, err = l.Claim(t.Context(), ledger.ClaimRequest{}); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]float64{
		"new":    testutil.ToFloat64(l.metrics.items.WithLabelValues("new")) - 2,
		"known":  testutil.ToFloat64(l.metrics.items.WithLabelValues("known")) - 1,
		"parked": testutil.ToFloat64(l.metrics.parked.WithLabelValues(string(ledger.CauseInternal))) - 1,
		"claims": testutil.ToFloat64(l.metrics.claims.WithLabelValues("first", "p1")) - 2,
		"failed": testutil.ToFloat64(l.metrics.events.WithLabelValues("PostFailed")) - 1,
	} {
		if got != 0 {
			t.Errorf("%s is off by %v", name, got)
		}
	}
	problems, err := testutil.GatherAndLint(r)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	families, err := r.Gather()
	if err != nil || len(families) < 20 {
		t.Errorf("%d metrics, %v", len(families), err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if families, err = r.Gather(); err != nil || len(families) > 0 {
		t.Errorf("%d metrics after the close, %v", len(families), err)
	}
}
