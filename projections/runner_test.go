package projections_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
	"vesti.nixg.ru/ledger/ledgertest"
	"vesti.nixg.ru/projections"
)

// counter is a small projection: it counts the events that it has seen, in a
// table, and can be told to misbehave.
type counter struct {
	stores  projections.Stores
	spec    projections.Spec
	apply   func(events []ledger.Event) error // may be nil
	opened  func(generation uint64) error     // may be nil
	serving atomic.Pointer[counterFold]
}

type counterFold struct {
	*projections.Table
	owner      *counter
	generation uint64
	count      atomic.Uint64
}

func newCounter(stores projections.Stores, version int) *counter {
	return &counter{stores: stores, spec: projections.Spec{Name: "counter", Version: version}}
}

func (c *counter) Spec() projections.Spec { return c.spec }

func (c *counter) Open(ctx context.Context, generation uint64) (projections.Fold, error) {
	if c.opened != nil {
		if err := c.opened(generation); err != nil {
			return nil, err
		}
	}
	table, err := projections.OpenTable(ctx, c.stores, c.spec.Name, generation)
	if err != nil {
		return nil, err
	}
	f := &counterFold{Table: table, owner: c, generation: generation}
	err = table.View(ctx, func(tx ledger.Tx) error {
		v, err := tx.Get([]byte("n"))
		if err == nil {
			f.count.Store(binary.BigEndian.Uint64(v))
		}
		return nil
	})
	return f, err
}

func (c *counter) Discard(ctx context.Context, generation uint64, _ bool) error {
	return projections.DropTable(ctx, c.stores, c.spec.Name, generation)
}

func (c *counter) Serve(f projections.Fold) {
	served, _ := f.(*counterFold)
	c.serving.Store(served)
}

func (f *counterFold) Apply(ctx context.Context, events []ledger.Event, through ledger.Seq) error {
	if f.owner.apply != nil {
		if err := f.owner.apply(events); err != nil {
			return err
		}
	}
	n := f.count.Load() + uint64(len(events))
	err := f.Table.Apply(ctx, through, func(tx ledger.Tx) error {
		return tx.Set([]byte("n"), binary.BigEndian.AppendUint64(nil, n))
	})
	if err == nil {
		f.count.Store(n)
	}
	return err
}

func (f *counterFold) Close() error { return nil }

// run runs the projections on a ledger until the function that it returns is
// called, at the latest until the test ends.
func run(t *testing.T, o projections.Options) (r *projections.Runner, stop func()) {
	t.Helper()
	r, err := projections.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(stop)
	return r, stop
}

func options(log *badgerlog.Log, all ...projections.Projection) projections.Options {
	return projections.Options{Log: log, Stores: log.Store, Projections: all}
}

func settle(t *testing.T, log *badgerlog.Log, r *projections.Runner) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := r.CatchUp(ctx, log.Head()); err != nil {
		t.Fatalf("%v: %+v", err, r.Status())
	}
}

func add(t *testing.T, log *badgerlog.Log, source ledger.Slug, n int) {
	t.Helper()
	if _, err := log.Append(t.Context(), ledgertest.Items(source, n)); err != nil {
		t.Fatal(err)
	}
}

func TestCountsEveryEventOnceOverRestarts(t *testing.T) {
	log := ledgertest.Open(t)
	for i := range 5 {
		c := newCounter(log.Store, 1)
		r, stop := run(t, options(log, c))
		add(t, log, ledger.Slug("s"+string(rune('a'+i))), 30)
		settle(t, log, r)
		if got, want := c.serving.Load().count.Load(), uint64(30*(i+1)); got != want {
			t.Fatalf("after start %d: %d events, want %d", i+1, got, want)
		}
		stop()
		if c.serving.Load() != nil {
			t.Fatal("a stopped projection still serves")
		}
	}
}

