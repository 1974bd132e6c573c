package badgerlog

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	badger "github.com/dgraph-io/badger/v4"
)

const upgradeKeys = 15000

// upgradeEnv is the folder of the store that UpgradeChild upgrades.
const upgradeEnv = "VESTI_CRASH_UPGRADE"

func upgradeOptions(t testing.TB, dir string) Options {
	o, err := Options{Dir: dir, FreeSpaceFloor: -1, MemTable: 8 << 20}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// testSteps rewrite every key once each.
func testSteps() []upgrade {
	add := func(c byte) func(_, v []byte) ([]byte, error) {
		return func(_, v []byte) ([]byte, error) { return append(bytes.Clone(v), c), nil }
	}
	return []upgrade{{from: 1, prefix: keyStore, rewrite: add('a')}, {from: 2, prefix: keyStore, rewrite: add('b')}}
}

// oldStore makes a store with keys for testSteps.
func oldStore(t *testing.T, dir string) *Log {
	t.Helper()
	l, err := open(t.Context(), upgradeOptions(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	for from := 0; from < upgradeKeys; from += 1000 {
		err := l.db.Update(func(txn *badger.Txn) error {
			for i := from; i < from+1000; i++ {
				if err := txn.Set(fmt.Appendf([]byte{keyStore}, "test\x00%06d", i), []byte("v")); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// checkUpgraded: each key went through each step once.
func checkUpgraded(t *testing.T, l *Log) {
	t.Helper()
	n := 0
	err := l.db.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{keyStore}})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			v, err := copyValue(it.Item())
			if err != nil || string(v) != "vab" {
				t.Fatalf("%q: %q, %v", it.Item().Key(), v, err)
			}
			n++
		}
		return nil
	})
	if err != nil || n != upgradeKeys || storedFormat(t, l) != 3 {
		t.Errorf("%d keys, format %d, %v", n, storedFormat(t, l), err)
	}
}

// TestUpgradeStopped is stopped after each part of two steps, and goes on with
// the next open.
func TestUpgradeStopped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := oldStore(t, dir)
	stops := 0
	for {
		ctx, cancel := context.WithCancel(t.Context())
		l.opts.Progress = func(string, uint64, uint64) { cancel() }
		err := l.upgrade(ctx, testSteps(), storedFormat(t, l), 3)
		cancel()
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if stops++; stops%10 != 0 {
			continue
		}
		if err := closeBadger(l.db); err != nil {
			t.Fatal(err)
		}
		if l.db, _, err = openBadger(l.opts); err != nil {
			t.Fatal(err)
		}
	}
	if stops < 2*upgradeKeys/upgradeBatch-2 {
		t.Errorf("it was stopped %d times", stops)
	}
	checkUpgraded(t, l)
	if err := l.upgrade(t.Context(), testSteps(), 3, 4); err == nil {
		t.Error("an upgrade without a step")
	}
	if err := closeBadger(l.db); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), upgradeOptions(t, dir)); err == nil {
		t.Error("format 3 was opened")
	}
}

// TestUpgradeKilled kills the process that upgrades, at random moments, until
// one comes to the end.
func TestUpgradeKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := closeBadger(oldStore(t, dir).db); err != nil {
		t.Fatal(err)
	}
	kills := 0
	for !upgradeUntil(t, dir, time.Duration(rand.IntN(40))*time.Millisecond) {
		kills++
	}
	if kills < 3 {
		t.Errorf("only %d were killed", kills)
	}
	t.Logf("%d killed", kills)
	db, _, err := openBadger(upgradeOptions(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	checkUpgraded(t, &Log{db: db})
	if err := closeBadger(db); err != nil {
		t.Fatal(err)
	}
}

// upgradeUntil lets a process upgrade for a time and kills it. It reports
// whether that had come to its end.
func upgradeUntil(t *testing.T, dir string, wait time.Duration) bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), upgradeEnv+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	time.Sleep(wait)
	_ = cmd.Process.Kill() // it may have ended
	return cmd.Wait() == nil
}

// UpgradeChild upgrades the store that the environment names and reports
// whether there is one.
func UpgradeChild() (bool, error) {
	dir := os.Getenv(upgradeEnv)
	if dir == "" {
		return false, nil
	}
	o, err := Options{Dir: dir, FreeSpaceFloor: -1, MemTable: 8 << 20}.withDefaults()
	if err != nil {
		return true, err
	}
	db, _, err := openBadger(o)
	if err != nil {
		return true, err
	}
	l := &Log{opts: o, db: db}
	format, err := formatOf(l)
	if err != nil {
		return true, err
	}
	fmt.Println("open")
	return true, errors.Join(l.upgrade(context.Background(), testSteps(), format, 3), closeBadger(db))
}

func storedFormat(t *testing.T, l *Log) uint8 {
	t.Helper()
	format, err := formatOf(l)
	if err != nil {
		t.Fatal(err)
	}
	return format
}

func formatOf(l *Log) (format uint8, err error) {
	err = l.db.View(func(txn *badger.Txn) error {
		b, err := txnGet(txn, []byte(controlFormat))
		if err == nil && len(b) != 1 {
			err = errDamaged
		}
		if err == nil {
			format = b[0]
		}
		return err
	})
	return format, err
}
