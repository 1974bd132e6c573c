package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"vesti.nixg.ru/ledger"
)

// Engine is what every engine does; see DESIGN.md of package ledger. It is
// larger than any consumer's interface, because the suite uses all of it.
type Engine interface {
	Append(ctx context.Context, items []ledger.Item) ([]ledger.Appended, error)
	KnownItems(ctx context.Context, keys []ledger.ItemKey) ([]ledger.KnownItem, error)
	KnownText(ctx context.Context, source ledger.Slug, id ledger.PostID) (ledger.KnownText, error)
	Record(ctx context.Context, events ...ledger.Event) ([]ledger.Seq, error)
	RecordEach(ctx context.Context, events []ledger.Event) ([]ledger.Seq, error)
	Source(ctx context.Context, slug ledger.Slug) (ledger.SourceState, error)
	Claim(ctx context.Context, r ledger.ClaimRequest) (ledger.Claim, error)
	Heartbeat(ctx context.Context, c ledger.Claim) (ledger.Claim, error)
	Complete(ctx context.Context, c ledger.Claim, d ledger.PostClassified) error
	CompleteLater(ctx context.Context, c ledger.Claim, d ledger.PostClassified, done func(error)) error
	Fail(ctx context.Context, c ledger.Claim, f ledger.Failure) (bool, error)
	Release(ctx context.Context, c ledger.Claim, r ledger.PostReturned) error
	Head() ledger.Seq
	Wait(ctx context.Context, after ledger.Seq) error
	Read(ctx context.Context, after ledger.Seq, limit int) ([]ledger.Event, error)
	ReadTexts(ctx context.Context, after ledger.Seq, limit int) ([]ledger.Event, error)
	Post(ctx context.Context, n ledger.PostNum) (ledger.Post, error)
	FindPost(ctx context.Context, id string) (ledger.PostNum, error)
	PostEvents(ctx context.Context, n ledger.PostNum) ([]ledger.Event, error)
	SourceEvents(ctx context.Context, slug ledger.Slug, limit int) ([]ledger.Event, error)
	Queue() ledger.QueueGauge
	Parked(ctx context.Context, cause ledger.Cause, limit int) ([]ledger.PostNum, error)
	Store(namespace string) ledger.Store
	Close() error
}

// Factory opens an engine for a test: a lease of lease, three attempts, a first
// delay of retry. It is closed when the test ends.
type Factory func(t *testing.T, lease, retry time.Duration) Engine

// Exercise runs the suite that every engine passes.
func Exercise(t *testing.T, open Factory) {
	for _, tt := range []struct {
		name string
		run  func(*testing.T, Engine)
	}{
		{"identity", testIdentity},
		{"revision", testRevision},
		{"links", testLinks},
		{"short texts", testShortTexts},
		{"known items", testKnownItems},
		{"known text", testKnownText},
		{"bad items", testBadItems},
		{"claim", testClaim},
		{"claim waits", testClaimWaits},
		{"provisional", testProvisional},
		{"failures", testFailures},
		{"unavailable", testUnavailable},
		{"release", testRelease},
		{"stages", testStages},
		{"lanes", testLanes},
		{"revised in hand", testRevisedInHand},
		{"replay", testReplay},
		{"replay leaves alone", testReplayLeavesAlone},
		{"record", testRecord},
		{"source", testSource},
		{"read", testRead},
		{"find", testFind},
		{"store", testStore},
		{"hundred posts, eight workers", testHundred},
		{"one item, many crawlers", testSameItems},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.run(t, open(t, time.Minute, time.Millisecond))
		})
	}
	t.Run("lease", func(t *testing.T) {
		t.Parallel()
		testLease(t, open(t, 500*time.Millisecond, time.Millisecond))
	})
	t.Run("poison", func(t *testing.T) {
		t.Parallel()
		testPoison(t, open(t, 100*time.Millisecond, time.Millisecond))
	})
	t.Run("heartbeat", func(t *testing.T) {
		t.Parallel()
		testHeartbeat(t, open(t, 2*time.Second, time.Millisecond))
	})
	t.Run("closed", func(t *testing.T) {
		t.Parallel()
		testClosed(t, open(t, time.Minute, time.Millisecond))
	})
}

