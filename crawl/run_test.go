package crawl_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/ledger"
)

func is(err, target error) bool { return errors.Is(err, target) }

func item(job crawl.Job, guid, text string) ledger.Item {
	return ledger.Item{
		Source: job.Source.Slug, Key: ledger.NewItemKey(job.Source.Slug, guid), Title: "Title of " + guid, Text: text,
		URL: "https://news.example/" + guid, Direction: job.Source.Direction, Lane: job.Source.Lane(), TextFrom: ledger.TextContent,
	}
}

// appending is a kind that appends the same two items in each run.
func appending(ctx context.Context, job crawl.Job) (crawl.Report, error) {
	rep := crawl.Report{HTTPStatus: 200, Fetched: 2, Bytes: 100, Title: "A feed"}
	rep.Validators = ledger.Validators{ETag: `"1"`}
	appended, err := job.Sink.Append(ctx, []ledger.Item{
		item(job, "one", "The first text of this source, long enough to stand alone"),
		item(job, "two", "The second text of this source, long enough as well"),
	})
	rep.Count(appended)
	return rep, err
}

func everything() crawl.Selection { return crawl.Selection{All: true} }

func TestRunOnceCountsAndRecords(t *testing.T) {
	d := newDesk(t, &script{do: func(ctx context.Context, job crawl.Job) (crawl.Report, error) {
		switch job.Source.Slug {
		case "broken":
			return crawl.Report{}, &crawl.Error{Cause: ledger.CauseParse, HTTPStatus: 200, Message: "no feed at all"}
		case "waits":
			return crawl.Report{}, &crawl.Throttled{Until: job.Now.Add(time.Hour), HTTPStatus: 429, Message: "slow down"}
		case "same":
			return crawl.Report{HTTPStatus: 304, NotModified: true}, nil
		default:
			return appending(ctx, job)
		}
	}}, crawl.Options{}, feedSource("a", ledger.P0), feedSource("b", ledger.P1), feedSource("broken", ledger.P1), feedSource("same", ledger.P1), feedSource("waits", ledger.P1))
	var heard []string
	sum, err := d.RunOnce(t.Context(), everything(), crawl.Once{Progress: func(r crawl.Result) { heard = append(heard, string(r.Slug)) }})
	if err != nil {
		t.Fatal(err)
	}
	if sum.Sources != 5 || sum.Fetched != 4 || sum.New != 2 || sum.SeenAgain != 2 || sum.Errors != 1 || sum.Throttled != 1 ||
		sum.NotModified != 1 || len(sum.Results) != 5 || len(heard) != 5 {
		t.Errorf("summary %+v, heard of %v", sum, heard)
	}
	for i, want := range []struct{ slug, status, outcome, err string }{
		{"a", "alive", "ok", ""},
		{"b", "alive", "ok", ""},
		{"broken", "failing", "failed", "no feed at all"},
		{"same", "alive", "not_modified", ""},
		{"waits", "throttled", "throttled", "slow down"},
	} {
		r := sum.Results[i]
		if string(r.Slug) != want.slug || r.Status != want.status || r.Outcome != want.outcome || want.err == "" != (r.Error == "") {
			t.Errorf("result %d: %+v, want %+v", i, r, want)
		}
	}
	run, ok := d.last(t, "a").(ledger.SourceCrawled)
	if !ok || run.Trigger != ledger.TriggerManual || run.HTTPStatus != 200 || run.Fetched != 2 || run.Title != "A feed" || run.Next.IsZero() {
		t.Errorf("recorded %+v", run)
	}
	again, err := d.RunOnce(t.Context(), crawl.Selection{Slugs: []ledger.Slug{"a"}}, crawl.Once{})
	if err != nil || again.New != 0 || again.SeenAgain != 0 || again.Fetched != 2 {
		t.Errorf("the second run: %+v, %v", again, err)
	}
}

