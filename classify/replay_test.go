package classify_test

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"

	"vesti.nixg.ru/classify"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
)

// replayPosts is how many posts TestReclassifyAsShown replays: 3,000, or what
// VESTI_REPLAY_POSTS says.
func replayPosts() int {
	if n, err := strconv.Atoi(os.Getenv("VESTI_REPLAY_POSTS")); err == nil && n > 0 {
		return n
	}
	return 3000
}

// TestReclassifyAsShown holds what a reclassification writes against what its
// dry run has shown, post by post: every post that was shown gets the decision
// that was shown, once; no other gets anything; those that an editor has decided
// stay; a second run writes nothing.
func TestReclassifyAsShown(t *testing.T) {
	n := replayPosts()
	l := past(t, n)
	reviewed := make(map[ledger.PostNum]bool)
	for post := ledger.PostNum(2); int(post) <= n; post += 500 { // posts on Wine, which the new rules would move
		reviewed[post] = true
		if _, err := l.Record(t.Context(), ledger.NewEvent(ledger.ActorEditor, post, "", ledger.PostReviewed{Verdict: ledger.VerdictPicked})); err != nil {
			t.Fatal(err)
		}
	}
	before := l.Head()
	var steps []classify.ReclassifyProgress
	dry := reclassify(t, l, classify.ReclassifyOptions{
		DryRun: true, Samples: n, Progress: func(p classify.ReclassifyProgress) { steps = append(steps, p) },
	})
	if l.Head() != before {
		t.Fatalf("the dry run wrote: head %d, before %d", l.Head(), before)
	}
	checkProgress(t, steps)
	if len(dry.Samples) != dry.Changed || dry.Moved != n/5-len(reviewed) || dry.Changed != 2*(n/5)-len(reviewed) || dry.Reviewed != len(reviewed) {
		t.Fatalf("%d samples of %+v", len(dry.Samples), dry)
	}
	shown := make(map[ledger.PostNum]classify.Sample, len(dry.Samples))
	for _, s := range dry.Samples {
		shown[s.Post] = s
	}

	applied := reclassify(t, l, classify.ReclassifyOptions{})
	if applied.Written != dry.Changed || applied.Refused != 0 {
		t.Errorf("written %d, refused %d, shown %d", applied.Written, applied.Refused, dry.Changed)
	}
	written := make(map[ledger.PostNum]int)
	for _, e := range readAll(t, l, before) {
		p, ok := e.Payload.(ledger.PostClassified)
		if !ok || !p.Replay || len(p.Reasons) == 0 || p.Summary == "" {
			t.Fatalf("wrote %+v", e)
		}
		s := shown[e.Post]
		if written[e.Post]++; written[e.Post] > 1 || p.Direction != s.To || p.Relevance != s.Relevance[1] || p.Interest != s.Interest[1] {
			t.Fatalf("post %d: wrote %+v, shown %+v", e.Post, p.Classification, s)
		}
	}
	for post := range shown {
		if written[post] != 1 {
			t.Errorf("post %d was shown and written %d times", post, written[post])
		}
	}
	for post := range reviewed {
		if st := state(t, l, post); st.Direction != "linux" || written[post] != 0 {
			t.Errorf("an editor's post %d: %+v", post, st)
		}
	}
	after := l.Head()
	if again := reclassify(t, l, classify.ReclassifyOptions{}); again.Changed != 0 || l.Head() != after {
		t.Errorf("again: %+v", again)
	}
	if again := reclassify(t, l, classify.ReclassifyOptions{DryRun: true}); again.Changed != 0 || len(again.Samples) != 0 {
		t.Errorf("a dry run after it: %+v", again)
	}
	t.Logf("%d posts: %d shown and written, %d reviewed, progress told %d times", n, len(written), len(reviewed), len(steps))
}

// checkProgress wants steps that grow, and the end told.
func checkProgress(t *testing.T, steps []classify.ReclassifyProgress) {
	t.Helper()
	order := []string{"reading", "judging"}
	rank := func(p classify.ReclassifyProgress) int { return slices.Index(order, p.Step) }
	if !slices.IsSortedFunc(steps, func(a, b classify.ReclassifyProgress) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Done, b.Done))
	}) {
		t.Errorf("progress %+v", steps)
	}
	if last := steps[len(steps)-1]; last.Done != last.Total || last.Total == 0 {
		t.Errorf("the last progress is %+v", last)
	}
}

// TestReclassifySamples: which changes are shown is the same in each run, and
// moves are shown before scores.
func TestReclassifySamples(t *testing.T) {
	l := past(t, 1000)
	first := reclassify(t, l, classify.ReclassifyOptions{DryRun: true})
	for range 5 {
		if again := reclassify(t, l, classify.ReclassifyOptions{DryRun: true}); !slices.Equal(again.Samples, first.Samples) {
			t.Fatalf("samples %+v, before %+v", again.Samples, first.Samples)
		}
	}
	posts := make([]ledger.PostNum, 0, len(first.Samples))
	for _, s := range first.Samples {
		posts = append(posts, s.Post)
		if s.From == s.To || s.Because == "" {
			t.Errorf("sample %+v", s)
		}
	}
	if len(posts) != 20 || posts[len(posts)-1] < 500 {
		t.Errorf("the samples are all old: %v", posts)
	}
}

// history is a ledger in which something happens after its first reading.
type history struct {
	*badgerlog.Log
	happens sync.Once
	once    func()
}

func (h *history) ReadTexts(ctx context.Context, after ledger.Seq, limit int) ([]ledger.Event, error) {
	h.happens.Do(h.once)
	return h.Log.ReadTexts(ctx, after, limit)
}

// TestReclassifyMeanwhile: a post that an editor decides, or that goes back into
// the queue, while history is judged, keeps what it has; the diff says so.
func TestReclassifyMeanwhile(t *testing.T) {
	l := past(t, 20)
	picked, returned := ledger.PostNum(2), ledger.PostNum(7)
	meanwhile := history{Log: l, once: func() {
		for post, p := range map[ledger.PostNum]ledger.Payload{
			picked:   ledger.PostReviewed{Verdict: ledger.VerdictPicked},
			returned: ledger.PostReturned{Reason: ledger.ReturnEditor, Lane: ledger.LaneEditor},
		} {
			if _, err := l.Record(t.Context(), ledger.NewEvent(ledger.ActorEditor, post, "", p)); err != nil {
				t.Error(err)
			}
		}
	}}
	d, err := classify.Reclassify(t.Context(), &meanwhile, l, classify.ReclassifyOptions{Keyword: ruleSet(t, newRules)})
	if err != nil {
		t.Fatal(err)
	}
	if d.Moved != 2 || d.Refused != 2 || d.Written != d.Changed {
		t.Errorf("%+v", d)
	}
	for post, want := range map[ledger.PostNum]ledger.Status{picked: ledger.StatusClassified, returned: ledger.StatusPending} {
		if st := state(t, l, post); st.Direction != "linux" || st.Status != want {
			t.Errorf("post %d: %+v", post, st)
		}
	}
	if n := count(t, l, ledger.TypePostClassified); n[picked] != 1 || n[returned] != 1 {
		t.Errorf("classified %v", n)
	}
}