// must fails the test on an error and returns v.
func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func appendOne(t *testing.T, e Engine, i ledger.Item) ledger.Appended {
	t.Helper()
	return must[[]ledger.Appended](t)(e.Append(t.Context(), []ledger.Item{i}))[0]
}

func outcome(t *testing.T, e Engine, i ledger.Item, want ledger.Outcome) ledger.Appended {
	t.Helper()
	got := appendOne(t, e, i)
	if got.Outcome != want {
		t.Fatalf("append %s: %s, want %s", i.Key, got.Outcome, want)
	}
	if (got.Seq == 0) != (want == ledger.OutcomeKnown) && want != ledger.OutcomeSeenAgain {
		t.Fatalf("append %s: %s with Seq %d", i.Key, got.Outcome, got.Seq)
	}
	return got
}

func claim(t *testing.T, e Engine) ledger.Claim {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	return must[ledger.Claim](t)(e.Claim(ctx, ledger.ClaimRequest{Worker: "w"}))
}

func noClaim(t *testing.T, e Engine) {
	t.Helper()
	c, err := e.Claim(t.Context(), ledger.ClaimRequest{Worker: "w", NoWait: true})
	if !errors.Is(err, ledger.ErrQueueEmpty) {
		t.Fatalf("claim: %v, %v; want ErrQueueEmpty", c.Post, err)
	}
}

func complete(t *testing.T, e Engine, c ledger.Claim) {
	t.Helper()
	if err := e.Complete(t.Context(), c, Decision("linux")); err != nil {
		t.Fatalf("complete post %d: %v", c.Post, err)
	}
}

func state(t *testing.T, e Engine, n ledger.PostNum) ledger.PostState {
	t.Helper()
	return must[ledger.Post](t)(e.Post(t.Context(), n)).State
}

func wantStatus(t *testing.T, e Engine, n ledger.PostNum, want ledger.Status) {
	t.Helper()
	if got := state(t, e, n).Status; got != want {
		t.Fatalf("post %d is %s, want %s", n, got, want)
	}
}

func wantStale(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, ledger.ErrStale) {
		t.Fatalf("got %v, want ErrStale", err)
	}
}

func types(events []ledger.Event) []string {
	names := make([]string, len(events))
	for i, e := range events {
		names[i] = e.Type.String()
	}
	return names
}

func wantEvents(t *testing.T, e Engine, n ledger.PostNum, want ...string) {
	t.Helper()
	events := must[[]ledger.Event](t)(e.PostEvents(t.Context(), n))
	if got := types(events); !slices.Equal(got, want) {
		t.Fatalf("events of post %d: %v, want %v", n, got, want)
	}
}

// eventually waits for what the engine does by itself.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(10 * time.Second); !ok(); <-again.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

func testIdentity(t *testing.T, e Engine) {
	a := Item("a", "1")
	first := outcome(t, e, a, ledger.OutcomeNew)
	if first.ID != ledger.IdentifyText(a.Text, a.Key) || first.Post != ledger.PostNum(first.Seq) {
		t.Fatalf("got %+v", first)
	}
	outcome(t, e, a, ledger.OutcomeKnown)
	b := a
	b.Source, b.Key, b.Text = "b", ledger.NewItemKey("b", "x"), " "+a.Text+"\n"
	seen := outcome(t, e, b, ledger.OutcomeSeenAgain)
	if seen.Post != first.Post || seen.ID != first.ID || seen.Seq == 0 {
		t.Fatalf("seen again: %+v, want post %d", seen, first.Post)
	}
	outcome(t, e, b, ledger.OutcomeKnown)
	b.Key = ledger.NewItemKey("b", "y") // a guid that changes with each fetch
	if again := outcome(t, e, b, ledger.OutcomeSeenAgain); again.Seq != 0 {
		t.Fatalf("a carrier's further key wrote event %d", again.Seq)
	}
	outcome(t, e, b, ledger.OutcomeKnown)
	wantEvents(t, e, first.Post, "PostFetched", "PostSeenAgain")
}

