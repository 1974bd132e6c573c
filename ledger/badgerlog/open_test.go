package badgerlog_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	badger "github.com/dgraph-io/badger/v4"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
	"vesti.nixg.ru/ledger/ledgertest"
)

// TestLocked: while another process has the store, an open says so at once and
// leaves that process alone.
func TestLocked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), crashDir+"="+dir, crashSeed+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 64)); err != nil { // it is at work
		t.Fatal(err)
	}
	started := time.Now()
	_, err = badgerlog.Open(t.Context(), crashOptions(dir))
	if !errors.Is(err, ledger.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("%s (process %d)", dir, cmd.Process.Pid)) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(started); took > 8*time.Second {
		t.Errorf("it took %v", took)
	}
	if _, err := out.Read(make([]byte, 64)); err != nil {
		t.Errorf("the other process: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	l := ledgertest.Open(t, ledgertest.Dir(dir))
	if l.Head() == 0 {
		t.Error("what the other process wrote is gone")
	}
}

// TestNewerFormat: a store of a later version is refused and not touched.
func TestNewerFormat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	closed(t, dir, func(*badgerlog.Log) {})
	db, err := badger.Open(badger.DefaultOptions(dir).WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(txn *badger.Txn) error { return txn.Set([]byte("cformat"), []byte{99}) })
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	_, err = badgerlog.Open(t.Context(), crashOptions(dir))
	if !errors.Is(err, ledger.ErrNewer) || !strings.Contains(err.Error(), "99") {
		t.Errorf("got %v", err)
	}
}

// closed opens a store, has use use it, and closes it.
func closed(t *testing.T, dir string, use func(*badgerlog.Log)) {
	t.Helper()
	l := ledgertest.Open(t, ledgertest.Dir(dir))
	use(l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedFiles: empty and cut files, as crashes leave them, do not keep the
// store from opening; what is really damaged is named.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"00009.mem", "000009.vlog"} {
		t.Run("empty "+name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			closed(t, dir, func(l *badgerlog.Log) {
				if _, err := l.Append(t.Context(), ledgertest.Items("a", 10)); err != nil {
					t.Fatal(err)
				}
			})
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			closed(t, dir, func(l *badgerlog.Log) {
				if l.Head() != 10 {
					t.Errorf("head %d", l.Head())
				}
				ledgertest.Check(t, l)
			})
		})
	}
	t.Run("cut table", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		closed(t, dir, func(l *badgerlog.Log) {
			if _, err := l.Append(t.Context(), ledgertest.Items("a", 500)); err != nil {
				t.Fatal(err)
			}
		})
		tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
		if err != nil || len(tables) == 0 {
			t.Fatalf("no table: %v", err)
		}
		if err := os.Truncate(tables[0], 100); err != nil {
			t.Fatal(err)
		}
		l, err := badgerlog.Open(t.Context(), crashOptions(dir))
		if err == nil {
			_ = l.Close()
			t.Fatal("a store with a cut table was opened as if it were whole")
		}
		if !strings.Contains(err.Error(), dir) {
			t.Errorf("the error does not name the store: %v", err)
		}
	})
}

// TestNoSpace: below the floor no work is taken on, what is in hand can be
// ended, and work goes on when there is room.
func TestNoSpace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	closed(t, dir, func(l *badgerlog.Log) {
		if _, err := l.Append(t.Context(), ledgertest.Items("a", 3)); err != nil {
			t.Fatal(err)
		}
	})
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		t.Fatal(err)
	}
	// A floor just below what is free: a file brings the disk below it.
	const margin = 64 << 20
	free := int64(fs.Bavail) * fs.Bsize
	l := ledgertest.Open(t, ledgertest.Dir(dir), func(o *badgerlog.Options) { o.FreeSpaceFloor = free - margin })
	c, err := l.Claim(t.Context(), ledger.ClaimRequest{})
	if err != nil {
		t.Skipf("others use the disk: %v", err)
	}
	hog := filepath.Join(t.TempDir(), "hog")
	f, err := os.Create(hog)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Fallocate(int(f.Fd()), 0, 0, 16*margin); err != nil {
		t.Skipf("no way to take space: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the floor is seen", func() bool {
		_, err := l.Append(t.Context(), ledgertest.Items("b", 1))
		return errors.Is(err, ledger.ErrNoSpace)
	})
	if _, err := l.Claim(t.Context(), ledger.ClaimRequest{}); !errors.Is(err, ledger.ErrNoSpace) {
		t.Errorf("claim: %v", err)
	}
	if err := l.Complete(t.Context(), c, ledgertest.Decision("linux")); err != nil {
		t.Errorf("what is in hand: %v", err)
	}
	if err := os.Remove(hog); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "work goes on", func() bool {
		_, err := l.Append(t.Context(), ledgertest.Items("c", 1))
		return err == nil
	})
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

// TestReadOnlyFolder: a folder that cannot be written is an error that says so.
// As root rights do not bind, it needs a mount.
func TestReadOnlyFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if os.Geteuid() == 0 {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_RDONLY, ""); err != nil {
			t.Skipf("no way to mount: %v", err)
		}
		t.Cleanup(func() {
			if err := syscall.Unmount(dir, 0); err != nil {
				t.Error(err)
			}
		})
	} else if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	_, err := badgerlog.Open(t.Context(), badgerlog.Options{Dir: filepath.Join(dir, "store")})
	if !errors.Is(err, ledger.ErrReadOnly) {
		t.Errorf("got %v", err)
	}
}

// TestClockJumps: a clock that was years ahead and comes back keeps nothing
// waiting, and Seqs go on.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	c := newClock(time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC))
	dir := t.TempDir()
	opts := []ledgertest.Option{ledgertest.Dir(dir), ledgertest.Now(c.now), ledgertest.Retry(3, time.Minute, time.Hour)}
	l := ledgertest.Open(t, opts...)
	if _, err := l.Append(t.Context(), ledgertest.Items("a", 1)); err != nil {
		t.Fatal(err)
	}
	cl, err := l.Claim(t.Context(), ledger.ClaimRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Fail(t.Context(), cl, ledger.Failure{Cause: ledger.CauseTimeout}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c.set(c.now().AddDate(-10, 0, 0))
	l = ledgertest.Open(t, opts...)
	if cl, err = l.Claim(t.Context(), ledger.ClaimRequest{}); err != nil || cl.Attempt != 2 {
		t.Fatalf("got %+v, %v", cl, err)
	}
	if err := l.Complete(t.Context(), cl, ledgertest.Decision("linux")); err != nil {
		t.Fatal(err)
	}
}
