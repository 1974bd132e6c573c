package projections_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
	"vesti.nixg.ru/ledger/ledgertest"
	"vesti.nixg.ru/projections"
	"vesti.nixg.ru/projections/posts"
	"vesti.nixg.ru/projections/queue"
	"vesti.nixg.ru/projections/search"
	"vesti.nixg.ru/projections/sources"
)

// views are all projections as serve wires them.
type views struct {
	queue   *queue.Queue
	sources *sources.Sources
	posts   *posts.Posts
	search  *search.Search
}

func newViews(log *badgerlog.Log, dir string) views {
	list := posts.New(log.Store)
	return views{
		queue: queue.New(log.Store), sources: sources.New(log.Store), posts: list,
		search: search.New(search.Options{Dir: dir, Texts: log, Posts: list}),
	}
}

func (v views) all() []projections.Projection {
	return []projections.Projection{v.queue, v.sources, v.posts, v.search}
}

// picture is everything that the views show.
type picture struct {
	Counts  queue.Counts
	Sources []sources.Source
	Runs    map[ledger.Slug][]sources.Run
	List    posts.Page
	Byword  map[string][]ledger.PostNum
}

func (v views) picture(t *testing.T) picture {
	t.Helper()
	p := picture{Runs: map[ledger.Slug][]sources.Run{}, Byword: map[string][]ledger.PostNum{}}
	p.Counts = v.queue.Counts(noon, ledger.QueueGauge{})
	p.Sources = v.sources.All()
	for _, s := range p.Sources {
		runs, err := v.sources.Runs(t.Context(), s.Slug, sources.KeptRuns)
		if err != nil {
			t.Fatal(err)
		}
		p.Runs[s.Slug] = runs
	}
	var err error
	if p.List, err = v.posts.List(t.Context(), posts.Request{Limit: 10_000, Facets: true}); err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{"новость", "заголовок", "rev1", "rev2", "rev3", "б*", "-rev1", "ба* OR во*"} {
		r, err := v.search.Search(t.Context(), search.Request{Query: q, Limit: search.MaxLimit, Sort: posts.ByDate})
		if err != nil {
			t.Fatalf("%q: %v", q, err)
		}
		nums := []ledger.PostNum{}
		for _, h := range r.Hits {
			nums = append(nums, h.Num)
		}
		p.Byword[q] = nums
	}
	return p
}

// TestReplayGivesWhatWasLive drives a ledger at random, with projections that
// are stopped and started, then compares what they show with what the engine
// says and with what a rebuild from the first event shows.
func TestReplayGivesWhatWasLive(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			log := ledgertest.Open(t, ledgertest.Retry(2, time.Millisecond, time.Millisecond), ledgertest.Now(slowClock()))
			dir := t.TempDir()
			h := &history{log: log, rng: rand.New(rand.NewPCG(seed, 7))}
			for range 4 {
				v := newViews(log, dir)
				r, stop := run(t, options(log, v.all()...))
				for range 60 {
					h.step(t)
				}
				if h.rng.IntN(2) == 0 {
					settle(t, log, r)
				}
				stop()
			}
			v := newViews(log, dir)
			r, _ := run(t, options(log, v.all()...))
			settle(t, log, r)
			live := v.picture(t)
			h.compare(t, v, live)
			for _, name := range r.Names() {
				if err := r.Rebuild(t.Context(), name, nil); err != nil {
					t.Fatal(err)
				}
			}
			settle(t, log, r)
			if diff := cmp.Diff(live, v.picture(t)); diff != "" {
				t.Errorf("a rebuild shows something else (-live +rebuilt):\n%s", diff)
			}
		})
	}
}

// noon is when the test's events begin, so that they all fall on one day.
var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// slowClock returns a clock that begins at noon and goes as the real one does.
func slowClock() func() time.Time {
	began := time.Now()
	return func() time.Time { return noon.Add(time.Since(began)) }
}

// history makes events of all kinds, at random.
type history struct {
	log   *badgerlog.Log
	rng   *rand.Rand
	guids int
	posts []ledger.PostNum
	days  int
}