func testRevision(t *testing.T, e Engine) {
	i := Item("a", "1")
	first := outcome(t, e, i, ledger.OutcomeNew)
	complete(t, e, claim(t, e))

	i.Title = "Другой"
	outcome(t, e, i, ledger.OutcomeTouched)
	wantStatus(t, e, first.Post, ledger.StatusClassified)

	small := i
	small.Text += " и"
	outcome(t, e, small, ledger.OutcomeRevised)
	wantStatus(t, e, first.Post, ledger.StatusClassified)

	large := i
	large.Text = Text("other")
	outcome(t, e, large, ledger.OutcomeRevised)
	p := must[ledger.Post](t)(e.Post(t.Context(), first.Post))
	if p.State.Status != ledger.StatusPending || p.ID != first.ID || p.Revisions != 2 || p.Item.Text != large.Text || p.Item.Title != "Другой" {
		t.Fatalf("after a large revision: %+v", p)
	}
	complete(t, e, claim(t, e))

	outcome(t, e, i, ledger.OutcomeTouched) // the first text again
	p = must[ledger.Post](t)(e.Post(t.Context(), first.Post))
	if p.State.Status != ledger.StatusClassified || p.Revisions != 2 || p.Item.Text != i.Text {
		t.Fatalf("after the first text came back: %+v", p)
	}
	// A revision's text is a further key of the post.
	other := Item("b", "1")
	other.Text = large.Text
	if got := outcome(t, e, other, ledger.OutcomeSeenAgain); got.Post != first.Post {
		t.Fatalf("the text of a revision leads to post %d", got.Post)
	}
	// An editor's word keeps a revised post out of the queue.
	must[[]ledger.Seq](t)(e.Record(t.Context(), ledger.NewEvent(ledger.ActorEditor, first.Post, "", ledger.PostReviewed{Verdict: ledger.VerdictPicked})))
	i.Text = Text("third")
	outcome(t, e, i, ledger.OutcomeRevised)
	wantStatus(t, e, first.Post, ledger.StatusClassified)
	noClaim(t, e)
}

func testLinks(t *testing.T, e Engine) {
	a, b := Item("a", "1"), Item("b", "1")
	b.CanonicalURL = a.CanonicalURL
	first := outcome(t, e, a, ledger.OutcomeNew)
	second := outcome(t, e, b, ledger.OutcomeNew)
	if p := must[ledger.Post](t)(e.Post(t.Context(), second.Post)); p.LinkedTo != first.Post {
		t.Fatalf("one URL, two texts: linked to %d, want %d", p.LinkedTo, first.Post)
	}
	c := Item("c", "1")
	third := outcome(t, e, c, ledger.OutcomeNew)
	c.Text = a.Text // becomes what another post is
	outcome(t, e, c, ledger.OutcomeRevised)
	if p := must[ledger.Post](t)(e.Post(t.Context(), third.Post)); p.LinkedTo != first.Post || p.Item.Text != a.Text {
		t.Fatalf("a revision with another post's text: %+v", p)
	}
	d := Item("d", "1")
	d.Text = a.Text
	if got := outcome(t, e, d, ledger.OutcomeSeenAgain); got.Post != first.Post {
		t.Fatalf("the text's key moved to post %d", got.Post)
	}
	// To and fro between the two texts is nothing new.
	c.Text = Item("c", "1").Text
	outcome(t, e, c, ledger.OutcomeTouched)
	c.Text = a.Text
	outcome(t, e, c, ledger.OutcomeTouched)
}

func testShortTexts(t *testing.T, e Engine) {
	a, b := Item("a", "1"), Item("a", "2")
	a.Text, b.Text = "", ""
	outcome(t, e, a, ledger.OutcomeNew)
	outcome(t, e, b, ledger.OutcomeNew)
	outcome(t, e, a, ledger.OutcomeKnown)
	a.Text = "Photo"
	outcome(t, e, a, ledger.OutcomeRevised)
	b.Text = "Photo"
	outcome(t, e, b, ledger.OutcomeRevised)
	outcome(t, e, b, ledger.OutcomeKnown)
	a.Text = ""
	got := outcome(t, e, a, ledger.OutcomeTouched)
	if p := must[ledger.Post](t)(e.Post(t.Context(), got.Post)); p.Item.Text != "" {
		t.Fatalf("the empty text is %q", p.Item.Text)
	}
}