func TestRebuildServesTheOldGenerationMeanwhile(t *testing.T) {
	log := ledgertest.Open(t)
	add(t, log, "a", 50)
	c := newCounter(log.Store, 1)
	r, _ := run(t, options(log, c))
	settle(t, log, r)
	old := c.serving.Load()
	var during atomic.Pointer[counterFold]
	c.apply = func([]ledger.Event) error {
		during.CompareAndSwap(nil, c.serving.Load())
		return nil
	}
	var steps int
	if err := r.Rebuild(t.Context(), "counter", func(done, head ledger.Seq) {
		steps++
		if done > head {
			t.Errorf("progress %d of %d", done, head)
		}
	}); err != nil {
		t.Fatal(err)
	}
	fresh := c.serving.Load()
	if during.Load() != old || fresh == old || fresh.generation <= old.generation || steps == 0 {
		t.Errorf("served %p while %p was rebuilt, then %p", during.Load(), old, fresh)
	}
	add(t, log, "b", 10)
	settle(t, log, r)
	if got := fresh.count.Load(); got != 60 {
		t.Errorf("%d events after the rebuild, want 60", got)
	}
	if err := log.Store(ledger.DerivedNamespace+"counter/1").View(t.Context(), func(tx ledger.Tx) error {
		return tx.Scan(nil, nil, func(key, _ []byte) (bool, error) {
			t.Errorf("the old generation is left behind: %q", key)
			return false, nil
		})
	}); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedRow: a row that the disk has spoilt costs a rebuild, at opening as
// well as when a reader finds it, and keeps nobody waiting.
func TestDamagedRow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	row := bytes.Repeat([]byte("a long row "), 200)
	log := ledgertest.Open(t, ledgertest.Dir(dir))
	add(t, log, "a", 5)
	c := newCounter(log.Store, 1)
	r, stop := run(t, options(log, c))
	settle(t, log, r)
	first := c.serving.Load()
	if err := first.Table.Apply(t.Context(), log.Head(), func(tx ledger.Tx) error { return tx.Set([]byte("row"), row) }); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.vlog"))
	if err != nil {
		t.Fatal(err)
	}
	spoilt := false
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if at := bytes.Index(b, row); at >= 0 {
			b[at] ^= 1
			spoilt = true
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if !spoilt {
		t.Fatal("the row is in no file of values")
	}

	log = ledgertest.Open(t, ledgertest.Dir(dir))
	c = newCounter(log.Store, 1)
	r, _ = run(t, options(log, c))
	settle(t, log, r)
	read := c.serving.Load()
	err = read.View(t.Context(), func(tx ledger.Tx) error {
		_, err := tx.Get([]byte("row"))
		return err
	})
	if !errors.Is(err, projections.ErrDamaged) {
		t.Fatalf("a damaged row was read: %v", err)
	}
	for deadline := time.Now().Add(time.Minute); c.serving.Load() == read || c.serving.Load() == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("what serves is still the damaged one")
		}
	}
	settle(t, log, r)
	if got := c.serving.Load().count.Load(); got != 5 {
		t.Errorf("%d events after the rebuild, want 5", got)
	}
}

