package badgerlog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"vesti.nixg.ru/ledger"
)

// rot changes a file as a disk does by itself: in place, and as if long ago.
func rot(t *testing.T, path string, b []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(b)
	before := time.Now().Add(-time.Hour)
	if err := errors.Join(err, f.Close(), os.Chtimes(path, before, before)); err != nil {
		t.Fatal(err)
	}
}

// TestDailyCheck: a table that goes bad without being written, as on a failing
// disk, is found within a day, by whichever comes first, a check of the running
// store or an opening, and one that was written at the next opening.
func TestDailyCheck(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := t.TempDir()
	l := openFor(t, dir)
	for n := range 20 {
		if _, err := l.Append(ctx, []ledger.Item{testItem(fmt.Sprint(n+1), noise(n, 2000))}); err != nil {
			t.Fatal(err)
		}
	}
	closeLog(t, l)
	if readChecked(dir).all.IsZero() {
		t.Fatal("what is known is not noted")
	}

	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal("no table", err)
	}
	path := tables[0]
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/3] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	refused := func(when string) {
		t.Helper()
		l, err := Open(ctx, l.opts)
		if err == nil {
			closeLog(t, l)
		}
		if !errors.Is(err, errDamaged) {
			t.Errorf("%s: %v", when, err)
		}
	}
	refused("a table was written since the store was closed")

	b[len(b)/3] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	l = openFor(t, dir)
	b[len(b)/3] ^= 1
	rot(t, path, b)
	if err := l.scrub(ctx); err != nil || l.Err() != nil {
		t.Fatal("it was checked twice within a day:", err, l.Err())
	}
	l.checked.all = time.Now().Add(-checkEvery - time.Minute)
	if err := l.scrub(ctx); err != nil {
		t.Fatal(err)
	}
	if err := l.Err(); !errors.Is(err, errDamaged) {
		t.Errorf("the daily check found nothing: %v", err)
	}
	if n := testutil.ToFloat64(l.metrics.damaged); n != 1 {
		t.Errorf("%v damaged places", n)
	}
	if _, err := l.Append(ctx, []ledger.Item{testItem("new", "Текст")}); !errors.Is(err, errDamaged) {
		t.Errorf("append on a damaged store: %v", err)
	}
	closeLog(t, l)
	if err := (checked{all: time.Now().Add(-checkEvery - time.Minute), sound: time.Now()}).write(dir); err != nil {
		t.Fatal(err)
	}
	refused("the last check was yesterday's")
	if err := (checked{all: time.Now(), sound: time.Now(), opened: maxOpened}).write(dir); err != nil {
		t.Fatal(err)
	}
	refused("the last processes all died")

	b[len(b)/3] ^= 1
	rot(t, path, b)
	l = openFor(t, dir)
	defer closeLog(t, l)
	if r, err := l.Verify(ctx, VerifyOptions{}); err != nil || !r.OK() || r.Posts != 20 {
		t.Errorf("with the table as it was: %+v, %v", r, err)
	}
}
