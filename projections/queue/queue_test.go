package queue_test

import (
	"sync/atomic"
	"testing"
	"time"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
	"vesti.nixg.ru/ledger/ledgertest"
	"vesti.nixg.ru/projections"
	"vesti.nixg.ru/projections/projectiontest"
	"vesti.nixg.ru/projections/queue"
)

func run(t *testing.T, log *badgerlog.Log) (*queue.Queue, *projectiontest.Feed) {
	t.Helper()
	q := queue.New(log.Store)
	return q, projectiontest.Start(t, projections.Options{Log: log, Stores: log.Store, Projections: []projections.Projection{q}})
}

func claim(t *testing.T, log *badgerlog.Log, n int) []ledger.Claim {
	t.Helper()
	var claims []ledger.Claim
	for range n {
		c, err := log.Claim(t.Context(), ledger.ClaimRequest{Worker: "w", NoWait: true})
		if err != nil {
			t.Fatal(err)
		}
		claims = append(claims, c)
	}
	return claims
}

func TestPendingIsWithoutWhatIsClaimed(t *testing.T) {
	log := ledgertest.Open(t)
	q, r := run(t, log)
	if _, err := log.Append(t.Context(), ledgertest.Items("a", 12)); err != nil {
		t.Fatal(err)
	}
	claim(t, log, 2)
	r.Settle()
	got := q.Counts(time.Now(), log.Queue())
	if got.Pending != 10 || got.Processing != 2 || got.DoneToday != 0 || got.ByLane[ledger.LaneP1] != 12 {
		t.Errorf("got %+v, want 10 pending, 2 processing, none done", got)
	}
	if got.OldestPending.IsZero() {
		t.Error("nothing waits")
	}
}

func TestParkedByCause(t *testing.T) {
	log := ledgertest.Open(t)
	q, r := run(t, log)
	if _, err := log.Append(t.Context(), ledgertest.Items("a", 3)); err != nil {
		t.Fatal(err)
	}
	for i, c := range claim(t, log, 3) {
		cause := []ledger.Cause{ledger.CauseBadReply, ledger.CauseBadReply, ledger.CauseTimeout}[i]
		if _, err := log.Fail(t.Context(), c, ledger.Failure{Cause: cause, Message: "no", Final: true}); err != nil {
			t.Fatal(err)
		}
	}
	r.Settle()
	got := q.Counts(time.Now(), log.Queue())
	if got.Parked != 3 || got.ParkedByCause[ledger.CauseBadReply] != 2 || got.ParkedByCause[ledger.CauseTimeout] != 1 || got.Pending != 0 {
		t.Errorf("got %+v", got)
	}
	if !got.OldestPending.IsZero() {
		t.Errorf("the oldest pending is of %s, where nothing is pending", got.OldestPending)
	}
}

// TestTodayFollowsTheZone: the same decisions, seen from different zones and
// days. Each claim is completed at the time at which it was granted, else its
// lease may be over.
func TestTodayFollowsTheZone(t *testing.T) {
	var at atomic.Pointer[time.Time] // the engine reads it meanwhile
	set := func(t time.Time) { at.Store(&t) }
	set(time.Date(2026, 3, 10, 20, 40, 0, 0, time.UTC))
	log := ledgertest.Open(t, ledgertest.Now(func() time.Time { return *at.Load() }))
	q, r := run(t, log)
	if _, err := log.Append(t.Context(), ledgertest.Items("a", 4)); err != nil {
		t.Fatal(err)
	}
	complete := func() {
		t.Helper()
		if err := log.Complete(t.Context(), claim(t, log, 1)[0], ledgertest.Decision("tech")); err != nil {
			t.Fatal(err)
		}
	}
	complete()
	complete()
	set(time.Date(2026, 3, 10, 21, 0, 0, 0, time.UTC)) // midnight in Moscow
	complete()
	set(time.Date(2026, 3, 11, 0, 0, 0, 0, time.UTC))
	complete()
	r.Settle()
	moscow := time.FixedZone("MSK", 3*60*60)
	nepal := time.FixedZone("NPT", 5*60*60+45*60)
	for _, c := range []struct {
		now  time.Time
		want int
	}{
		{time.Date(2026, 3, 10, 23, 0, 0, 0, time.UTC), 3},
		{time.Date(2026, 3, 11, 1, 0, 0, 0, time.UTC), 1},
		{time.Date(2026, 3, 10, 23, 59, 0, 0, moscow), 2},
		{time.Date(2026, 3, 11, 10, 0, 0, 0, moscow), 2},
		{time.Date(2026, 3, 11, 10, 0, 0, 0, nepal), 4},
		{time.Date(2026, 3, 12, 10, 0, 0, 0, nepal), 0},
	} {
		if got := q.Counts(c.now, ledger.QueueGauge{}).DoneToday; got != c.want {
			t.Errorf("done on %s: %d, want %d", c.now, got, c.want)
		}
	}
}

// TestReclassificationMovesNothing: a replay is a decision of no day.
func TestReclassificationMovesNothing(t *testing.T) {
	noon := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	log := ledgertest.Open(t, ledgertest.Now(func() time.Time { return noon }))
	q, r := run(t, log)
	if _, err := log.Append(t.Context(), ledgertest.Items("a", 1)); err != nil {
		t.Fatal(err)
	}
	c := claim(t, log, 1)[0]
	if err := log.Complete(t.Context(), c, ledgertest.Decision("tech")); err != nil {
		t.Fatal(err)
	}
	again := ledgertest.Decision("games")
	again.Replay = true
	if _, err := log.Record(t.Context(), ledger.NewEvent(ledger.ActorOperator, c.Post, "", again)); err != nil {
		t.Fatal(err)
	}
	r.Settle()
	if got := q.Counts(noon, log.Queue()); got.DoneToday != 1 || got.Classified != 1 {
		t.Errorf("got %+v, want 1 done and 1 classified", got)
	}
}
