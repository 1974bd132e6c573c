package badgerlog_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
	"vesti.nixg.ru/ledger/ledgertest"
)

// The child process of the crash tests is this test binary with crashDir set.
const (
	crashDir   = "VESTI_CRASH_DIR"
	crashSeed  = "VESTI_CRASH_SEED"
	crashClass = "VESTI_CRASH_DURABILITY"
	crashCalm  = "VESTI_CRASH_CALM" // set: no backup and no compaction
	// crashRestore is a backup that the child restores instead.
	crashRestore = "VESTI_CRASH_RESTORE"
	crashOpen    = "VESTI_CRASH_OPEN"  // set: the child opens the store, says what that took, and ends
	crashLarge   = "VESTI_CRASH_LARGE" // set: the store has the default sizes

	crashOpened = "open" // what the child says when its store is
)

func TestMain(m *testing.M) {
	if is, err := badgerlog.UpgradeChild(); is {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if dir := os.Getenv(crashDir); dir != "" {
		child := crashChild
		switch {
		case os.Getenv(crashRestore) != "":
			child = restoreChild
		case os.Getenv(crashDamage) != "":
			child = damageChild
		case os.Getenv(crashOpen) != "":
			child = openChild
		}
		if err := child(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// rounds is how often a crash test kills: VESTI_CRASH_ROUNDS, else def.
func rounds(t *testing.T, def int) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("VESTI_CRASH_ROUNDS"))
	if err != nil || n <= 0 {
		return def
	}
	return n
}

func crashOptions(dir string) badgerlog.Options {
	if os.Getenv(crashLarge) != "" {
		return badgerlog.Options{Dir: dir, FreeSpaceFloor: -1}
	}
	o := badgerlog.Options{
		Dir: dir, FreeSpaceFloor: -1, Tick: 2 * time.Millisecond, GCInterval: 100 * time.Millisecond,
		MemTable: 2 << 20, BlockCache: 4 << 20, IndexCache: 4 << 20, ValueLogFile: 2 << 20,
		MaxAttempts: 4, RetryFirst: 5 * time.Millisecond, RetryMax: 20 * time.Millisecond,
	}
	if os.Getenv(crashClass) == "relaxed" {
		o.Durability = badgerlog.Relaxed
	}
	return o
}

// TestKill kills a process that appends, claims, completes and projects, at
// random moments, and checks after each kill that nothing acknowledged is lost,
// nothing classified twice and nothing stuck. Every fourth moment may come before
// the store is open, the others count from there.
func TestKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	seen := acks{posts: make(map[ledger.PostNum]string), classified: make(map[ledger.PostNum]bool)}
	n := rounds(t, 30)
	for round := range n {
		wait := time.Duration(rand.IntN(400)) * time.Millisecond
		seen.kill(t, dir, round, wait, round%4 != 0)
		checkAfterKill(t, dir, &seen)
		if t.Failed() {
			t.Fatalf("round %d of %d, killed after %v", round, n, wait)
		}
	}
	drain(t, dir, &seen)
	t.Logf("%d kills, %d posts and %d classifications acknowledged", n, len(seen.posts), len(seen.classified))
}

// acks is what children were told.
type acks struct {
	posts      map[ledger.PostNum]string
	classified map[ledger.PostNum]bool
}

// kill runs a child, kills it after wait, and takes down what it was told. wait
// counts from its start or, with opened, from when its store is open.
func (a *acks) kill(t *testing.T, dir string, seed int, wait time.Duration, opened bool) {
	t.Helper()
	limit := wait
	if opened {
		limit = time.Minute
	}
	a.child(t, dir, seed, "", limit, func(timer *time.Timer) {
		if opened {
			timer.Reset(wait)
		}
	})
}

// child runs a child until it is killed, by the timer at the latest, which
// opened may set anew once the child has its store open.
func (a *acks) child(t *testing.T, dir string, seed int, failpoint string, limit time.Duration, opened func(*time.Timer)) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), crashDir+"="+dir, crashSeed+"="+strconv.Itoa(seed), "VESTI_FAILPOINT="+failpoint)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	if err := a.read(out, func() { opened(timer) }); err != nil {
		t.Error(err)
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Exited() {
		t.Errorf("the child ended by itself: %v\n%s", err, stderr.String())
	}
}

