package badgerlog_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
	"vesti.nixg.ru/ledger/ledgertest"
)

// TestFlatCost appends VESTI_FLAT posts, claims and completes them all, and
// reports tenth by tenth what that cost, then the same for a tenth of them
// behind the tombstones. It fails where the second half of the claims goes at
// less than 0.8 of the first half's rate by processor time, which other work on
// the machine disturbs little. Appends cost more as the tree grows, by its
// logarithm. VESTI_FLAT_DIR keeps the store; with one that has its posts the test
// goes on with the claims.
func TestFlatCost(t *testing.T) {
	n := envInt("VESTI_FLAT", 0)
	if n == 0 {
		t.Skip("set VESTI_FLAT to a number of posts")
	}
	dir := os.Getenv("VESTI_FLAT_DIR")
	if dir == "" {
		dir = t.TempDir()
	}
	o := badgerlog.Options{Dir: dir, Durability: badgerlog.Relaxed, FreeSpaceFloor: -1}
	l, err := badgerlog.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	measure := func(what string, n int, step func(from, n int, timed func(func()))) float64 {
		var cpu [10]time.Duration
		for i := range 10 {
			var wall time.Duration
			step(i*n/10, n/10, func(f func()) {
				started, used := time.Now(), cpuTime(t)
				f()
				wall, cpu[i] = wall+time.Since(started), cpu[i]+cpuTime(t)-used
			})
			t.Logf("%s, tenth %d: %.0f posts/s, %.1f µs of processor a post, %s", what, i+1,
				float64(n/10)/wall.Seconds(), float64(cpu[i].Microseconds())/float64(n/10), memory())
		}
		first, second := sum(cpu[:5]), sum(cpu[5:])
		t.Logf("%s: the second half at %.2f of the first half's rate", what, float64(first)/float64(second))
		return float64(first) / float64(second)
	}
	prose := ledgertest.NewProse(1)
	if l.Head() == 0 {
		measure("append", n, func(from, n int, timed func(func())) { fillFrom(t, l, prose, from, n, timed) })
	} else {
		prose = ledgertest.NewProse(2) // other texts than those that are there
	}
	t.Logf("disk: %d MiB", diskUsage(t, dir)>>20)
	claims := func(_, n int, timed func(func())) {
		timed(func() { benchClaim(t, l, n, 8, false, &latencies{}) })
	}
	if measure("claim and complete", n, claims) < 0.8 {
		t.Error("claims are not flat")
	}
	fillFrom(t, l, prose, n, n/10, func(f func()) { f() })
	measure("claim and complete behind them", n/10, claims)
	t.Logf("disk: %d MiB", diskUsage(t, dir)>>20)
	started := time.Now()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("close: %v; disk: %d MiB", time.Since(started), diskUsage(t, dir)>>20)
	t.Setenv(crashLarge, "1")
	for range 3 {
		t.Logf("open after a clean close: %s", openAlone(t, dir))
	}
	t.Setenv(crashCalm, "1")
	seen := acks{posts: make(map[ledger.PostNum]string), classified: make(map[ledger.PostNum]bool)}
	for round := range 3 {
		seen.kill(t, dir, round, 5*time.Second, false)
		t.Logf("open after kill -9: %s", openAlone(t, dir))
	}
}

// openAlone opens and closes the store in a process of its own.
func openAlone(t *testing.T, dir string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), crashDir+"="+dir, crashOpen+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

func sum(all []time.Duration) (n time.Duration) {
	for _, d := range all {
		n += d
	}
	return n
}

func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// memory is what the process holds, that of files aside.
func memory() string {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return fmt.Sprintf("%d MiB of heap", m.HeapAlloc>>20)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			return "anonymous memory " + strings.TrimSpace(rest)
		}
	}
	return ""
}
