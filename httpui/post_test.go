package httpui_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"vesti.nixg.ru/ledger"
)

func TestPostPage(t *testing.T) {
	d := newDesk(t, demoSources())
	it := ledger.Item{
		Source: "lwn", Key: ledger.NewItemKey("lwn", "g1"), URL: "https://lwn.example.org/1?utm_source=rss", CanonicalURL: "https://lwn.example.org/1",
		Title: "Kernel 6.20 released", Text: "The kernel was released on Sunday.\n\nIt has a new scheduler.", TextFrom: ledger.TextPage, Lang: "en",
		Author: "J. Penman", Published: d.clock.Now().Add(-time.Hour),
	}
	d.add(it)
	again := it
	again.Source, again.Key, again.URL, again.CanonicalURL = "opennet", ledger.NewItemKey("opennet", "x"), "https://opennet.example.org/9", "https://opennet.example.org/9"
	d.clock.advance(time.Minute)
	d.add(again)
	d.clock.advance(time.Minute)
	d.judge(judged("linux", .97, .88, "A summary of it."))
	d.clock.advance(time.Minute)
	it.Title, it.Text = "Kernel 6.20 is out", "The kernel was released on Monday.\n\nIt has a new scheduler."
	post := d.add(it)

	page := d.get("/posts/" + post.ID.String())
	wantIn(t, page,
		"<title>Kernel 6.20 is out · vesti</title>", "<p>The kernel was released on Monday.</p>", "<p>It has a new scheduler.</p>", "J. Penman",
		"Text from the article&#39;s page", "2 Mar 2026, 08:00",
		// carriers
		"2 sources", `href="/crawlers/opennet"`, `href="https://opennet.example.org/9" rel="noopener noreferrer nofollow"`,
		// what was opened keeps its parameters
		`href="https://lwn.example.org/1?utm_source=rss"`,
		// revisions
		"Versions", "<del>Sunday</del><ins>Monday</ins>",
		// decision card
		"linux/core", "<bdi>kernel release</bdi>", "&#43;2.50", "twice in the title", "language model", "97%", "87%", "88%", "qwen3:4b",
		"2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae", "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "&#34;direction&#34;:&#34;linux&#34;", "1.8 s", "A summary of it.",
		// history
		"Found at Kernel Weekly", "Same text seen at Открытая сеть", "Classified as Linux by language model: interest 88%, relevance 97%", "The source changed the text",
	)
	for _, id := range []string{post.ID.String()[:10], fmt.Sprint(post.Num), strings.ToUpper(post.ID.String())} {
		if res, _ := d.getAs(d.client, "/posts/"+id); res.StatusCode != http.StatusOK {
			t.Errorf("GET /posts/%s: %s", id, res.Status)
		}
	}
	for _, id := range []string{"0", "999999", strings.Repeat("0", 64), "deadbeef00", "x", "-1", strings.Repeat("f", 5000)} {
		if res, page := d.getAs(d.client, "/posts/"+id); res.StatusCode != http.StatusNotFound && res.StatusCode != http.StatusBadRequest {
			t.Errorf("GET /posts/%.20s: %s", id, res.Status)
		} else {
			wantIn(t, page, "<html", `href="/"`)
		}
	}
}