func (a *acks) read(out io.Reader, opened func()) error {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == crashOpened {
			opened()
			continue
		}
		f := strings.Fields(lines.Text())
		if len(f) < 2 {
			continue // cut by the kill
		}
		n, err := strconv.ParseUint(f[1], 10, 64)
		if err != nil {
			return fmt.Errorf("line %q: %w", lines.Text(), err)
		}
		switch {
		case f[0] == "A" && len(f) == 3 && len(f[2]) == 64:
			a.posts[ledger.PostNum(n)] = f[2]
		case f[0] == "C" && len(f) == 3 && f[2] == ".":
			a.classified[ledger.PostNum(n)] = true
		}
	}
	return nil
}

func checkAfterKill(t *testing.T, dir string, seen *acks) {
	t.Helper()
	started := time.Now()
	l, err := badgerlog.Open(t.Context(), crashOptions(dir))
	if err != nil {
		t.Fatalf("open after a kill: %v", err)
	}
	if took := time.Since(started); took > 10*time.Second {
		t.Errorf("the open took %v", took)
	}
	checkAcks(t, l, seen)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func checkAcks(t *testing.T, l *badgerlog.Log, seen *acks) {
	t.Helper()
	report := ledgertest.Check(t, l)
	ids := make(map[ledger.PostNum]string)
	type judged struct { // once per revision: a changed text is judged again
		post     ledger.PostNum
		revision int
	}
	classified := make(map[judged]int)
	posts := make(map[ledger.PostNum]bool)
	events := 0
	for after := ledger.Seq(0); ; {
		page, err := l.Read(t.Context(), after, 5000)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			if e.Seq != after+1 {
				t.Errorf("event %d follows %d", e.Seq, after)
			}
			after = e.Seq
			switch p := e.Payload.(type) {
			case ledger.PostFetched:
				ids[e.Post] = p.ID.String()
			case ledger.PostClassified:
				classified[judged{e.Post, p.Revision}]++
				posts[e.Post] = true
				events++
			}
		}
	}
	for n, id := range seen.posts {
		if ids[n] != id {
			t.Errorf("acknowledged post %d (%s) is %q", n, id, ids[n])
		}
	}
	for n := range seen.classified {
		if !posts[n] {
			t.Errorf("the acknowledged classification of post %d is gone", n)
		}
	}
	for j, times := range classified {
		if times != 1 {
			t.Errorf("revision %d of post %d was classified %d times", j.revision, j.post, times)
		}
	}
	if report.Posts != len(ids) || report.Classified > len(posts) || report.Posts != report.Pending+report.Classified+report.Parked {
		t.Errorf("the report %+v, events say %d posts, %d classified", report, len(ids), len(posts))
	}
	checkCounter(t, l, len(ids), events)
}

