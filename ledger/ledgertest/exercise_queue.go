package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"vesti.nixg.ru/ledger"
)

func testFailures(t *testing.T, e Engine) {
	got := appendOne(t, e, Item("a", "1"))
	for attempt := 1; attempt <= 3; attempt++ {
		c := claim(t, e) // waits for the delay
		if c.Attempt != attempt {
			t.Fatalf("attempt %d, want %d", c.Attempt, attempt)
		}
		parked, err := e.Fail(t.Context(), c, ledger.Failure{Cause: ledger.CauseBadReply, Message: "no JSON"})
		if err != nil || parked != (attempt == 3) {
			t.Fatalf("attempt %d: parked %v, %v", attempt, parked, err)
		}
		_, err = e.Fail(t.Context(), c, ledger.Failure{Cause: ledger.CauseBadReply})
		wantStale(t, err)
	}
	wantStatus(t, e, got.Post, ledger.StatusParked)
	noClaim(t, e)
	wantEvents(t, e, got.Post, "PostFetched", "PostFailed", "PostReturned", "PostFailed", "PostReturned", "PostFailed")
	for cause, want := range map[ledger.Cause][]ledger.PostNum{"": {got.Post}, ledger.CauseBadReply: {got.Post}, ledger.CauseTimeout: nil} {
		if posts := must[[]ledger.PostNum](t)(e.Parked(t.Context(), cause, 10)); !slices.Equal(posts, want) {
			t.Fatalf("parked for %q: %v", cause, posts)
		}
	}
	must[[]ledger.Seq](t)(e.Record(t.Context(), ledger.NewEvent(ledger.ActorOperator, got.Post, "", ledger.PostReturned{Reason: ledger.ReturnReplay, Lane: ledger.LaneEditor})))
	c := claim(t, e)
	if c.Attempt != 1 || c.Lane != ledger.LaneEditor {
		t.Fatalf("replayed: %+v", c)
	}
	parked, err := e.Fail(t.Context(), c, ledger.Failure{Cause: ledger.CauseTooLarge, Final: true})
	if err != nil || !parked {
		t.Fatalf("final: parked %v, %v", parked, err)
	}
	if posts := must[[]ledger.PostNum](t)(e.Parked(t.Context(), ledger.CauseBadReply, 10)); posts != nil {
		t.Fatalf("parked for the old cause: %v", posts)
	}
}

func testUnavailable(t *testing.T, e Engine) {
	appendOne(t, e, Item("a", "1"))
	for range 7 {
		c := claim(t, e)
		if c.Attempt != 1 {
			t.Fatalf("attempt %d was burnt", c.Attempt)
		}
		if parked, err := e.Fail(t.Context(), c, ledger.Failure{Cause: ledger.CauseUnavailable}); parked || err != nil {
			t.Fatalf("parked %v, %v", parked, err)
		}
	}
	complete(t, e, claim(t, e))
}

func testRelease(t *testing.T, e Engine) {
	posts := must[[]ledger.Appended](t)(e.Append(t.Context(), Items("a", 3)))
	c := claim(t, e)
	if err := e.Release(t.Context(), c, ledger.PostReturned{Reason: ledger.ReturnShutdown}); err != nil {
		t.Fatal(err)
	}
	wantStale(t, e.Release(t.Context(), c, ledger.PostReturned{Reason: ledger.ReturnShutdown}))
	wantStale(t, e.Complete(t.Context(), c, Decision("linux")))
	_, err := e.Heartbeat(t.Context(), c)
	wantStale(t, err)
	for _, want := range posts { // it keeps its place and its lane
		c := claim(t, e)
		if c.Post != want.Post || c.Attempt != 1 || c.Lane != ledger.LaneP1 {
			t.Fatalf("got %+v, want post %d", c, want.Post)
		}
	}
}