func (h *history) step(t *testing.T) {
	t.Helper()
	switch h.rng.IntN(10) {
	case 0, 1, 2:
		h.append(t)
	case 3, 4, 5:
		h.work(t)
	case 6, 7:
		h.crawl(t)
	default:
		h.edit(t)
	}
}

func (h *history) source() ledger.Slug { return ledger.Slug(fmt.Sprintf("source-%d", h.rng.IntN(4))) }

// append brings a few items: new ones, known ones, revisions, texts of others.
func (h *history) append(t *testing.T) {
	t.Helper()
	var items []ledger.Item
	for range 1 + h.rng.IntN(4) {
		guid := fmt.Sprint(h.rng.IntN(h.guids + 2))
		h.guids++
		it := ledgertest.Item(h.source(), guid)
		it.Published = time.Date(2026, 1, 1+h.rng.IntN(300), 0, 0, 0, 0, time.UTC)
		it.Lang = []string{"ru", "en"}[h.rng.IntN(2)]
		it.Lane = ledger.Lane(h.rng.IntN(ledger.LaneCount))
		switch h.rng.IntN(4) {
		case 0:
			it.Text = ledgertest.Text("shared" + guid)
		case 1:
			it.Text += fmt.Sprintf(" rev%d", 1+h.rng.IntN(3))
		case 2:
			it.Title += fmt.Sprintf(" изменён %d", h.rng.IntN(3))
		}
		items = append(items, it)
	}
	appended, err := h.log.Append(t.Context(), items)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range appended {
		if a.Outcome == ledger.OutcomeNew {
			h.posts = append(h.posts, a.Post)
		}
	}
}

// work takes a post through a worker's hands.
func (h *history) work(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	c, err := h.log.Claim(ctx, ledger.ClaimRequest{Worker: "w", Stages: []ledger.Stage{ledger.StageFirst, ledger.StageLLM}, NoWait: true})
	if errors.Is(err, ledger.ErrQueueEmpty) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	switch h.rng.IntN(5) {
	case 0:
		_, err = h.log.Fail(ctx, c, ledger.Failure{Cause: ledger.CauseBadReply, Message: "no", Final: h.rng.IntN(3) == 0})
	case 1:
		err = h.log.Release(ctx, c, ledger.PostReturned{Reason: ledger.ReturnStage, Stage: ledger.StageLLM, Lane: c.Lane})
	default:
		d := ledgertest.Decision(ledger.DefaultDirections()[h.rng.IntN(4)])
		d.Interest = float64(h.rng.IntN(100)) / 100
		d.Revision = c.Revision
		err = h.log.Complete(ctx, c, d)
	}
	if err != nil && !errors.Is(err, ledger.ErrStale) { // it was reclassified before it was ever claimed
		t.Fatal(err)
	}
}

// crawl records a run of a source, or what an operator does to it.
func (h *history) crawl(t *testing.T) {
	t.Helper()
	h.days++
	r := ledger.Run{
		Trigger: ledger.TriggerSchedule, Started: time.Date(2026, 1, 1, h.days, 0, 0, 0, time.UTC),
		Duration: time.Second, HTTPStatus: 200, Fetched: h.rng.IntN(9), New: h.rng.IntN(3),
	}
	payloads := []ledger.Payload{
		ledger.SourceCrawled{Run: r, Title: "Лента", Validators: ledger.Validators{ETag: fmt.Sprint(h.days)}},
		ledger.SourceCrawled{Run: r, NotModified: true},
		ledger.SourceFailed{Run: r, Cause: ledger.CauseDNS, Message: strings.Repeat("имя ", 3)},
		ledger.SourceThrottled{Run: r, Until: r.Started.Add(time.Hour), Message: "429"},
		ledger.SourceReset{},
		ledger.SourceMoved{From: "https://a.example", URL: "https://b.example"},
	}
	h.record(t, ledger.NewEvent(ledger.ActorCrawler, 0, h.source(), payloads[h.rng.IntN(len(payloads))]))
}