func TestDryRunWritesNothing(t *testing.T) {
	d := newDesk(t, &script{do: func(ctx context.Context, job crawl.Job) (crawl.Report, error) {
		if !job.Unconditional || job.State.Validators != (ledger.Validators{}) {
			return crawl.Report{}, errors.New("a dry run has conditions")
		}
		n, err := job.Sink.Drop(ctx, []crawl.Dropped{{Source: job.Source.Slug, Key: "k", Title: "An advert", Rule: "block advert"}})
		if err != nil {
			return crawl.Report{}, err
		}
		rep, err := appending(ctx, job)
		rep.Dropped = n
		return rep, err
	}}, crawl.Options{}, feedSource("a", ledger.P0))
	for range 2 {
		sum, err := d.RunOnce(t.Context(), everything(), crawl.Once{DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		if sum.New != 2 || len(sum.Entries) != 2 || sum.Entries[0].TextStart == "" || sum.Results[0].Status != "alive" ||
			len(sum.Drops) != 1 || sum.Dropped != 1 {
			t.Errorf("summary %+v", sum)
		}
	}
	if head := d.log.Head(); head != 0 {
		t.Errorf("the ledger has %d events", head)
	}
}

// TestDryRunForetells: what a dry run says of each entry is what the ledger then
// makes of it.
func TestDryRunForetells(t *testing.T) {
	item := func(source ledger.Slug, key, title, text string) ledger.Item {
		return ledger.Item{
			Source: source, Key: ledger.NewItemKey(source, key), Title: title, Text: text, Fingerprint: ledger.HashOf(key, title, text),
		}
	}
	known := item("a", "known", "Known", "A text that the ledger has and that stays as it is.")
	revised := item("a", "revised", "Revised", "A text that the ledger has and that will be another.")
	retitled := item("a", "retitled", "Retitled", "A text that the ledger has, whose title will be another.")
	items := map[ledger.Slug][]ledger.Item{"a": {
		known,
		item("a", "revised", "Revised", "A text that the ledger does not have yet, of an item it has."),
		item("a", "retitled", "Another title", retitled.Text),
		item("a", "new", "New", "A text that nobody has seen so far, twice in this round."),
		item("a", "own", "Own", "A text that another will take the place of, in the same run."),
		item("a", "again", "Again", "A text that the ledger has and that stays as it is."),
	}, "b": {
		item("b", "1", "New", "A text that nobody has seen so far, twice in this round."),
	}}
	d := newDesk(t, &script{do: func(ctx context.Context, job crawl.Job) (crawl.Report, error) {
		appended, err := job.Sink.Append(ctx, items[job.Source.Slug])
		rep := crawl.Report{HTTPStatus: 200, Fetched: len(appended)}
		rep.Count(appended)
		if err == nil && job.Source.Slug == "a" { // a kind that changes its mind
			appended, err = job.Sink.Append(ctx, []ledger.Item{item("a", "own", "Own", "Another text of an item that is new in this run.")})
			rep.Count(appended)
		}
		return rep, err
	}}, crawl.Options{Concurrency: 1}, feedSource("a", ledger.P0), feedSource("b", ledger.P0))
	if _, err := d.log.Append(t.Context(), []ledger.Item{known, revised, retitled}); err != nil {
		t.Fatal(err)
	}
	dry, err := d.RunOnce(t.Context(), everything(), crawl.Once{DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	outcomes := map[string]int{}
	for _, e := range dry.Entries {
		outcomes[e.Outcome]++
	}
	want := map[string]int{"known": 1, "revised": 1, "touched": 1, "new": 2, "seen_again": 2}
	if !maps.Equal(outcomes, want) {
		t.Errorf("foretold %v, want %v: %+v", outcomes, want, dry.Entries)
	}
	wet, err := d.RunOnce(t.Context(), everything(), crawl.Once{})
	if err != nil {
		t.Fatal(err)
	}
	if dry.New != wet.New || dry.Revised != wet.Revised || dry.SeenAgain != wet.SeenAgain {
		t.Errorf("foretold %d new, %d revised, %d seen again; then %d, %d, %d", dry.New, dry.Revised, dry.SeenAgain, wet.New, wet.Revised, wet.SeenAgain)
	}
}

func TestAPanicIsTheSourcesOwn(t *testing.T) {
	d := newDesk(t, &script{do: func(ctx context.Context, job crawl.Job) (crawl.Report, error) {
		if job.Source.Slug == "bad" {
			panic("a defect")
		}
		return appending(ctx, job)
	}}, crawl.Options{}, feedSource("bad", ledger.P0), feedSource("good", ledger.P0))
	sum, err := d.RunOnce(t.Context(), everything(), crawl.Once{})
	if err != nil || sum.New != 2 || sum.Errors != 1 || sum.Results[0].Cause != ledger.CauseInternal {
		t.Errorf("got %+v, %v", sum, err)
	}
}

func TestARunHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, &script{do: func(ctx context.Context, _ crawl.Job) (crawl.Report, error) {
			<-ctx.Done()
			return crawl.Report{}, fmt.Errorf("get page: %w", ctx.Err())
		}}, crawl.Options{RunTimeout: time.Minute}, feedSource("a", ledger.P0))
		sum, err := d.RunOnce(t.Context(), everything(), crawl.Once{})
		if err != nil || sum.Results[0].Cause != ledger.CauseTimeout {
			t.Errorf("got %+v, %v", sum, err)
		}
	})
}

