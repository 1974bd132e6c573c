package badgerlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
	"vesti.nixg.ru/ledger/ledgertest"
)

// TestBackupChain backs a store up three times while it changes in every way,
// and compares what each chain restores with what was there.
func TestBackupChain(t *testing.T) {
	t.Parallel()
	c := newClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	still := func(o *badgerlog.Options) { o.Tick = time.Hour } // what waits for its delay waits on
	l := ledgertest.Open(t, ledgertest.Now(c.now), still)
	ctx := t.Context()
	var chain [][]byte
	var infos []badgerlog.BackupInfo
	var want [][]ledger.Event
	for round := range 3 {
		busy(t, l, c, round)
		var since *badgerlog.BackupInfo
		if round > 0 {
			since = &infos[round-1]
		}
		var b bytes.Buffer
		report, err := l.Backup(ctx, &b, since, nil)
		if err != nil {
			t.Fatal(err)
		}
		info, err := badgerlog.ReadBackupInfo(bytes.NewReader(b.Bytes()))
		if err != nil || info != report.BackupInfo || report.Bytes != int64(b.Len()) {
			t.Fatalf("got %+v, %v, want %+v", info, err, report)
		}
		chain, infos = append(chain, b.Bytes()), append(infos, info)
		want = append(want, allEvents(t, l))
	}
	if len(chain[1]) > len(chain[0]) {
		t.Errorf("a link of %d bytes after a whole one of %d", len(chain[1]), len(chain[0]))
	}
	for links := 1; links <= 3; links++ {
		dir := filepath.Join(t.TempDir(), "store")
		report, err := badgerlog.Restore(ctx, badgerlog.Options{Dir: dir, FreeSpaceFloor: -1}, readers(chain[:links]))
		if err != nil || !report.OK() {
			t.Fatalf("restore %d links: %+v, %v", links, report, err)
		}
		r := ledgertest.Open(t, ledgertest.Dir(dir), ledgertest.Now(c.now), still)
		if got := allEvents(t, r); !reflect.DeepEqual(got, want[links-1]) {
			t.Fatalf("%d links: %d events, want %d", links, len(got), len(want[links-1]))
		}
		if links == 3 {
			sameState(t, l, r)
		}
	}
	for name, bad := range map[string][][]byte{
		"a link without the whole one": {chain[1]},
		"a link left out":              {chain[0], chain[2]},
		"links in the wrong order":     {chain[0], chain[2], chain[1]},
		"a cut file":                   {chain[0][:len(chain[0])-20]},
		"a changed byte":               {flip(chain[0])},
		"no backup":                    {[]byte("hello")},
		"two links in one file":        {slices.Concat(chain[0], chain[1])},
		"something behind its end":     {append(bytes.Clone(chain[0]), "junk"...)},
	} {
		dir := filepath.Join(t.TempDir(), "store")
		if _, err := badgerlog.Restore(ctx, badgerlog.Options{Dir: dir, FreeSpaceFloor: -1}, readers(bad)); err == nil {
			t.Errorf("%s: restored", name)
		} else if name != "a changed byte" && !errors.Is(err, badgerlog.ErrBackup) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(dir + ".restoring"); err == nil {
			t.Errorf("%s: something is left", name)
		}
	}
}

func flip(b []byte) []byte {
	b = bytes.Clone(b)
	b[len(b)/2] ^= 4
	return b
}

func readers(files [][]byte) []io.Reader {
	all := make([]io.Reader, len(files))
	for i, f := range files {
		all[i] = bytes.NewReader(f)
	}
	return all
}