func testStages(t *testing.T, e Engine) {
	posts := must[[]ledger.Appended](t)(e.Append(t.Context(), Items("a", 20)))
	for range posts {
		c := claim(t, e)
		if err := e.Release(t.Context(), c, ledger.PostReturned{Reason: ledger.ReturnStage, Stage: ledger.StageLLM}); err != nil {
			t.Fatal(err)
		}
	}
	noClaim(t, e)
	more := must[[]ledger.Appended](t)(e.Append(t.Context(), Items("b", 1)))
	if c := claim(t, e); c.Post != more[0].Post || c.Stage != ledger.StageFirst {
		t.Fatalf("got %+v: posts that wait for a model hold up others", c)
	}
	both := []ledger.Stage{ledger.StageFirst, ledger.StageLLM}
	for _, want := range posts {
		c := must[ledger.Claim](t)(e.Claim(t.Context(), ledger.ClaimRequest{Stages: both}))
		if c.Post != want.Post || c.Stage != ledger.StageLLM {
			t.Fatalf("got post %d of %s, want %d", c.Post, c.Stage, want.Post)
		}
		complete(t, e, c)
	}
}

// testLanes fills every lane: each gets one claim in 16, the first most of the
// rest, and within a lane the oldest goes first.
func testLanes(t *testing.T, e Engine) {
	const each = 60
	lanes := make(map[ledger.PostNum]ledger.Lane)
	for i := range each {
		for lane := range ledger.Lane(ledger.LaneCount) {
			item := Item("a", fmt.Sprintf("%d-%d", i, lane))
			item.Lane = ledger.LaneCount - 1 - lane
			lanes[appendOne(t, e, item).Post] = item.Lane
		}
	}
	newest := make(map[ledger.Lane]ledger.PostNum)
	passed := make(map[ledger.Lane]int)
	left := make(map[ledger.Lane]int)
	for lane := range ledger.Lane(ledger.LaneCount) {
		left[lane] = each
	}
	for range each * ledger.LaneCount {
		c := claim(t, e)
		lane := lanes[c.Post]
		if c.Lane != lane || c.Post <= newest[lane] {
			t.Fatalf("post %d of lane %s after %d", c.Post, lane, newest[lane])
		}
		newest[lane] = c.Post
		left[lane]--
		for l := range ledger.Lane(ledger.LaneCount) {
			if l == lane || left[l] == 0 {
				passed[l] = 0
			} else if passed[l]++; passed[l] >= 16 {
				t.Fatalf("lane %s got none of 16 claims", l)
			}
		}
		if left[ledger.LaneOwn] > 0 && lane > ledger.LaneOwn && left[ledger.LaneOwn] < left[lane]/2 {
			continue
		}
	}
	if left[ledger.LaneOwn] != 0 {
		t.Fatal("something is left")
	}
	// A request moves a post to the front, also one that is in no queue's reach yet.
	old := must[[]ledger.Appended](t)(e.Append(t.Context(), Items("b", 5)))
	must[[]ledger.Seq](t)(e.Record(t.Context(), ledger.NewEvent(ledger.ActorEditor, old[4].Post, "", ledger.PostPrioritised{Lane: ledger.LaneEditor})))
	if c := claim(t, e); c.Post != old[4].Post {
		t.Fatalf("got post %d, want the one asked for, %d", c.Post, old[4].Post)
	}
}

func testRevisedInHand(t *testing.T, e Engine) {
	i := Item("a", "1")
	got := appendOne(t, e, i)
	c := claim(t, e)
	i.Text = Text("other")
	outcome(t, e, i, ledger.OutcomeRevised)
	wantStale(t, e.Complete(t.Context(), c, Decision("linux")))
	c = claim(t, e)
	if c.Post != got.Post || c.Revision != 1 || c.Item.Text != i.Text {
		t.Fatalf("got %+v", c)
	}
	i.Text += " и" // a small change: the same place, a new judgement all the same
	outcome(t, e, i, ledger.OutcomeRevised)
	wantStale(t, e.Complete(t.Context(), c, Decision("linux")))
	complete(t, e, claim(t, e))
	noClaim(t, e)
}

func testReplay(t *testing.T, e Engine) {
	got := appendOne(t, e, Item("a", "1"))
	complete(t, e, claim(t, e))
	was := state(t, e, got.Post)
	d := Decision("games")
	if _, err := e.Record(t.Context(), ledger.NewEvent(ledger.ActorOperator, got.Post, "", d)); !errors.Is(err, ledger.ErrInvalid) {
		t.Fatalf("a second classification: %v", err)
	}
	d.Replay = true
	stale := d
	stale.Revision = 7
	seqs := must[[]ledger.Seq](t)(e.RecordEach(t.Context(), []ledger.Event{
		ledger.NewEvent(ledger.ActorOperator, got.Post, "", stale),
		ledger.NewEvent(ledger.ActorOperator, 999, "", d),
		ledger.NewEvent(ledger.ActorOperator, got.Post, "", d),
	}))
	if seqs[0] != 0 || seqs[1] != 0 || seqs[2] == 0 {
		t.Fatalf("got %v", seqs)
	}
	s := state(t, e, got.Post)
	if s.Direction != "games" || !s.Decided.Equal(was.Decided) {
		t.Fatalf("got %+v", s)
	}
	if p := must[ledger.Post](t)(e.Post(t.Context(), got.Post)); p.Decision.Direction != "games" {
		t.Fatalf("decision %+v", p.Decision)
	}
}