// drain brings every post to its end: nothing may be stuck.
func drain(t *testing.T, dir string, seen *acks) {
	t.Helper()
	l, err := badgerlog.Open(t.Context(), crashOptions(dir))
	if err != nil {
		t.Fatal(err)
	}
	parked, err := l.Parked(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parked {
		_, err := l.Record(t.Context(), ledger.NewEvent(ledger.ActorOperator, p, "", ledger.PostReturned{Reason: ledger.ReturnReplay, Lane: ledger.LaneBackfill}))
		if err != nil {
			t.Fatal(err)
		}
	}
	for {
		c, err := l.Claim(t.Context(), ledger.ClaimRequest{NoWait: true, Stages: []ledger.Stage{ledger.StageFirst, ledger.StageLLM}})
		if errors.Is(err, ledger.ErrQueueEmpty) {
			if l.Queue().Waiting == 0 {
				break
			}
			time.Sleep(5 * time.Millisecond)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Complete(t.Context(), c, ledgertest.Decision("linux")); err != nil {
			t.Fatal(err)
		}
	}
	followCounter(t.Context(), l, l.Head())
	checkAcks(t, l, seen)
	if report := ledgertest.Check(t, l); report.Classified != report.Posts {
		t.Errorf("stuck: %d posts, %d classified, %d pending, %d parked", report.Posts, report.Classified, report.Pending, report.Parked)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// crashChild works until it is killed.
func crashChild(dir string) error {
	ctx := context.Background()
	l, err := badgerlog.Open(ctx, crashOptions(dir))
	if err != nil {
		return err
	}
	seed, err := strconv.Atoi(os.Getenv(crashSeed))
	if err != nil {
		return err
	}
	fmt.Println(crashOpened)
	var mu sync.Mutex
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf(format+"\n", args...)
	}
	failed := make(chan error, 16)
	for w := range 3 {
		go func() { failed <- crashAppend(ctx, l, fmt.Sprintf("%d-%d", seed, w), say) }()
	}
	for w := range 8 {
		go func() { failed <- crashWork(ctx, l, fmt.Sprint(w), say) }()
	}
	go func() { failed <- followCounter(ctx, l, forever) }()
	if os.Getenv(crashCalm) == "" {
		go func() { failed <- crashMaintain(ctx, l) }()
	}
	return <-failed
}

func openChild(dir string) error {
	started := time.Now()
	l, err := badgerlog.Open(context.Background(), crashOptions(dir))
	if err != nil {
		return err
	}
	fmt.Printf("%v, %s\n", time.Since(started), memory())
	return l.Close()
}

func restoreChild(dir string) error {
	f, err := os.Open(os.Getenv(crashRestore))
	if err != nil {
		return err
	}
	_, err = badgerlog.Restore(context.Background(), crashOptions(dir), []io.Reader{f})
	return err
}

// crashMaintain backs up and compacts all the time.
func crashMaintain(ctx context.Context, l *badgerlog.Log) error {
	for {
		if _, err := l.Backup(ctx, io.Discard, nil, nil); err != nil {
			return err
		}
		if _, err := l.Compact(ctx); err != nil {
			return err
		}
	}
}

func crashAppend(ctx context.Context, l *badgerlog.Log, name string, say func(string, ...any)) error {
	slug := ledger.Slug("s" + name)
	for n := 0; ; {
		items := make([]ledger.Item, 0, 20)
		for range 1 + rand.IntN(20) {
			item := ledgertest.Item(slug, fmt.Sprint(n))
			item.Lane = ledger.Lane(n % ledger.LaneCount)
			switch rand.IntN(6) {
			case 0, 1: // a duplicate
				item = ledgertest.Item(slug, fmt.Sprint(rand.IntN(n+1)))
			case 2: // a revision
				item.Text = ledgertest.Text(fmt.Sprint(slug, n, "revised"))
				item.Key = ledger.NewItemKey(slug, fmt.Sprint(rand.IntN(n+1)))
				item.Text += " " + string(item.Key)
			}
			items = append(items, item)
			n++
		}
		out, err := l.Append(ctx, items)
		if err != nil {
			return err
		}
		for _, a := range out {
			say("A %d %s", a.Post, a.ID)
		}
		_, err = l.Record(ctx, ledgertest.Run(slug, len(items)))
		if err != nil {
			return err
		}
	}
}

func crashWork(ctx context.Context, l *badgerlog.Log, name string, say func(string, ...any)) error {
	for n := 0; ; n++ {
		c, err := l.Claim(ctx, ledger.ClaimRequest{Worker: name, Stages: []ledger.Stage{ledger.StageFirst, ledger.StageLLM}})
		if err != nil {
			return err
		}
		switch r := rand.IntN(20); {
		case r < 2:
			_, err = l.Fail(ctx, c, ledger.Failure{Cause: ledger.CauseBadReply})
		case r == 2:
			err = l.Release(ctx, c, ledger.PostReturned{Reason: ledger.ReturnStage, Stage: ledger.StageLLM})
		case r == 3:
			err = l.Complete(ctx, c, ledgertest.Decision("linux"))
			if err == nil {
				say("C %d .", c.Post)
			}
		default:
			err = l.CompleteLater(ctx, c, ledgertest.Decision("tech"), func(err error) {
				if err == nil {
					say("C %d .", c.Post)
				}
			})
		}
		if err != nil && !errors.Is(err, ledger.ErrStale) {
			return err
		}
	}
}
