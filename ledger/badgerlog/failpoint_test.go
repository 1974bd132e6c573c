//go:build failpoints

package badgerlog_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"vesti.nixg.ru/ledger"
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
		seen.run(t, dir, 1000+round, 2*time.Second, point)
		checkAfterKill(t, dir, &seen)
		if t.Failed() {
			t.Fatalf("round %d, killed at %s", round, point)
		}
	}
	drain(t, dir, &seen)
	t.Logf("%d kills at chosen points, %d posts and %d classifications acknowledged", n, len(seen.posts), len(seen.classified))
}