// testReplayLeavesAlone: a replay settles no post past the queue, whether it
// waits or is in hand, nor a parked one, and overwrites no editor's decision.
func testReplayLeavesAlone(t *testing.T, e Engine) {
	var posts []ledger.PostNum
	for i := range 4 {
		posts = append(posts, appendOne(t, e, Item("a", fmt.Sprint(i))).Post)
	}
	done, inHand, parked := claim(t, e), claim(t, e), claim(t, e)
	complete(t, e, done)
	if p, err := e.Fail(t.Context(), parked, ledger.Failure{Cause: ledger.CauseTooLarge, Final: true}); !p || err != nil {
		t.Fatalf("parked %v, %v", p, err)
	}
	must[[]ledger.Seq](t)(e.Record(t.Context(), ledger.NewEvent(ledger.ActorEditor, done.Post, "", ledger.PostReviewed{Verdict: ledger.VerdictPicked})))
	head := e.Head()
	d := Decision("games")
	d.Replay = true
	var replays []ledger.Event
	for _, post := range posts {
		replays = append(replays, ledger.NewEvent(ledger.ActorOperator, post, "", d))
		_, err := e.Record(t.Context(), replays[len(replays)-1])
		wantStale(t, err)
	}
	if seqs := must[[]ledger.Seq](t)(e.RecordEach(t.Context(), replays)); slices.ContainsFunc(seqs, func(s ledger.Seq) bool { return s != 0 }) || e.Head() != head {
		t.Fatalf("written: %v", seqs)
	}
	if s := state(t, e, done.Post); s.Direction == "games" {
		t.Fatalf("an editor's post: %+v", s)
	}
	complete(t, e, inHand)
	if c := claim(t, e); c.Post != posts[3] {
		t.Fatalf("claimed %d, want %d", c.Post, posts[3])
	} else {
		complete(t, e, c)
	}
	noClaim(t, e)
	must[[]ledger.Seq](t)(e.Record(t.Context(), ledger.NewEvent(ledger.ActorEditor, done.Post, "", ledger.PostReviewed{}))) // taken back
	must[[]ledger.Seq](t)(e.Record(t.Context(), replays[0]))
}

func testRecord(t *testing.T, e Engine) {
	got := appendOne(t, e, Item("a", "1"))
	head := e.Head()
	review := ledger.NewEvent(ledger.ActorEditor, got.Post, "", ledger.PostReviewed{Direction: "llm"})
	missing := ledger.NewEvent(ledger.ActorEditor, 999, "", ledger.PostReviewed{Direction: "llm"})
	if _, err := e.Record(t.Context(), review, missing); !errors.Is(err, ledger.ErrNotFound) {
		t.Fatalf("got %v", err)
	}
	if e.Head() != head || state(t, e, got.Post).Reviewed {
		t.Fatal("half of a set was written")
	}
	for _, bad := range []ledger.Event{
		{},
		ledger.NewEvent(ledger.ActorEditor, 0, "", ledger.PostReviewed{}),
		ledger.NewEvent(ledger.ActorCrawler, 0, "", ledger.SourceReset{}),
		ledger.NewEvent(ledger.ActorCrawler, 0, "a", ledger.PostFetched{}),
		ledger.NewEvent(ledger.ActorWorker, got.Post, "", ledger.PostFailed{}),
	} {
		if _, err := e.Record(t.Context(), bad); !errors.Is(err, ledger.ErrInvalid) {
			t.Fatalf("%s: %v", bad.Type, err)
		}
	}
	views := int64(10)
	at := time.Date(2025, 1, 2, 3, 4, 5, 6789, time.UTC)
	measured := ledger.NewEvent(ledger.ActorCrawler, got.Post, "a", ledger.PostMeasured{Measures: ledger.Measures{Views: &views}})
	measured.At = at
	seqs := must[[]ledger.Seq](t)(e.Record(t.Context(), review, measured))
	if !slices.Equal(seqs, []ledger.Seq{head + 1, head + 2}) {
		t.Fatalf("got %v", seqs)
	}
	events := must[[]ledger.Event](t)(e.Read(t.Context(), head+1, 10))
	if p, ok := events[0].Payload.(ledger.PostMeasured); !ok || *p.Measures.Views != 10 || !events[0].At.Equal(at.Truncate(time.Microsecond)) {
		t.Fatalf("got %+v", events[0])
	}
	if s := state(t, e, got.Post); s.EffectiveDirection() != "llm" || !s.Reviewed {
		t.Fatalf("got %+v", s)
	}
	// A return takes a post out of a worker's hands.
	c := claim(t, e)
	must[[]ledger.Seq](t)(e.Record(t.Context(), ledger.NewEvent(ledger.ActorEditor, got.Post, "", ledger.PostReturned{Reason: ledger.ReturnEditor, Lane: ledger.LaneEditor})))
	wantStale(t, e.Complete(t.Context(), c, Decision("linux")))
	complete(t, e, claim(t, e))
}

