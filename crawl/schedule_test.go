package crawl_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/ledger"
)

func TestPrioritiesHaveTheirIntervalsAndJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kind := &script{}
		d := newDesk(t, kind, crawl.Options{},
			feedSource("often", ledger.P0), feedSource("also", ledger.P0), feedSource("hourly", ledger.P1), feedSource("rare", ledger.P2))
		off := feedSource("off", ledger.P0)
		off.Enabled = false
		if _, err := d.Reload(t.Context(), append(d.Sources(), off)); err != nil {
			t.Fatal(err)
		}
		d.start(t)
		time.Sleep(5 * time.Hour)
		synctest.Wait()
		for slug, want := range map[ledger.Slug]time.Duration{"often": 15 * time.Minute, "hourly": time.Hour, "rare": 4 * time.Hour} {
			jobs := kind.of(slug)
			if least := int(5*time.Hour/(want*11/10)) + 1; len(jobs) < least {
				t.Errorf("%s: %d runs in 5 hours, want %d at least", slug, len(jobs), least)
			}
			for i := 1; i < len(jobs); i++ {
				if gap := jobs[i].Now.Sub(jobs[i-1].Now); gap < want*9/10 || gap > want*11/10 {
					t.Errorf("%s: run %d came after %s, want %s and a tenth of jitter", slug, i, gap, want)
				}
			}
		}
		if len(kind.of("off")) > 0 {
			t.Error("a disabled source was run")
		}
		a, b := kind.of("often"), kind.of("also")
		if !a[0].Now.Equal(b[0].Now) || a[5].Now.Equal(b[5].Now) {
			t.Error("two sources that began together stayed together")
		}
	})
}

// A source fails until it is dead, is looked at daily and comes back by itself.
// Beside it, one that is well is asked without conditions once a day.
func TestDeathAndRevival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var well atomic.Bool
		kind := &script{do: func(_ context.Context, job crawl.Job) (crawl.Report, error) {
			if job.Source.Slug == "steady" {
				return crawl.Report{HTTPStatus: 304, NotModified: true, Validators: job.State.Validators}, nil
			}
			if well.Load() {
				return crawl.Report{HTTPStatus: 200, NotModified: true}, nil
			}
			return crawl.Report{}, &crawl.Error{Cause: ledger.CauseHTTP, HTTPStatus: 500, Message: "it answered 500"}
		}}
		var ahead atomic.Int64 // of the bubble's clock, which is slow to pass
		now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		d := newDesk(t, kind, crawl.Options{Now: now}, feedSource("a", ledger.P0), feedSource("steady", ledger.P1))
		d.start(t)
		time.Sleep(5 * time.Hour)
		synctest.Wait()
		s := d.state(t, "a")
		if s.Status != ledger.SourceDead || s.ErrorCount != ledger.DeadAfter || s.LastError != "it answered 500" || s.HTTPStatus != 500 {
			t.Fatalf("after five failures: %+v", s)
		}
		jobs := kind.of("a")
		if len(jobs) != ledger.DeadAfter {
			t.Fatalf("%d runs, want %d", len(jobs), ledger.DeadAfter)
		}
		for i := 2; i < len(jobs); i++ {
			if jobs[i].Now.Sub(jobs[i-1].Now) < jobs[i-1].Now.Sub(jobs[i-2].Now)*3/2 {
				t.Errorf("the delay before run %d did not grow", i)
			}
			if !jobs[i].Unconditional {
				t.Errorf("run %d after a failure has conditions", i)
			}
		}
		well.Store(true)
		ahead.Store(int64(20 * time.Hour))
		time.Sleep(7 * time.Hour)
		synctest.Wait()
		probe := kind.of("a")[ledger.DeadAfter]
		if gap := probe.Now.Sub(jobs[4].Now); gap < 21*time.Hour || gap > 27*time.Hour || !probe.Unconditional {
			t.Errorf("the probe came after %s, unconditional %v", gap, probe.Unconditional)
		}
		events, err := d.log.SourceEvents(t.Context(), "a", 1000)
		if err != nil {
			t.Fatal(err)
		}
		if run, ok := events[ledger.DeadAfter].Payload.(ledger.SourceCrawled); !ok || run.Trigger != ledger.TriggerProbe {
			t.Errorf("the probe was recorded as %+v", events[ledger.DeadAfter].Payload)
		}
		if s := d.state(t, "a"); s.Status != ledger.SourceAlive || s.ErrorCount != 0 || s.LastError != "" {
			t.Errorf("after a probe that worked: %+v", s)
		}
		if n := len(kind.of("a")); n < ledger.DeadAfter+3 {
			t.Errorf("the revived source had %d runs in all", n)
		}
		full := 0
		for _, j := range kind.of("steady") {
			if j.Unconditional {
				full++
			}
		}
		if n := len(kind.of("steady")); full != 2 || n < 10 {
			t.Errorf("%d unconditional of %d requests in 32 hours, want 2", full, n)
		}
	})
}

func TestGoneIsNotAskedUntilReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kind := &script{do: func(context.Context, crawl.Job) (crawl.Report, error) {
			return crawl.Report{}, &crawl.Error{Cause: ledger.CauseGone, HTTPStatus: 410, Message: "gone"}
		}}
		d := newDesk(t, kind, crawl.Options{}, feedSource("a", ledger.P0))
		d.start(t)
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if n := len(kind.of("a")); n != 1 {
			t.Errorf("%d runs of a source that is gone", n)
		}
		if err := d.RunNow("a"); !is(err, ledger.ErrInvalid) {
			t.Errorf("RunNow: got %v, want ErrInvalid", err)
		}
		if _, err := d.RunOnce(t.Context(), crawl.Selection{Slugs: []ledger.Slug{"a"}}, crawl.Once{}); !is(err, ledger.ErrInvalid) {
			t.Errorf("RunOnce: got %v, want ErrInvalid", err)
		}
		if v := d.Status()[0]; !v.Due.IsZero() {
			t.Errorf("due at %s", v.Due)
		}
		if err := d.Reset(t.Context(), ledger.ActorEditor, "a"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := len(kind.of("a")); n != 2 {
			t.Errorf("%d runs after the reset, want 2", n)
		}
	})
}

// A pause is no error, outlives a restart, and is not cut short by the interval.
func TestThrottledSourcesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		until := time.Now().Add(3 * time.Hour)
		kind := &script{do: func(_ context.Context, job crawl.Job) (crawl.Report, error) {
			if job.Now.Before(until) {
				return crawl.Report{}, &crawl.Throttled{Until: until, HTTPStatus: 429, Message: "slow down"}
			}
			return crawl.Report{HTTPStatus: 200}, nil
		}}
		d := newDesk(t, kind, crawl.Options{}, feedSource("a", ledger.P0))
		d.start(t)
		time.Sleep(time.Hour)
		d.stop()
		if s := d.state(t, "a"); s.Status != ledger.SourceThrottle || s.ErrorCount != 0 || !s.ThrottledUntil.Equal(until) || s.HTTPStatus != 429 {
			t.Errorf("throttled: %+v", s)
		}
		var paused string
		pause := func(url string, at time.Time) { paused = url + " " + at.Sub(until).String() }
		again := newDesk(t, kind, crawl.Options{Log: d.log, Pause: pause}, feedSource("a", ledger.P0))
		if paused != "https://a.example/feed 0s" {
			t.Errorf("the client was told of the pause %q", paused)
		}
		again.start(t)
		time.Sleep(time.Until(until))
		synctest.Wait()
		if n := len(kind.of("a")); n != 1 {
			t.Errorf("%d runs during the pause, want 1", n)
		}
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		if s := d.state(t, "a"); s.Status != ledger.SourceAlive || !s.ThrottledUntil.IsZero() {
			t.Errorf("after the pause: %+v", s)
		}
	})
}

func TestRunsAreLimitedInAllAndPerHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all, slow, mostAll, mostSlow atomic.Int32
		kind := &script{do: func(_ context.Context, job crawl.Job) (crawl.Report, error) {
			mostAll.Store(max(mostAll.Load(), all.Add(1)))
			defer all.Add(-1)
			if job.Source.Direction == "slow" {
				mostSlow.Store(max(mostSlow.Load(), slow.Add(1)))
				defer slow.Add(-1)
				time.Sleep(5 * time.Minute)
			}
			time.Sleep(time.Second)
			return crawl.Report{}, nil
		}}
		var sources []crawl.Source
		for i := range 20 {
			s := feedSource(ledger.Slug(fmt.Sprintf("slow%d", i)), ledger.P2)
			s.FeedURL, s.Direction = fmt.Sprintf("https://slow.example/%d", i), "slow"
			sources = append(sources, s, feedSource(ledger.Slug(fmt.Sprintf("z%d", i)), ledger.P2))
		}
		d := newDesk(t, kind, crawl.Options{Concurrency: 6}, sources...)
		d.start(t)
		time.Sleep(time.Minute)
		synctest.Wait()
		for i := range 20 {
			if slug := ledger.Slug(fmt.Sprintf("z%d", i)); len(kind.of(slug)) != 1 {
				t.Errorf("%s waits behind a slow host", slug)
			}
		}
		time.Sleep(time.Hour)
		if mostAll.Load() > 6 || mostSlow.Load() != 2 {
			t.Errorf("%d runs at once, %d of one host; want 6 and 2 at most", mostAll.Load(), mostSlow.Load())
		}
	})
}

