package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"vesti.nixg.ru/ledger"
)

// smallDisk mounts a disk of so many MiB, for root only.
func smallDisk(t *testing.T, mib int) string {
	t.Helper()
	dir := t.TempDir()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", mib)); err != nil {
		t.Skipf("no way to mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// leave fills the disk of dir up to so many MiB and returns what empties it.
func leave(t *testing.T, dir string, mib int) (empty func()) {
	t.Helper()
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		t.Fatal(err)
	}
	hog, err := os.Create(filepath.Join(dir, "hog"))
	if err != nil {
		t.Fatal(err)
	}
	take := int64(disk.Bavail)*disk.Bsize - int64(mib)<<20
	if err := syscall.Fallocate(int(hog.Fd()), 0, 0, take); err != nil && (mib > 0 || !errors.Is(err, syscall.ENOSPC)) {
		t.Fatal(err)
	}
	for chunk := make([]byte, 4096); mib == 0 && err == nil; { // others write beside it
		_, err = hog.Write(chunk)
	}
	if err := hog.Close(); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(hog.Name()); err != nil {
			t.Fatal(err)
		}
	}
}

// endlessFeed has other entries each time, of some hundred kilobytes.
func endlessFeed(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		now := time.Now().UnixNano()
		fmt.Fprint(w, `<rss version="2.0"><channel><title>endless</title>`)
		for i := range 400 {
			fmt.Fprintf(w, `<item><title>Entry %d</title><guid>%d-%d</guid><description>A kernel of entry %d:`, i, now, i, now)
			for word := range 400 {
				fmt.Fprintf(w, " %x", (now+int64(i*1000+word))*2654435761)
			}
			fmt.Fprint(w, `</description></item>`)
		}
		fmt.Fprint(w, `</channel></rss>`)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// posts counts what the ledger of a desk has, after proving all of it.
func (d *desk) posts() uint64 {
	d.t.Helper()
	var report struct {
		OK    bool   `json:"ok"`
		Posts uint64 `json:"posts"`
	}
	d.json(exitDone, &report, "verify")
	if !report.OK {
		d.t.Errorf("the store is not sound: %+v", report)
	}
	return report.Posts
}

// TestFullDisk: every command stops at the floor, or where the store cannot be
// opened, with an error that says so. None is ended by the kernel, and when
// there is room again all is as it was.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, 200)
	d := newDesk(t)
	d.data = filepath.Join(disk, "data")
	d.sources(oneSource(endlessFeed(t)))
	d.do(exitDone, "crawl", "--all")
	lowers := false // to lower the setting helps
	noSpace := func(args ...string) {
		t.Helper()
		e := d.do(exitFailed, args...)
		if !strings.Contains(e.stderr, ledger.ErrNoSpace.Error()) || !strings.Contains(e.stderr, "free some space") ||
			strings.Contains(e.stderr, "set ledger.free_space to no more than") != lowers {
			t.Errorf("vesti %v: %s", args, e.stderr)
		}
	}

	// Far above what is needed at the least.
	d.env = append(d.env, "VESTI_LEDGER_FREE_SPACE=1GiB")
	lowers = true
	noSpace("crawl", "--all")
	d.env = d.env[:len(d.env)-1]
	lowers = false

	// Up to the floor: what stops there is the run itself, then the command.
	empty := leave(t, disk, 67)
	for n := 0; ; n++ {
		e := d.try("crawl", "--all")
		if e.code == exitFailed {
			break
		}
		if e.code != exitDone && e.code != exitPartial || n == 50 {
			t.Fatalf("crawl %d: exit code %d\n%s", n, e.code, e.stderr)
		}
	}
	noSpace("crawl", "--all")
	stored := d.posts()
	if stored < 100 {
		t.Fatalf("%d posts were stored", stored)
	}

	// Below it, what reads and what gives space back still works.
	empty()
	empty = leave(t, disk, 45)
	noSpace("crawl", "--all")
	noSpace("work")
	noSpace("rebuild", "search")
	noSpace("review", "13", "--pick")
	for _, args := range [][]string{{"status"}, {"search", "kernel"}, {"log", "one"}, {"compact"}} {
		d.do(exitDone, args...)
	}

	// With next to nothing left no command may open the store.
	empty()
	empty = leave(t, disk, 2)
	for _, args := range [][]string{
		{"serve", "--set", "web.listen=127.0.0.1:0"}, {"crawl", "--all"}, {"status"}, {"search", "kernel"}, {"verify"}, {"rebuild"},
	} {
		noSpace(args...)
	}
	empty()
	if got := d.posts(); got != stored {
		t.Errorf("%d posts, there were %d", got, stored)
	}
	d.do(exitDone, "crawl", "--all")
}

// TestDiskFillsUnderServer: others may fill the disk faster than anybody looks.
// Whatever becomes of the server then, what it had stored is there afterwards.
func TestDiskFillsUnderServer(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, 200)
	d := newDesk(t)
	d.data = filepath.Join(disk, "data")
	d.sources(oneSource(endlessFeed(t)))
	s := d.serve()
	d.do(exitDone, "crawl", "--all")
	stored := d.posts()
	empty := leave(t, disk, 0)
	if e := d.try("crawl", "--all"); e.code == exitDone {
		t.Errorf("a crawl onto a full disk was done\n%s", e.stdout)
	}
	for _, args := range [][]string{{"compact"}, {"rebuild", "queue"}, {"review", "13", "--pick"}} {
		if e := d.try(args...); e.code != exitFailed || !strings.Contains(e.stderr, ledger.ErrNoSpace.Error()) {
			t.Errorf("vesti %v on a full disk: exit code %d\n%s", args, e.code, e.stderr)
		}
	}
	d.do(exitDone, "status") // it lives
	if code := s.stop(); code != exitDone {
		t.Errorf("it ended with %d", code)
	}
	empty()
	if got := d.posts(); got < stored {
		t.Errorf("%d posts, there were %d", got, stored)
	}
	d.do(exitDone, "crawl", "--all")
}