func testSource(t *testing.T, e Engine) {
	if s := must[ledger.SourceState](t)(e.Source(t.Context(), "a")); s != (ledger.SourceState{}) {
		t.Fatalf("a source that was never seen: %+v", s)
	}
	for i := range 7 {
		must[[]ledger.Seq](t)(e.Record(t.Context(), ledger.NewEvent(ledger.ActorCrawler, 0, "a", ledger.SourceFailed{
			Run: ledger.Run{Trigger: ledger.TriggerSchedule}, Cause: ledger.CauseDNS, Message: fmt.Sprint("no such host ", i),
		})))
		must[[]ledger.Seq](t)(e.Record(t.Context(), Run("ab", i)))
	}
	s := must[ledger.SourceState](t)(e.Source(t.Context(), "a"))
	if s.Status != ledger.SourceDead || s.ErrorCount != 7 || s.LastError != "no such host 6" {
		t.Fatalf("got %+v", s)
	}
	events := must[[]ledger.Event](t)(e.SourceEvents(t.Context(), "a", 3))
	if len(events) != 3 || events[2].Payload.(ledger.SourceFailed).Message != "no such host 6" || events[0].Seq > events[1].Seq {
		t.Fatalf("got %+v", events)
	}
	must[[]ledger.Seq](t)(e.Record(t.Context(), ledger.NewEvent(ledger.ActorOperator, 0, "a", ledger.SourceReset{})))
	if s := must[ledger.SourceState](t)(e.Source(t.Context(), "a")); s.Status != ledger.SourceAlive || s.ErrorCount != 0 || s.LastError != "" {
		t.Fatalf("after the reset: %+v", s)
	}
	if s := must[ledger.SourceState](t)(e.Source(t.Context(), "ab")); s.Runs != 7 || s.New != 21 {
		t.Fatalf("got %+v", s)
	}
}