// A run that is stopped is no failure of its source: what it appended stays,
// and the source is due at the next start.
func TestAStoppedRunLeavesNoHalfState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kind := &script{do: func(ctx context.Context, job crawl.Job) (crawl.Report, error) {
			rep, err := appending(ctx, job)
			if err != nil {
				return rep, err
			}
			<-ctx.Done()
			return rep, fmt.Errorf("get page: %w", ctx.Err())
		}}
		d := newDesk(t, kind, crawl.Options{}, feedSource("a", ledger.P0))
		d.start(t)
		synctest.Wait()
		d.stop()
		if s := d.state(t, "a"); s.Runs != 0 || s.Status != ledger.SourceNew {
			t.Errorf("the stopped run left %+v", s)
		}
		kind.do = appending
		again := newDesk(t, kind, crawl.Options{Log: d.log}, feedSource("a", ledger.P0))
		again.start(t)
		synctest.Wait()
		if s := d.state(t, "a"); s.Runs != 1 || s.New != 0 || s.Status != ledger.SourceAlive {
			t.Errorf("after the next start: %+v", s)
		}
	})
}

// noSpace is a ledger whose disk is full while it is set.
type noSpace struct {
	crawl.Log
	full atomic.Bool
}

func (n *noSpace) Append(ctx context.Context, items []ledger.Item) ([]ledger.Appended, error) {
	if n.full.Load() {
		return nil, ledger.ErrNoSpace
	}
	return n.Log.Append(ctx, items)
}

func TestAFullDiskIsNoFaultOfTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, &script{do: appending}, crawl.Options{}, feedSource("a", ledger.P0))
		full := &noSpace{Log: d.log}
		full.full.Store(true)
		kind := &script{do: appending}
		c := newDesk(t, kind, crawl.Options{Log: full}, feedSource("a", ledger.P0))
		c.start(t)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if s := d.state(t, "a"); s.Runs != 0 {
			t.Errorf("recorded as %+v", s)
		}
		if n := len(kind.of("a")); n < 3 || n > 5 {
			t.Errorf("its site was asked %d times in ten minutes, for nothing", n)
		}
		full.full.Store(false)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if s := d.state(t, "a"); s.Status != ledger.SourceAlive || s.New != 2 {
			t.Errorf("when there was room again: %+v", s)
		}
	})
}

