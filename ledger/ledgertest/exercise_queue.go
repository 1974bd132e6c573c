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