func testRead(t *testing.T, e Engine) {
	items := Items("a", 50)
	must[[]ledger.Appended](t)(e.Append(t.Context(), items))
	var seen []ledger.Event
	for after := ledger.Seq(0); ; {
		events := must[[]ledger.Event](t)(e.ReadTexts(t.Context(), after, 7))
		if len(events) == 0 {
			break
		}
		after = events[len(events)-1].Seq
		seen = append(seen, events...)
	}
	if len(seen) != len(items) {
		t.Fatalf("%d events, want %d", len(seen), len(items))
	}
	for i, ev := range seen {
		f := ev.Payload.(ledger.PostFetched)
		if f.Item.Text != items[i].Text || f.TextLen != len(items[i].Text) || ev.Source != "a" || f.Item.Source != "a" || ev.At.IsZero() {
			t.Fatalf("event %d: %+v", i, ev)
		}
	}
	if ev := must[[]ledger.Event](t)(e.Read(t.Context(), 0, 1)); ev[0].Payload.(ledger.PostFetched).Item.Text != "" {
		t.Fatal("Read gave a text")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := e.Wait(ctx, e.Head()-1); err != nil {
		t.Fatal(err)
	}
	head := e.Head()
	woken := make(chan error)
	go func() { woken <- e.Wait(ctx, head) }()
	appendOne(t, e, Item("b", "1"))
	if err := <-woken; err != nil || e.Head() <= head {
		t.Fatalf("wait: %v, head %d", err, e.Head())
	}
}

func testFind(t *testing.T, e Engine) {
	posts := must[[]ledger.Appended](t)(e.Append(t.Context(), Items("a", 5)))
	for _, p := range posts {
		id := p.ID.String()
		for _, form := range []string{id, id[:8], id[:9], " " + id[:16], fmt.Sprint(p.Post)} {
			if n := must[ledger.PostNum](t)(e.FindPost(t.Context(), form)); n != p.Post {
				t.Fatalf("find %q: %d, want %d", form, n, p.Post)
			}
		}
	}
	for form, want := range map[string]error{
		"999": ledger.ErrNotFound, "00000000000": ledger.ErrNotFound, "ffffffffff": ledger.ErrNotFound,
		"abc": ledger.ErrInvalid, "": ledger.ErrInvalid, "not a post": ledger.ErrInvalid,
	} {
		if _, err := e.FindPost(t.Context(), form); !errors.Is(err, want) {
			t.Errorf("find %q: %v, want %v", form, err, want)
		}
	}
	if _, err := e.Post(t.Context(), 999); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("post 999: %v", err)
	}
	if _, err := e.PostEvents(t.Context(), 999); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("events of post 999: %v", err)
	}
}