func testKnownItems(t *testing.T, e Engine) {
	i := Item("a", "1")
	first := outcome(t, e, i, ledger.OutcomeNew)
	known := must[[]ledger.KnownItem](t)(e.KnownItems(t.Context(), []ledger.ItemKey{"none", i.Key}))
	id := ledger.IdentifyText(i.Text, i.Key)
	want := []ledger.KnownItem{{}, {Post: first.Post, Fingerprint: i.Fingerprint, Text: [16]byte(id[:16])}}
	if !slices.Equal(known, want) || known[0].Has(id) || !known[1].Has(id) {
		t.Fatalf("got %v, want %v", known, want)
	}
	revised := i
	revised.Text = Text("another text")
	outcome(t, e, revised, ledger.OutcomeRevised)
	known = must[[]ledger.KnownItem](t)(e.KnownItems(t.Context(), []ledger.ItemKey{i.Key}))
	if known[0].Has(id) || !known[0].Has(ledger.IdentifyText(revised.Text, i.Key)) {
		t.Fatal("a revised item has its old text")
	}
	i = revised
	i.Fingerprint = ledger.HashOf("another")
	outcome(t, e, i, ledger.OutcomeKnown)
	i.Fingerprint = ledger.Hash{} // a crawler that gives none leaves the old one
	outcome(t, e, i, ledger.OutcomeKnown)
	known = must[[]ledger.KnownItem](t)(e.KnownItems(t.Context(), []ledger.ItemKey{i.Key}))
	if known[0].Fingerprint != ledger.HashOf("another") {
		t.Fatal("the fingerprint was not brought up to date")
	}
}

func testKnownText(t *testing.T, e Engine) {
	ask := func(source ledger.Slug, i ledger.Item) ledger.KnownText {
		t.Helper()
		return must[ledger.KnownText](t)(e.KnownText(t.Context(), source, ledger.IdentifyText(i.Text, i.Key)))
	}
	i := Item("a", "1")
	if got := ask("a", i); got != (ledger.KnownText{}) {
		t.Fatalf("before the item: %+v", got)
	}
	first := outcome(t, e, i, ledger.OutcomeNew)
	again := i
	again.Source, again.Key = "b", ledger.NewItemKey("b", "1")
	outcome(t, e, again, ledger.OutcomeSeenAgain)
	revised := i
	revised.Title, revised.Text = "Another title", Text("another text")
	outcome(t, e, revised, ledger.OutcomeRevised)
	for _, text := range []ledger.Item{i, revised} {
		for source, carried := range map[ledger.Slug]bool{"a": true, "b": true, "c": false} {
			want := ledger.KnownText{Post: first.Post, Title: revised.Title, CanonicalURL: i.CanonicalURL, Carried: carried}
			if got := ask(source, text); got != want {
				t.Errorf("source %s: got %+v, want %+v", source, got, want)
			}
		}
	}
}