// edit records what an editor or the source says of a post.
func (h *history) edit(t *testing.T) {
	t.Helper()
	if len(h.posts) == 0 {
		return
	}
	post := h.posts[h.rng.IntN(len(h.posts))]
	views := int64(h.rng.IntN(1000))
	payloads := []ledger.Payload{
		ledger.PostReviewed{Verdict: ledger.VerdictPicked},
		ledger.PostReviewed{Verdict: ledger.VerdictRejected, Direction: "games"},
		ledger.PostReviewed{},
		ledger.PostPrioritised{Lane: ledger.LaneEditor},
		ledger.PostReturned{Reason: ledger.ReturnRules, Lane: ledger.LaneBackfill},
		ledger.PostMeasured{Measures: ledger.Measures{Views: &views}},
		ledger.PostRemoved{Key: "k", Cause: "404"},
	}
	if full, err := h.log.Post(t.Context(), post); err == nil {
		again := ledgertest.Decision("politics")
		again.Replay, again.Revision = true, full.State.Revision
		payloads = append(payloads, again)
	}
	h.record(t, ledger.NewEvent(ledger.ActorEditor, post, "", payloads[h.rng.IntN(len(payloads))]))
}

func (h *history) record(t *testing.T, e ledger.Event) {
	t.Helper()
	if _, err := h.log.Record(t.Context(), e); err != nil && !errors.Is(err, ledger.ErrStale) {
		t.Fatal(err)
	}
}

// compare holds the views against the engine's own states.
func (h *history) compare(t *testing.T, v views, p picture) {
	t.Helper()
	ctx := t.Context()
	var want queue.Counts
	want.ParkedByCause = map[ledger.Cause]int{}
	shown := 0
	for _, num := range h.posts {
		full, err := h.log.Post(ctx, num)
		if err != nil {
			t.Fatal(err)
		}
		got, err := v.posts.Get(ctx, num)
		if err != nil {
			t.Fatal(err)
		}
		s := full.State
		if got.Status != s.Status || got.Direction != s.EffectiveDirection() || got.Verdict != s.Verdict ||
			got.Title != full.Item.Title || got.ID != full.ID || got.Interest != s.Interest || got.Revisions != s.Revision {
			t.Errorf("post %d: the view has %+v, the engine %+v", num, got, full)
		}
		if !s.Removed {
			shown++
		}
		switch s.Status {
		case ledger.StatusPending:
			want.Pending++
			want.ByLane[s.Lane]++
			want.ByStage[s.Stage]++
			if want.OldestPending.IsZero() || s.Queued.Before(want.OldestPending) {
				want.OldestPending = s.Queued
			}
		case ledger.StatusParked:
			want.Parked++
			want.ParkedByCause[s.Cause]++
		case ledger.StatusClassified:
			want.Classified++
		case ledger.StatusNone:
		}
		if done, err := decidedByWork(ctx, h.log, num); err != nil {
			t.Fatal(err)
		} else if done {
			want.DoneToday++
		}
	}
	if diff := cmp.Diff(want, p.Counts); diff != "" {
		t.Errorf("the queue is counted wrong (-engine +view):\n%s", diff)
	}
	if p.List.Total != shown {
		t.Errorf("%d posts are listed, want %d", p.List.Total, shown)
	}
	for _, s := range p.Sources {
		state, err := h.log.Source(context.WithoutCancel(ctx), s.Slug)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(state, s.SourceState); diff != "" {
			t.Errorf("source %s (-engine +view):\n%s", s.Slug, diff)
		}
	}
}

// decidedByWork reports whether a post's first final decision was no replay.
func decidedByWork(ctx context.Context, log *badgerlog.Log, num ledger.PostNum) (bool, error) {
	events, err := log.PostEvents(ctx, num)
	if err != nil {
		return false, err
	}
	for _, e := range events {
		if c, ok := e.Payload.(ledger.PostClassified); ok && !c.Provisional {
			return !c.Replay, nil
		}
	}
	return false, nil
}