// busy does a bit of everything.
func busy(t *testing.T, l *badgerlog.Log, c *clock, round int) {
	t.Helper()
	ctx := t.Context()
	slug := ledger.Slug(fmt.Sprint("s", round))
	fail := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	items := ledgertest.Items(slug, 30)
	_, err := l.Append(ctx, items)
	fail(err)
	items[0].Text = ledgertest.Text(fmt.Sprint("revised", round))
	items[1].Title = "x"
	items[2].Source, items[2].Key = "other", ledger.NewItemKey("other", fmt.Sprint(round))
	_, err = l.Append(ctx, items[:3])
	fail(err)
	for i := range 20 {
		cl, err := l.Claim(ctx, ledger.ClaimRequest{})
		fail(err)
		switch i {
		case 3:
			_, err = l.Fail(ctx, cl, ledger.Failure{Cause: ledger.CauseBadReply, Final: true})
		case 4:
			_, err = l.Fail(ctx, cl, ledger.Failure{Cause: ledger.CauseTimeout})
		default:
			err = l.Complete(ctx, cl, ledgertest.Decision("linux"))
		}
		fail(err)
	}
	for range 3 {
		_, err = l.Record(ctx, ledgertest.Run("s0", 1), ledgertest.Run(slug, 2))
		fail(err)
	}
	fail(l.Store("accounts").Update(ctx, func(tx ledger.Tx) error {
		if err := tx.Delete([]byte(fmt.Sprint(round - 1))); err != nil {
			return err
		}
		return tx.Set([]byte(fmt.Sprint(round)), []byte("who"))
	}))
	fail(l.Store(ledger.DerivedNamespace+"x").Update(ctx, func(tx ledger.Tx) error { return tx.Set([]byte("k"), []byte("v")) }))
	if round > 0 {
		c.move(48 * time.Hour)
		_, err = l.Retain(ctx, badgerlog.Retention{Posts: 72 * time.Hour, Revisions: time.Hour, Runs: time.Hour})
		fail(err)
	}
}

func allEvents(t *testing.T, l *badgerlog.Log) []ledger.Event {
	t.Helper()
	events, err := l.ReadTexts(t.Context(), 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// sameState compares what is not in events.
func sameState(t *testing.T, a, b *badgerlog.Log) {
	t.Helper()
	ctx := t.Context()
	for _, e := range allEvents(t, a) {
		f, ok := e.Payload.(ledger.PostFetched)
		if !ok {
			continue
		}
		pa, errA := a.Post(ctx, e.Post)
		pb, errB := b.Post(ctx, e.Post)
		if errA != nil || errB != nil || !reflect.DeepEqual(pa, pb) {
			t.Fatalf("post %d: %+v, %v; restored: %+v, %v", e.Post, pa, errA, pb, errB)
		}
		ka, errA := a.KnownItems(ctx, []ledger.ItemKey{f.Item.Key})
		kb, errB := b.KnownItems(ctx, []ledger.ItemKey{f.Item.Key})
		if errA != nil || errB != nil || ka[0] != kb[0] {
			t.Fatalf("item %s: %v, restored %v", f.Item.Key, ka, kb)
		}
	}
	err := b.Store("accounts").View(ctx, func(tx ledger.Tx) error {
		n := 0
		err := tx.Scan(nil, nil, func(k, v []byte) (bool, error) {
			n++
			return true, nil
		})
		if n != 1 {
			t.Errorf("%d accounts, want 1", n)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	err = b.Store(ledger.DerivedNamespace+"x").View(ctx, func(tx ledger.Tx) error {
		_, err := tx.Get([]byte("k"))
		return err
	})
	if !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("a projection was restored: %v", err)
	}
	if qa, qb := a.Queue().Waiting, b.Queue().Waiting; qa != qb {
		t.Errorf("%d wait for their delay, restored %d", qa, qb)
	}
}

// TestRestoreInPlace: the old store is kept, and one in use is left alone.
func TestRestoreInPlace(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	l := ledgertest.Open(t, ledgertest.Dir(dir))
	if _, err := l.Append(t.Context(), ledgertest.Items("a", 5)); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := l.Backup(t.Context(), &b, nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(t.Context(), ledgertest.Items("b", 5)); err != nil {
		t.Fatal(err)
	}
	o := badgerlog.Options{Dir: dir, FreeSpaceFloor: -1}
	if _, err := badgerlog.Restore(t.Context(), o, readers([][]byte{b.Bytes()})); !errors.Is(err, ledger.ErrLocked) {
		t.Fatalf("restore over a store in use: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	report, err := badgerlog.Restore(t.Context(), o, readers([][]byte{b.Bytes()}))
	if err != nil || report.Posts != 5 || report.Replaced == "" {
		t.Fatalf("got %+v, %v", report, err)
	}
	if l = ledgertest.Open(t, ledgertest.Dir(report.Replaced)); l.Head() != 10 {
		t.Errorf("the old store's head is %d", l.Head())
	}
	if l = ledgertest.Open(t, ledgertest.Dir(dir)); l.Head() != 5 {
		t.Errorf("the new store's head is %d", l.Head())
	}
}