func TestRebuildRefuses(t *testing.T) {
	log := ledgertest.Open(t)
	add(t, log, "a", 5)
	c := newCounter(log.Store, 1)
	r, _ := run(t, options(log, c))
	settle(t, log, r)
	if err := r.Rebuild(t.Context(), "nothing", nil); !errors.Is(err, projections.ErrUnknown) {
		t.Errorf("got %v", err)
	}
	inside, leave := make(chan struct{}), make(chan struct{})
	c.apply = func([]ledger.Event) error {
		inside <- struct{}{}
		<-leave
		return nil
	}
	done := make(chan error)
	go func() { done <- r.Rebuild(t.Context(), "counter", nil) }()
	<-inside
	if err := r.Rebuild(t.Context(), "counter", nil); !errors.Is(err, projections.ErrRebuilding) {
		t.Errorf("a second rebuild: %v", err)
	}
	close(leave)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestRebuildThatIsBrokenOffLeavesTheOldOne(t *testing.T) {
	log := ledgertest.Open(t)
	add(t, log, "a", 5)
	c := newCounter(log.Store, 1)
	r, _ := run(t, options(log, c))
	settle(t, log, r)
	old := c.serving.Load()
	ctx, cancel := context.WithCancel(t.Context())
	c.apply = func([]ledger.Event) error { cancel(); return ctx.Err() }
	if err := r.Rebuild(ctx, "counter", nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if c.serving.Load() != old {
		t.Error("the old generation is gone")
	}
	c.apply = nil
	if err := r.Rebuild(t.Context(), "counter", nil); err != nil {
		t.Errorf("rebuilding again: %v", err)
	}
}

func TestNewVersionBuildsBesideTheOldOne(t *testing.T) {
	log := ledgertest.Open(t)
	add(t, log, "a", 40)
	v1 := newCounter(log.Store, 1)
	r, stop := run(t, options(log, v1))
	settle(t, log, r)
	stop()

	v2 := newCounter(log.Store, 2)
	v2.spec.Readable = 1
	gate := make(chan struct{})
	v2.apply = func([]ledger.Event) error { <-gate; return nil }
	r, _ = run(t, options(log, v2))
	for v2.serving.Load() == nil {
		time.Sleep(time.Millisecond)
	}
	if old := v2.serving.Load(); old.generation != 1 || old.count.Load() != 40 {
		t.Errorf("generation %d with %d events serves, want the first with 40", old.generation, old.count.Load())
	}
	close(gate)
	deadline := time.Now().Add(20 * time.Second)
	for v2.serving.Load().generation == 1 {
		if time.Now().After(deadline) {
			t.Fatalf("the new version never served: %+v", r.Status())
		}
		time.Sleep(time.Millisecond)
	}
	if got := v2.serving.Load().count.Load(); got != 40 {
		t.Errorf("the new version has %d events, want 40", got)
	}
}

func TestUnreadableVersionServesWhileItFills(t *testing.T) {
	log := ledgertest.Open(t)
	add(t, log, "a", 40)
	r, stop := run(t, options(log, newCounter(log.Store, 1)))
	settle(t, log, r)
	stop()
	v2 := newCounter(log.Store, 2)
	r, _ = run(t, options(log, v2))
	settle(t, log, r)
	if got := v2.serving.Load(); got.generation == 1 || got.count.Load() != 40 {
		t.Errorf("generation %d with %d events", got.generation, got.count.Load())
	}
}

func TestAheadOfTheLedgerIsRebuilt(t *testing.T) {
	log := ledgertest.Open(t)
	add(t, log, "a", 10)
	c := newCounter(log.Store, 1)
	r, stop := run(t, options(log, c))
	settle(t, log, r)
	// As if the ledger had been restored to an earlier day.
	if err := c.serving.Load().Table.Apply(t.Context(), log.Head()+100, func(ledger.Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
	stop()
	var logged bytes.Buffer
	o := options(log, c)
	o.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	r, stop = run(t, o)
	settle(t, log, r)
	if got := c.serving.Load().count.Load(); got != 10 {
		t.Errorf("%d events, want 10", got)
	}
	stop()
	if !bytes.Contains(logged.Bytes(), []byte("ahead of the ledger")) {
		t.Errorf("the log does not say why: %s", logged.String())
	}
}

func TestDamagedWhileOpeningAndWhileServing(t *testing.T) {
	log := ledgertest.Open(t)
	add(t, log, "a", 10)
	c := newCounter(log.Store, 1)
	r, stop := run(t, options(log, c))
	settle(t, log, r)
	stop()
	c.opened = func(generation uint64) error {
		if generation == 1 {
			return projections.ErrDamaged
		}
		return nil
	}
	r, _ = run(t, options(log, c))
	settle(t, log, r)
	if got := c.serving.Load(); got.generation != 2 || got.count.Load() != 10 {
		t.Errorf("after damage: generation %d with %d events", got.generation, got.count.Load())
	}
	var broke atomic.Bool
	c.apply = func([]ledger.Event) error {
		if broke.CompareAndSwap(false, true) {
			return projections.ErrDamaged
		}
		return nil
	}
	add(t, log, "b", 5)
	settle(t, log, r)
	if got := c.serving.Load(); got.generation != 3 || got.count.Load() != 15 {
		t.Errorf("after breaking: generation %d with %d events", got.generation, got.count.Load())
	}
}

func TestFailingProjectionHoldsUpNoOther(t *testing.T) {
	log := ledgertest.Open(t)
	good, bad := newCounter(log.Store, 1), newCounter(log.Store, 1)
	bad.spec.Name = "bad"
	var fails atomic.Int32
	bad.apply = func([]ledger.Event) error {
		if fails.Add(1) == 1 {
			panic("a defect")
		}
		return nil
	}
	reg := prometheus.NewRegistry()
	o := options(log, good, bad)
	o.Registerer = reg
	r, _ := run(t, o)
	add(t, log, "a", 10)
	for st := r.Status(); st[0].Lag != 0 || st[1].Error == ""; st = r.Status() {
		time.Sleep(time.Millisecond)
	}
	settle(t, log, r) // the bad one is tried again
	if got := bad.serving.Load().count.Load(); got != 10 {
		t.Errorf("the bad one has %d events, want 10", got)
	}
	problems, err := testutil.GatherAndLint(reg)
	if err != nil || len(problems) > 0 {
		t.Errorf("metrics: %v %v", problems, err)
	}
	if n, err := testutil.GatherAndCount(reg, "vesti_projection_lag_events"); n != 2 || err != nil {
		t.Errorf("%d series of lag, want 2: %v", n, err)
	}
}

func TestBatchTooLargeIsHalved(t *testing.T) {
	log := ledgertest.Open(t)
	add(t, log, "a", 100)
	c := newCounter(log.Store, 1)
	c.apply = func(events []ledger.Event) error {
		if len(events) > 7 {
			return ledger.ErrTooLarge
		}
		return nil
	}
	r, _ := run(t, options(log, c))
	settle(t, log, r)
	if got := c.serving.Load().count.Load(); got != 100 {
		t.Errorf("%d events, want 100", got)
	}
}

func TestSameNameTwice(t *testing.T) {
	log := ledgertest.Open(t)
	_, err := projections.New(options(log, newCounter(log.Store, 1), newCounter(log.Store, 2)))
	if !errors.Is(err, ledger.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}