func TestReview(t *testing.T) {
	d := newDesk(t, demoSources())
	post := d.add(ledger.Item{Title: "A candidate", Text: "A candidate with enough letters."})
	d.judge(judged("tech", .5, .5, ""))
	path := "/posts/" + post.ID.String()
	press := func(form url.Values) (page string, state ledger.PostState) {
		t.Helper()
		form.Set("next", path)
		page = d.post(path+"/review", form)
		p, err := d.log.Post(t.Context(), post.Num)
		if err != nil {
			t.Fatal(err)
		}
		return page, p.State
	}
	page, state := press(url.Values{"verdict": {"picked"}, "direction": {""}, "note": {"front page?"}})
	wantIn(t, page, "Picked.", "front page?", `value="picked" aria-pressed="true"`)
	if state.Verdict != ledger.VerdictPicked || state.Corrected != "" {
		t.Errorf("after a pick: %+v", state)
	}
	page, state = press(url.Values{"save": {"1"}, "direction": {"linux"}, "note": {"front page?"}})
	wantIn(t, page, "Corrected to", "Direction corrected to Linux.", `<option value="linux" selected>`)
	if state.Verdict != ledger.VerdictPicked || state.Corrected != "linux" || state.Direction != "tech" {
		t.Errorf("after a correction: %+v", state)
	}
	// A button in a list says only the verdict; the rest stays.
	_, state = press(url.Values{"verdict": {"rejected"}})
	if state.Verdict != ledger.VerdictRejected || state.Corrected != "linux" {
		t.Errorf("after a rejection from the list: %+v", state)
	}
	page, state = press(url.Values{"undo": {"1"}, "direction": {"linux"}, "note": {"front page?"}})
	wantIn(t, page, "Decision taken back.")
	if state.Reviewed || state.Corrected != "" || state.EffectiveDirection() != "tech" {
		t.Errorf("after undo: %+v", state)
	}
	if res, _ := d.postAs(d.client, path+"/review", url.Values{"direction": {"gardening"}}); res.StatusCode != http.StatusBadRequest {
		t.Errorf("unknown direction: %s", res.Status)
	}
	page = d.post(path+"/requeue", url.Values{"next": {path}})
	wantIn(t, page, "The post is back in the queue", "Back in the queue: an editor asked")
	if claim := d.claim(); claim.Post != post.Num || claim.Lane != ledger.LaneEditor {
		t.Errorf("claimed %+v", claim)
	}
}

func TestFailuresAreShownOnThePost(t *testing.T) {
	d := newDesk(t, demoSources())
	post := d.add(ledger.Item{Title: "Hard to judge", Text: "A post with enough letters."})
	claim := d.claim()
	parked, err := d.log.Fail(t.Context(), claim, ledger.Failure{Cause: ledger.CauseBadReply, Message: "no JSON in <b>it</b>", Final: true})
	if err != nil || !parked {
		t.Fatal(parked, err)
	}
	d.settle()
	wantIn(t, d.get("/posts/"+post.ID.String()), "Set aside after failures: unusable reply.",
		"Set aside after attempt 1: unusable reply. no JSON in &lt;b&gt;it&lt;/b&gt;", "Not classified yet.")
	wantIn(t, d.get("/?status=parked"), "Hard to judge", "set aside")
	other := d.add(ledger.Item{Title: "Hard to judge too", Text: "Another post with enough letters."})
	if _, err := d.log.Fail(t.Context(), d.claim(), ledger.Failure{Cause: ledger.CauseBadReply, Message: "ask the language model: an empty summary"}); err != nil {
		t.Fatal(err)
	}
	d.settle()
	d.post("/preferences", map[string][]string{"lang": {"ru"}})
	wantIn(t, d.get("/posts/"+other.ID.String()), "Попытка 1 не удалась: негодный ответ. вопрос языковой модели: пустое изложение")
	d.post("/preferences", map[string][]string{"lang": {"en"}})
	wantIn(t, d.get("/crawlers"), `<dd id="queue-parked">1</dd>`, "unusable reply: 1")
}

// TestEveryEventHasWords: a history that holds every event of posts is shown.
func TestEveryEventHasWords(t *testing.T) {
	d := newDesk(t, demoSources())
	post := d.add(ledger.Item{Title: "Long life", Text: "A post with a long life and enough letters."})
	other := d.add(ledger.Item{Title: "Other", Text: "Another post with enough letters."})
	views, reactions := int64(21), int64(2)
	for _, p := range []ledger.Payload{
		ledger.PostPrioritised{Lane: ledger.LaneEditor},
		ledger.PostMeasured{Measures: ledger.Measures{Views: &views, Reactions: &reactions}},
		ledger.StoryGrouped{Story: other.Num, Similarity: .9},
		ledger.StoryUngrouped{Story: other.Num},
		ledger.PostRemoved{Cause: "404"},
	} {
		if err := d.record(t.Context(), ledger.NewEvent(ledger.ActorOperator, post.Num, "", p)); err != nil {
			t.Fatalf("%T: %v", p, err)
		}
	}
	_, page := d.getAs(d.client, "/posts/"+post.ID.String(), "Accept-Language", "ru")
	wantIn(t, page, "Передвинут вперёд", "21 просмотр, 2 реакции", "Отнесён к сюжету", "Убран из сюжета", "Удалён в источнике", "оператор")
}
