//go:build failpoints

package badgerlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
	"vesti.nixg.ru/ledger/ledgertest"
)

// TestKillAtPoints kills a working process between the steps of what it does,
// and checks as TestKill does.
func TestKillAtPoints(t *testing.T) {
	t.Parallel()
	points := []string{
		"append.begin", "append.queued", "append.written", "claim.granted", "claim.recorded", "complete.begin", "complete.written",
		"commit.before", "commit.after", "settled", "checkpoint.before", "checkpoint.after", "gc.begin", "backup.pair",
	}
	dir := t.TempDir()
	seen := acks{posts: make(map[ledger.PostNum]string), classified: make(map[ledger.PostNum]bool)}
	n := rounds(t, 2*len(points))
	for round := range n {
		point := fmt.Sprintf("%s:%d", points[round%len(points)], 1+rand.IntN(20))
		seen.killAt(t, dir, 1000+round, point, 2*time.Second)
		checkAfterKill(t, dir, &seen)
		if t.Failed() {
			t.Fatalf("round %d, killed at %s", round, point)
		}
	}
	drain(t, dir, &seen)
	t.Logf("%d kills at chosen points, %d posts and %d classifications acknowledged", n, len(seen.posts), len(seen.classified))
}

// killAt runs a child that kills itself at a failpoint, or is killed after limit.
func (a *acks) killAt(t *testing.T, dir string, seed int, failpoint string, limit time.Duration) {
	t.Helper()
	a.child(t, dir, seed, failpoint, limit, func(*time.Timer) {})
}

// TestKillRestore kills a restore while it puts the new store in the old one's
// place: one of the two is there afterwards.
func TestKillRestore(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	file := filepath.Join(t.TempDir(), "backup")
	l, err := badgerlog.Open(t.Context(), crashOptions(dir))
	if err != nil {
		t.Fatal(err)
	}
	add := func(source ledger.Slug) {
		if _, err := l.Append(t.Context(), ledgertest.Items(source, 5)); err != nil {
			t.Fatal(err)
		}
	}
	add("a")
	var b bytes.Buffer
	if _, err := l.Backup(t.Context(), &b, nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	add("b")
	for _, step := range []struct {
		point string
		head  ledger.Seq
	}{{"restore.built", 10}, {"restore.swapped", 5}} {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), crashDir+"="+dir, crashRestore+"="+file, "VESTI_FAILPOINT="+step.point)
		out, err := cmd.CombinedOutput()
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Exited() {
			t.Fatalf("%s: the restore ended by itself: %v\n%s", step.point, err, out)
		}
		if l, err = badgerlog.Open(t.Context(), crashOptions(dir)); err != nil {
			t.Fatalf("killed at %s: %v", step.point, err)
		}
		if l.Head() != step.head {
			t.Errorf("killed at %s: the store's head is %d, want %d", step.point, l.Head(), step.head)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