func testStore(t *testing.T, e Engine) {
	ctx := t.Context()
	a, b := e.Store("a"), e.Store("ab")
	set := func(s ledger.Store, key, value string) {
		t.Helper()
		if err := s.Update(ctx, func(tx ledger.Tx) error { return tx.Set([]byte(key), []byte(value)) }); err != nil {
			t.Fatal(err)
		}
	}
	for _, k := range []string{"x1", "x2", "x3", "y"} {
		set(a, k, "a"+k)
	}
	set(b, "x2", "other")
	err := a.Update(ctx, func(tx ledger.Tx) error {
		if err := tx.Delete([]byte("x1")); err != nil {
			return err
		}
		return context.DeadlineExceeded
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	var keys []string
	err = a.View(ctx, func(tx ledger.Tx) error {
		if v, err := tx.Get([]byte("x1")); err != nil || string(v) != "ax1" {
			t.Errorf("x1: %q, %v", v, err)
		}
		if _, err := tx.Get([]byte("none")); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("none: %v", err)
		}
		if err := tx.Set([]byte("x"), nil); err == nil {
			t.Error("a view can write")
		}
		return tx.Scan([]byte("x"), []byte("x2"), func(k, v []byte) (bool, error) {
			keys = append(keys, string(k)+"="+string(v))
			return true, nil
		})
	})
	if err != nil || !slices.Equal(keys, []string{"x2=ax2", "x3=ax3"}) {
		t.Fatalf("scan: %v, %v", keys, err)
	}
	// Increments at the same time: none is lost.
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				err := a.Update(ctx, func(tx ledger.Tx) error {
					v, err := tx.Get([]byte("n"))
					if err != nil && !errors.Is(err, ledger.ErrNotFound) {
						return err
					}
					return tx.Set([]byte("n"), append(v, '.'))
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	err = a.View(ctx, func(tx ledger.Tx) error {
		if v, err := tx.Get([]byte("n")); len(v) != 160 || err != nil {
			t.Errorf("%d increments of 160, %v", len(v), err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// testHundred: 100 posts, 8 workers, a classifier that fails now and then. Each
// post is classified once, and a second run finds nothing to do.
func testHundred(t *testing.T, e Engine) {
	must[[]ledger.Appended](t)(e.Append(t.Context(), Items("a", 100)))
	var mu sync.Mutex
	done := make(map[ledger.PostNum]int)
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for w := range 8 {
		wg.Go(func() {
			for n := 0; ; n++ {
				c, err := e.Claim(ctx, ledger.ClaimRequest{Worker: fmt.Sprint(w)})
				if err != nil {
					return
				}
				if n%5 == 4 {
					if _, err := e.Fail(t.Context(), c, ledger.Failure{Cause: ledger.CauseUnavailable}); err != nil {
						t.Error(err)
					}
					continue
				}
				if err := e.Complete(t.Context(), c, Decision("linux")); err != nil {
					t.Error(err)
				}
				mu.Lock()
				done[c.Post]++
				if len(done) == 100 {
					cancel()
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for p, n := range done {
		if n != 1 {
			t.Errorf("post %d classified %d times", p, n)
		}
	}
	classified := 0
	for _, ev := range must[[]ledger.Event](t)(e.Read(t.Context(), 0, 10000)) {
		if ev.Type == ledger.TypePostClassified {
			classified++
		}
	}
	if len(done) != 100 || classified != 100 {
		t.Errorf("%d posts, %d PostClassified", len(done), classified)
	}
	noClaim(t, e)
}

// testSameItems: crawlers that bring the same at once make one post of it.
func testSameItems(t *testing.T, e Engine) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	counts := make(map[ledger.Outcome]int)
	for w := range 8 {
		wg.Go(func() {
			items := Items("a", 40)
			if w%2 == 1 { // another source with the same texts
				for i := range items {
					items[i].Source = "b"
					items[i].Key = ledger.NewItemKey("b", fmt.Sprint(i))
				}
			}
			out, err := e.Append(t.Context(), items)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, a := range out {
				counts[a.Outcome]++
			}
		})
	}
	wg.Wait()
	if counts[ledger.OutcomeNew] != 40 || counts[ledger.OutcomeSeenAgain] != 40 || counts[ledger.OutcomeKnown] != 240 {
		t.Fatalf("got %v", counts)
	}
}

func testLease(t *testing.T, e Engine) {
	got := appendOne(t, e, Item("a", "1"))
	first := claim(t, e)
	second := claim(t, e) // waits for the first one's lease to end
	if second.Post != got.Post || second.Attempt != 2 || second.Token == first.Token {
		t.Fatalf("got %+v after %+v", second, first)
	}
	wantStale(t, e.Complete(t.Context(), first, Decision("games")))
	complete(t, e, second)
	if s := state(t, e, got.Post); s.Direction != "linux" || s.Cause != "" {
		t.Fatalf("got %+v", s)
	}
}

// testPoison: a post on which every worker hangs is parked in the end.
func testPoison(t *testing.T, e Engine) {
	got := appendOne(t, e, Item("a", "1"))
	for range 3 {
		claim(t, e)
	}
	eventually(t, "the post is parked", func() bool { return state(t, e, got.Post).Status == ledger.StatusParked })
	if posts := must[[]ledger.PostNum](t)(e.Parked(t.Context(), ledger.CauseLease, 0)); len(posts) != 1 {
		t.Fatalf("parked: %v", posts)
	}
	noClaim(t, e)
}

func testHeartbeat(t *testing.T, e Engine) {
	appendOne(t, e, Item("a", "1"))
	c := claim(t, e)
	beat := time.NewTicker(400 * time.Millisecond)
	defer beat.Stop()
	for range 6 { // in all longer than a lease
		<-beat.C
		renewed := must[ledger.Claim](t)(e.Heartbeat(t.Context(), c))
		if !renewed.Lease.After(c.Lease) {
			t.Fatalf("lease %v after %v", renewed.Lease, c.Lease)
		}
		c = renewed
	}
	noClaim(t, e)
	complete(t, e, c)
}

func testClosed(t *testing.T, e Engine) {
	appendOne(t, e, Item("a", "1"))
	claim(t, e)
	ended := make(chan error)
	go func() {
		_, err := e.Claim(t.Context(), ledger.ClaimRequest{})
		ended <- err
	}()
	go func() { ended <- e.Wait(t.Context(), e.Head()) }()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-ended; !errors.Is(err, ledger.ErrClosed) {
			t.Errorf("a waiting call: %v", err)
		}
	}
	_, err := e.Append(t.Context(), Items("b", 1))
	if !errors.Is(err, ledger.ErrClosed) {
		t.Errorf("append: %v", err)
	}
	if _, err := e.Read(t.Context(), 0, 1); !errors.Is(err, ledger.ErrClosed) {
		t.Errorf("read: %v", err)
	}
	if err := e.Store("a").View(t.Context(), func(ledger.Tx) error { return nil }); !errors.Is(err, ledger.ErrClosed) {
		t.Errorf("store: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}