func TestMoves(t *testing.T) {
	to, asked, fail := "https://new.example/feed", "", false
	d := newDesk(t, &script{do: func(_ context.Context, job crawl.Job) (crawl.Report, error) {
		asked = job.Source.FeedAddress(job.State)
		if fail {
			return crawl.Report{MovedTo: "https://evil.example/"}, &crawl.Error{Cause: ledger.CauseNotFeed, Message: "a page"}
		}
		rep := crawl.Report{HTTPStatus: 200}
		if asked == "https://a.example/feed" {
			rep.MovedTo = to
		}
		return rep, nil
	}}, crawl.Options{}, feedSource("a", ledger.P0))
	run := func() ledger.SourceState {
		t.Helper()
		if _, err := d.RunOnce(t.Context(), everything(), crawl.Once{}); err != nil {
			t.Fatal(err)
		}
		return d.state(t, "a")
	}
	if s := run(); s.MovedTo != to || s.MovedFrom != "https://a.example/feed" {
		t.Fatalf("after the move: %+v", s)
	}
	if s := run(); asked != to || s.MovedTo != to {
		t.Errorf("next fetch went to %s", asked)
	}
	fail = true
	for range ledger.DeadAfter {
		if s := run(); s.MovedTo != to {
			t.Errorf("a failed run moved the source to %q", s.MovedTo)
		}
	}
	run()
	if asked != "https://a.example/feed" {
		t.Errorf("a dead source was asked at %s, want the configured address", asked)
	}
	fail, to = false, ""
	if s := run(); s.MovedTo != "" || s.Status != ledger.SourceAlive {
		t.Errorf("the configured address works by itself again: %+v", s)
	}
}

// A source whose new address has gone is read at the configured one after a
// reset.
func TestResetGoesBackToTheConfiguredAddress(t *testing.T) {
	moves, asked := true, ""
	d := newDesk(t, &script{do: func(_ context.Context, job crawl.Job) (crawl.Report, error) {
		asked = job.Source.FeedAddress(job.State)
		switch {
		case asked != job.Source.FeedURL:
			return crawl.Report{}, &crawl.Error{Cause: ledger.CauseGone, HTTPStatus: 410, Message: "gone"}
		case moves:
			return crawl.Report{HTTPStatus: 200, MovedTo: "https://hosted.example/feed"}, nil
		default:
			return crawl.Report{HTTPStatus: 200}, nil
		}
	}}, crawl.Options{}, feedSource("a", ledger.P0))
	for _, want := range []ledger.SourceStatus{ledger.SourceAlive, ledger.SourceGone} {
		if _, err := d.RunOnce(t.Context(), everything(), crawl.Once{}); err != nil {
			t.Fatal(err)
		}
		if s := d.state(t, "a"); s.Status != want {
			t.Fatalf("status %s, want %s", s.Status, want)
		}
	}
	moves = false
	if err := d.Reset(t.Context(), ledger.ActorEditor, "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.RunOnce(t.Context(), everything(), crawl.Once{}); err != nil {
		t.Fatal(err)
	}
	if s := d.state(t, "a"); asked != "https://a.example/feed" || s.Status != ledger.SourceAlive || s.MovedTo != "" {
		t.Errorf("after the reset asked at %s: %+v", asked, s)
	}
}

func TestDrops(t *testing.T) {
	d := newDesk(t, &script{}, crawl.Options{})
	drops := crawl.NewDrops(d.log.Store("drops"), nil)
	some := []crawl.Dropped{
		{Source: "a", Key: "a\x1f1", Title: "First", Rule: "block advert", At: time.Unix(1, 0)},
		{Source: "a", Key: "a\x1f2", Title: "Second", Rule: "keep", At: time.Unix(2, 0)},
	}
	for _, want := range []int{2, 0} {
		if n, err := drops.Keep(t.Context(), some); err != nil || n != want {
			t.Errorf("kept %d, %v; want %d", n, err, want)
		}
	}
	if n, err := drops.Keep(t.Context(), []crawl.Dropped{{Source: "a-b", Key: "x", Title: "Other"}}); err != nil || n != 1 {
		t.Errorf("kept %d, %v", n, err)
	}
	list, err := drops.List(t.Context(), "a", 10)
	if err != nil || len(list) != 2 || list[0].Title != "Second" || list[1].Rule != "block advert" {
		t.Errorf("list: %+v, %v", list, err)
	}
	var many []crawl.Dropped
	for i := range 1200 {
		many = append(many, crawl.Dropped{Source: "a", Key: ledger.ItemKey(fmt.Sprint("n", i)), Title: fmt.Sprint(i), At: time.Unix(int64(i+10), 0)})
	}
	if _, err := drops.Keep(t.Context(), many); err != nil {
		t.Fatal(err)
	}
	if list, err = drops.List(t.Context(), "a", 0); err != nil || len(list) != 1000 || list[0].Title != "1199" {
		t.Errorf("after many: %d kept, %v", len(list), err)
	}
}
