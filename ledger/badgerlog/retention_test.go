package badgerlog_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
	"vesti.nixg.ru/ledger/ledgertest"
	"vesti.nixg.ru/ledger/ledgertest/cases"
)

// clock is a clock that tests move, while the engine reads it.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock(at time.Time) *clock { return &clock{at: at} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) set(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = at
}

// move sets the clock on, or back for a negative d.
func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func TestRetention(t *testing.T) {
	t.Parallel()
	c := newClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	l := ledgertest.Open(t, ledgertest.Now(c.now))
	ctx := t.Context()
	old, err := l.Append(ctx, ledgertest.Items("a", 4))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // the fourth stays pending
		cl, err := l.Claim(ctx, ledger.ClaimRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Complete(ctx, cl, ledgertest.Decision("linux")); err != nil {
			t.Fatal(err)
		}
	}
	revised := ledgertest.Items("a", 4)[:2]
	revised[0].Text += " и"
	revised[1].Text += " да"
	if _, err := l.Append(ctx, revised); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if _, err := l.Record(ctx, ledgertest.Run("a", i)); err != nil {
			t.Fatal(err)
		}
		if i == 5 {
			if _, err := l.Record(ctx, ledger.NewEvent(ledger.ActorCrawler, 0, "a", ledger.SourceMoved{From: "x", URL: "y"})); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := l.Record(ctx, ledger.NewEvent(ledger.ActorEditor, old[2].Post, "", ledger.PostReviewed{Verdict: ledger.VerdictPicked})); err != nil {
		t.Fatal(err)
	}
	before, err := l.Source(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	c.move(48 * time.Hour)
	if _, err := l.Append(ctx, ledgertest.Items("b", 2)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Record(ctx, ledgertest.Run("b", 1), ledgertest.Run("b", 1)); err != nil {
		t.Fatal(err)
	}
	day := 24 * time.Hour
	report, err := l.Retain(ctx, badgerlog.Retention{Revisions: day, Runs: day})
	if err != nil || report != (badgerlog.RetentionReport{Revisions: 2, Runs: 9}) {
		t.Fatalf("got %+v, %v", report, err)
	}
	ledgertest.Check(t, l)
	events, err := l.SourceEvents(ctx, "a", 0)
	if err != nil {
		t.Fatal(err)
	}
	sum, ok := events[len(events)-1].Payload.(ledger.RunsSummarised)
	if len(events) != 2 || !ok || sum.Runs != 10 || sum.Fetched != 45 || sum.State != before {
		t.Fatalf("got %+v", events)
	}
	var replayed ledger.SourceState
	for _, e := range events {
		replayed = replayed.Apply(e)
	}
	if replayed != before {
		t.Fatalf("replayed to %+v, want %+v", replayed, before)
	}
	report, err = l.Retain(ctx, badgerlog.Retention{Posts: day, Revisions: day, Runs: day})
	if err != nil || report != (badgerlog.RetentionReport{Posts: 2}) {
		t.Fatalf("got %+v, %v", report, err)
	}
	for i, gone := range []bool{true, true, false, false} {
		p, err := l.Post(ctx, old[i].Post)
		if err != nil || p.State.Expired != gone || (p.Item.Text == "") != gone {
			t.Errorf("post %d: %+v, %v", i, p, err)
		}
	}
	// Identity stays: the same items are known, the same text is no new post.
	out, err := l.Append(ctx, revised)
	if err != nil || out[0].Outcome != ledger.OutcomeKnown || out[1].Outcome != ledger.OutcomeKnown {
		t.Fatalf("got %+v, %v", out, err)
	}
	// A new text brings a post back.
	revised[0].Text = ledgertest.Text("again")
	out, err = l.Append(ctx, revised[:1])
	if err != nil || out[0].Outcome != ledger.OutcomeRevised || out[0].Post != old[0].Post {
		t.Fatalf("got %+v, %v", out, err)
	}
	if p, err := l.Post(ctx, old[0].Post); err != nil || p.State.Expired || p.Item.Text != revised[0].Text || p.State.Status != ledger.StatusPending {
		t.Fatalf("got %+v, %v", p, err)
	}
}

// TestPublicCases: 225, deleted data leaves the disk.
func TestPublicCases(t *testing.T) {
	if underRace {
		t.Skip("takes minutes under the race detector; TestSpaceIsFreed is its short form, and \"make cases\" runs it")
	}
	cases.Run(t, cases.Badgerlog, func(t *testing.T, c cases.Case) error {
		var want struct {
			Documents int `json:"documents_after"`
		}
		c.Decode(t, c.Expect, &want)
		return spaceIsFreed(t, 20000, 20000-want.Documents)
	})
}

func TestSpaceIsFreed(t *testing.T) {
	t.Parallel()
	if err := spaceIsFreed(t, 2000, 1800); err != nil {
		t.Error(err)
	}
}

func spaceIsFreed(t *testing.T, documents, expire int) error {
	t.Helper()
	c := newClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	dir := t.TempDir()
	opts := []ledgertest.Option{ledgertest.Dir(dir), ledgertest.Now(c.now), func(o *badgerlog.Options) {
		o.Registerer, o.ValueLogFile = prometheus.NewRegistry(), 8<<20
	}}
	l := ledgertest.Open(t, opts...)
	for from := 0; from < documents; from += 100 {
		if from <= expire && expire < from+100 {
			c.move(48 * time.Hour)
		}
		appendLong(t, l, from, 100)
	}
	benchClaim(t, l, documents, 4, false, &latencies{})
	before := diskUsage(t, dir)
	report, err := l.Retain(t.Context(), badgerlog.Retention{Posts: 24 * time.Hour})
	if err != nil {
		return err
	}
	if _, err := l.Compact(t.Context()); err != nil {
		return err
	}
	if err := l.Close(); err != nil {
		return err
	}
	l = ledgertest.Open(t, opts...)
	after := diskUsage(t, dir)
	v := ledgertest.Check(t, l)
	t.Logf("%d MiB before, %d MiB after; %+v", before>>20, after>>20, report)
	if report.Posts != expire || v.Posts-v.Expired != documents-expire {
		return fmt.Errorf("%d expired of %d posts, want %d", v.Expired, v.Posts, expire)
	}
	if after > before/2 {
		return fmt.Errorf("%d bytes on disk of %d before", after, before)
	}
	return nil
}

// appendLong appends n posts of about 20 KB that hardly compress.
func appendLong(t *testing.T, l *badgerlog.Log, from, n int) {
	t.Helper()
	items := make([]ledger.Item, n)
	for i := range items {
		items[i] = ledgertest.Item("a", fmt.Sprint(from+i))
		var b strings.Builder
		for b.Len() < 20000 {
			fmt.Fprintf(&b, "слово%x ", rand.Uint64())
		}
		items[i].Text = b.String()
	}
	if _, err := l.Append(t.Context(), items); err != nil {
		t.Fatal(err)
	}
}

func diskUsage(t *testing.T, dir string) int64 {
	t.Helper()
	var n int64
	err := filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // merged into another meanwhile
		}
		if err != nil {
			return err
		}
		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			n += s.Blocks * 512
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