func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kind := &script{}
		d := newDesk(t, kind, crawl.Options{}, feedSource("stays", ledger.P2), feedSource("leaves", ledger.P0), feedSource("moves", ledger.P2))
		d.start(t)
		synctest.Wait()
		if _, err := d.Reload(t.Context(), []crawl.Source{{Slug: "x", Crawler: "gopher"}}); !is(err, ledger.ErrInvalid) {
			t.Errorf("a kind that is not there: got %v, want ErrInvalid", err)
		}
		if n := len(d.Sources()); n != 3 {
			t.Errorf("%d sources after a reload that failed, want 3", n)
		}
		time.Sleep(time.Minute)
		moved := feedSource("moves", ledger.P2)
		moved.FeedURL = "https://elsewhere.example/feed"
		changes, err := d.Reload(t.Context(), []crawl.Source{feedSource("stays", ledger.P0), moved, feedSource("new", ledger.P2)})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(changes); got != "{[new] [moves stays] [leaves]}" {
			t.Errorf("changes %s", got)
		}
		synctest.Wait()
		jobs := kind.of("moves")
		if len(jobs) != 2 || !jobs[1].Unconditional || jobs[1].Source.FeedURL != moved.FeedURL {
			t.Errorf("the source with a new address: %d runs", len(jobs))
		}
		if len(kind.of("new")) != 1 || len(kind.of("stays")) != 2 {
			t.Errorf("new: %d runs, stays, which became P0: %d; want 1 and 2", len(kind.of("new")), len(kind.of("stays")))
		}
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		if n := len(kind.of("stays")); n != 3 {
			t.Errorf("the source that became P0 had %d runs, want 3", n)
		}
		if n := len(kind.of("leaves")); n != 1 {
			t.Errorf("the source that left had %d runs, want 1", n)
		}
	})
}

// What a reload makes of a source holds though a run of the old definition ends
// after it.
func TestReloadDuringARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kind := &script{do: func(_ context.Context, job crawl.Job) (crawl.Report, error) {
			if job.Source.FeedURL == "https://a.example/feed" {
				time.Sleep(time.Minute)
			}
			return crawl.Report{HTTPStatus: 200}, nil
		}}
		d := newDesk(t, kind, crawl.Options{}, feedSource("a", ledger.P2))
		d.start(t)
		time.Sleep(30 * time.Second)
		moved := feedSource("a", ledger.P2)
		moved.FeedURL = "https://elsewhere.example/feed"
		if _, err := d.Reload(t.Context(), []crawl.Source{moved}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		jobs := kind.of("a")
		if len(jobs) != 2 || jobs[1].Source.FeedURL != moved.FeedURL || !jobs[1].Unconditional {
			t.Fatalf("%d runs, want the one under way and one of the new definition", len(jobs))
		}
		if due := d.Status()[0].Due; time.Until(due) < 3*time.Hour {
			t.Errorf("due again at %s", due)
		}
	})
}

// TestReloadAndFailures: whoever mends a source wants to see at once whether it
// helped. One that was not touched is left alone, or a few reloads without a
// network would make every source dead. A site that asked for a pause gets it.
func TestReloadAndFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kind := &script{do: func(_ context.Context, job crawl.Job) (crawl.Report, error) {
			switch job.Source.Slug {
			case "fails", "mended":
				return crawl.Report{}, &crawl.Error{Cause: ledger.CauseParse, Message: "no feed"}
			case "waits":
				return crawl.Report{}, &crawl.Throttled{Until: job.Now.Add(time.Hour), HTTPStatus: 429, Message: "slow down"}
			}
			return crawl.Report{HTTPStatus: 200}, nil
		}}
		sources := []crawl.Source{
			feedSource("well", ledger.P1), feedSource("fails", ledger.P1), feedSource("waits", ledger.P1), feedSource("mended", ledger.P1),
		}
		d := newDesk(t, kind, crawl.Options{}, sources...)
		d.start(t)
		time.Sleep(time.Minute)
		before := d.Status()
		sources[2].Block = []string{"advert*"}
		sources[3].Timezone = "Europe/Moscow"
		for range ledger.DeadAfter {
			if _, err := d.Reload(t.Context(), sources); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		for slug, want := range map[ledger.Slug]int{"well": 1, "fails": 1, "waits": 1, "mended": 2} {
			if n := len(kind.of(slug)); n != want {
				t.Errorf("%s: %d runs, want %d", slug, n, want)
			}
		}
		for i, v := range d.Status() {
			if v.Source.Slug == "fails" && (v.State.Status != ledger.SourceFailing || !v.Due.Equal(before[i].Due)) {
				t.Errorf("the one that fails is %s and due %s, was due %s", v.State.Status, v.Due, before[i].Due)
			}
		}
	})
}

func TestRunNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kind := &script{}
		d := newDesk(t, kind, crawl.Options{}, feedSource("a", ledger.P2), feedSource("b", ledger.P2))
		d.start(t)
		time.Sleep(time.Minute)
		if err := d.RunNow("nobody"); !is(err, ledger.ErrNotFound) {
			t.Errorf("an unknown source: got %v, want ErrNotFound", err)
		}
		if err := d.RunNow("b"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if run, ok := d.last(t, "b").(ledger.SourceCrawled); !ok || run.Trigger != ledger.TriggerManual || len(kind.of("b")) != 2 {
			t.Errorf("b: %d runs, the last %+v", len(kind.of("b")), d.last(t, "b"))
		}
		if err := d.RunNow(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(kind.of("a")) != 2 || len(kind.of("b")) != 3 {
			t.Errorf("after all were asked for: a %d, b %d", len(kind.of("a")), len(kind.of("b")))
		}
	})
}