func testBadItems(t *testing.T, e Engine) {
	good := Item("a", "1")
	for name, spoil := range map[string]func(*ledger.Item){
		"slug":  func(i *ledger.Item) { i.Source = "Not A Slug" },
		"key":   func(i *ledger.Item) { i.Key = "" },
		"lane":  func(i *ledger.Item) { i.Lane = ledger.LaneCount },
		"text":  func(i *ledger.Item) { i.Text = string(make([]byte, ledger.MaxText+1)) },
		"title": func(i *ledger.Item) { i.Title = string(make([]byte, ledger.MaxText)) },
	} {
		bad := Item("a", "2")
		spoil(&bad)
		_, err := e.Append(t.Context(), []ledger.Item{good, bad})
		if !errors.Is(err, ledger.ErrInvalid) && !errors.Is(err, ledger.ErrTooLarge) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if e.Head() != 0 {
		t.Error("something was written")
	}
	big := good
	big.Text = string(slices.Repeat([]byte("слово "), ledger.MaxText/len("слово ")))
	got := outcome(t, e, big, ledger.OutcomeNew)
	if p := must[ledger.Post](t)(e.Post(t.Context(), got.Post)); p.Item.Text != big.Text {
		t.Error("the largest text did not come back")
	}
	big.Text = "broken \xff\xfe bytes of a text\x00"
	big.Key = ledger.NewItemKey("a", "broken")
	got = outcome(t, e, big, ledger.OutcomeNew)
	if p := must[ledger.Post](t)(e.Post(t.Context(), got.Post)); p.Item.Text != big.Text {
		t.Error("broken bytes did not come back")
	}
}

func testClaim(t *testing.T, e Engine) {
	items := Items("a", 3)
	posts := must[[]ledger.Appended](t)(e.Append(t.Context(), items))
	var claims []ledger.Claim
	for i := range items {
		c := claim(t, e)
		if c.Post != posts[i].Post || c.ID != posts[i].ID || c.Attempt != 1 || !reflect.DeepEqual(c.Item, items[i]) {
			t.Fatalf("claim %d: %+v", i, c)
		}
		claims = append(claims, c)
	}
	noClaim(t, e)
	if got := e.Queue().Processing; got != 3 {
		t.Fatalf("processing %d", got)
	}
	complete(t, e, claims[0])
	wantStale(t, e.Complete(t.Context(), claims[0], Decision("linux")))
	done := make(chan error, 2)
	for _, c := range claims[1:] {
		if err := e.CompleteLater(t.Context(), c, Decision("tech"), func(err error) { done <- err }); err != nil {
			t.Fatal(err)
		}
	}
	for range claims[1:] {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if got := e.Queue(); got != (ledger.QueueGauge{}) {
		t.Fatalf("queue %+v after all is done", got)
	}
	p := must[ledger.Post](t)(e.Post(t.Context(), posts[0].Post))
	if p.State.Status != ledger.StatusClassified || p.Decision.Direction != "linux" || len(p.Decision.Reasons) != 1 || p.State.Decided.IsZero() {
		t.Fatalf("got %+v", p)
	}
	bad := Decision("linux")
	bad.Relevance = 2
	if err := e.Complete(t.Context(), claims[0], bad); !errors.Is(err, ledger.ErrInvalid) {
		t.Fatalf("relevance 2: %v", err)
	}
}

func testClaimWaits(t *testing.T, e Engine) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := e.Claim(ctx, ledger.ClaimRequest{})
		ended <- err
	}()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	got := make(chan ledger.PostNum)
	for range 4 {
		go func() {
			c, err := e.Claim(t.Context(), ledger.ClaimRequest{})
			if err == nil {
				err = e.Complete(t.Context(), c, Decision("linux"))
			}
			if err != nil {
				t.Error(err)
			}
			got <- c.Post
		}()
	}
	seen := make(map[ledger.PostNum]bool)
	for i := range 4 {
		appendOne(t, e, Item("a", fmt.Sprint(i)))
		seen[<-got] = true
	}
	if len(seen) != 4 {
		t.Fatalf("posts %v", seen)
	}
}

func testProvisional(t *testing.T, e Engine) {
	got := appendOne(t, e, Item("a", "1"))
	c := claim(t, e)
	d := Decision("tech")
	d.Provisional = true
	if err := e.Complete(t.Context(), c, d); err != nil {
		t.Fatal(err)
	}
	if s := state(t, e, got.Post); s.Status != ledger.StatusPending || !s.Provisional || s.Direction != "tech" {
		t.Fatalf("got %+v", s)
	}
	noClaim(t, e) // still in hand
	if err := e.Release(t.Context(), c, ledger.PostReturned{Reason: ledger.ReturnStage, Stage: ledger.StageLLM}); err != nil {
		t.Fatal(err)
	}
	noClaim(t, e) // not for the first stage
	c = must[ledger.Claim](t)(e.Claim(t.Context(), ledger.ClaimRequest{Stages: []ledger.Stage{ledger.StageLLM}}))
	complete(t, e, c)
	if s := state(t, e, got.Post); s.Status != ledger.StatusClassified || s.Provisional || s.Direction != "linux" {
		t.Fatalf("got %+v", s)
	}
}
