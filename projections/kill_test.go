package projections_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
	"vesti.nixg.ru/ledger/ledgertest"
	"vesti.nixg.ru/projections"
	"vesti.nixg.ru/projections/posts"
	"vesti.nixg.ru/projections/search"
)

// childFolder names the folder in which this binary, started anew, works until
// it is killed.
const childFolder = "VESTI_TEST_PROJECTIONS_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childFolder); dir != "" {
		fmt.Fprintln(os.Stderr, workUntilKilled(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func storeOptions(dir string) badgerlog.Options {
	return badgerlog.Options{
		Dir: dir + "/store", Durability: badgerlog.Relaxed, FreeSpaceFloor: -1, MemTable: 8 << 20,
		BlockCache: 8 << 20, IndexCache: 8 << 20, ValueLogFile: 16 << 20, GCInterval: -1,
	}
}

// workUntilKilled appends posts and revisions as fast as it can, classifies
// some, and runs every projection beside that.
func workUntilKilled(dir string) error {
	ctx := context.Background()
	log, err := badgerlog.Open(ctx, storeOptions(dir))
	if err != nil {
		return err
	}
	r, err := projections.New(options(log, newViews(log, dir+"/search").all()...))
	if err != nil {
		return err
	}
	go func() { fmt.Fprintln(os.Stderr, r.Run(ctx)) }()
	fmt.Println("ready")
	for n := int(log.Head()); ; n++ {
		var items []ledger.Item
		for i := range 1 + rand.IntN(20) {
			it := ledgertest.Item("s", fmt.Sprint(n, "-", i))
			if rand.IntN(4) == 0 {
				it = ledgertest.Item("s", fmt.Sprint(rand.IntN(n+1), "-0"))
				it.Text += fmt.Sprint(" исправлено", n)
			}
			items = append(items, it)
		}
		if _, err := log.Append(ctx, items); err != nil {
			return err
		}
		c, err := log.Claim(ctx, ledger.ClaimRequest{Worker: "w", NoWait: true})
		if errors.Is(err, ledger.ErrQueueEmpty) {
			continue
		}
		if err != nil {
			return err
		}
		d := ledgertest.Decision("tech")
		d.Revision = c.Revision
		if err := log.Complete(ctx, c, d); err != nil {
			return err
		}
	}
}

// TestKilledWhileFolding kills a process while its projections write, again and
// again, and finds after each time every post once, in the list and in the
// index.
func TestKilledWhileFolding(t *testing.T) {
	dir := t.TempDir()
	const kills = 6
	for range kills {
		killSoon(t, dir)
		checkOnce(t, dir, false)
	}
	checkOnce(t, dir, true)
}

func killSoon(t *testing.T, dir string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), self)
	child.Env = append(os.Environ(), childFolder+"="+dir)
	var said strings.Builder
	child.Stderr = &said
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the child did not start: %v: %s", err, said.String())
	}
	time.Sleep(time.Duration(100+rand.IntN(500)) * time.Millisecond)
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := child.Wait(); !errors.As(err, &exit) || exit.Exited() {
		t.Fatalf("the child ended by itself: %v: %s", err, said.String())
	}
}

// checkOnce opens what a killed process left, lets the projections catch up, and
// counts. Rebuilt, they must show the same.
func checkOnce(t *testing.T, dir string, rebuild bool) {
	t.Helper()
	log, err := badgerlog.Open(t.Context(), storeOptions(dir))
	if err != nil {
		t.Fatal(err)
	}
	v := newViews(log, dir+"/search")
	r, stop := run(t, options(log, v.all()...))
	defer func() {
		stop()
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}()
	settle(t, log, r)
	fetched := 0
	for after := ledger.Seq(0); after < log.Head(); {
		events, err := log.Read(t.Context(), after, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.Type == ledger.TypePostFetched {
				fetched++
			}
		}
		after = events[len(events)-1].Seq
	}
	list, err := v.posts.List(t.Context(), posts.Request{})
	if err != nil {
		t.Fatal(err)
	}
	found, err := v.search.Search(t.Context(), search.Request{Query: "новость", Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	if list.Total != fetched || found.Total != fetched {
		t.Errorf("%d posts, of which %d are listed and %d found", fetched, list.Total, found.Total)
	}
	t.Logf("%d posts after %d events", fetched, log.Head())
	if !rebuild {
		return
	}
	live := v.picture(t)
	for _, name := range r.Names() {
		if err := r.Rebuild(t.Context(), name, nil); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(live, v.picture(t)); diff != "" {
		t.Errorf("a rebuild shows something else (-live +rebuilt):\n%s", diff)
	}
}
