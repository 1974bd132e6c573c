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

func TestEmptyDeskHelps(t *testing.T) {
	d := newDesk(t, demoSources())
	wantIn(t, d.get("/"), "No posts yet", `href="/crawlers"`)
	wantIn(t, d.get("/?q=kernel"), "No posts yet")
	d.add(ledger.Item{Title: "First", Text: "A first post with enough letters.", Lang: "en"})
	wantIn(t, d.get("/?tab=picked"), "Nothing here", "1 post is still being judged.")
	wantIn(t, d.get("/?q=zebra&direction=linux"), "Nothing found", "Remove all filters", "see what the search box understands")
}

func TestListSearchAndFilters(t *testing.T) {
	d := newDesk(t, demoSources())
	d.fill()
	page := d.get("/")
	wantIn(t, page, "9 posts", "Kernel Weekly", "Чипы и платы", "in the queue", "88%", `<abbr class="lang" dir="auto" title="Russian">ru</abbr>`)

	page = d.get("/?q=" + url.QueryEscape("ядра"))
	wantIn(t, page, "<mark>ядра</mark>", "Выпуск")
	wantNotIn(t, page, "Tensor Letters</bdi>\n</span>", "Weekly links</bdi>")

	for path, want := range map[string]string{
		"/?direction=linux":                      "2 posts",
		"/?direction=-":                          "2 posts",
		"/?lang=-":                               "Nothing found",
		"/?source=tensor":                        "2 posts",
		"/?lang=ru":                              "2 posts",
		"/?status=pending":                       "2 posts",
		"/?since=2026-03-02&until=2026-03-02":    "9 posts",
		"/?since=2026-03-03":                     "Nothing found",
		"/?until=2026-03-01":                     "Nothing found",
		"/?since=yesterday&status=x&sort=x":      "9 posts",
		"/?direction=linux&lang=ru":              "1 post",
		"/?q=direction:linux+-lang:en&tab=all":   "1 post",
		"/?q=" + url.QueryEscape(`"live update`): "1 post",
	} {
		wantIn(t, d.get(path), want)
	}
	wantIn(t, d.get("/?q=after:someday"), "Not a date, left out: after:someday")

	page = d.get("/?sort=interest")
	if first, last := strings.Index(page, "Small models"), strings.Index(page, "Open thread"); first < 0 || last < first {
		t.Error("by interest the most interesting is not first")
	}
}

func TestDaysAreThoseOfTheZone(t *testing.T) {
	d := newDesk(t, demoSources())
	// 22:30 UTC on 1 March is 2 March in Moscow.
	d.add(ledger.Item{Title: "Late", Text: "Published late in the evening.", Published: time.Date(2026, 3, 1, 22, 30, 0, 0, time.UTC)})
	d.add(ledger.Item{Title: "Early", Text: "Published earlier in the evening.", Published: time.Date(2026, 3, 1, 20, 30, 0, 0, time.UTC)})
	page := d.get("/?since=2026-03-02")
	wantIn(t, page, "1 post", "Late")
	wantIn(t, d.get("/"), `title="2 Mar 2026, 01:30"`, `href="/?since=2026-03-02"`, `href="/?since=2026-02-24"`)
}

func TestFacetsLeadToAndFromAFilter(t *testing.T) {
	d := newDesk(t, demoSources())
	d.fill()
	page := d.get("/?q=kernel&lang=en")
	wantIn(t, page, `href="/?direction=linux&amp;lang=en&amp;q=kernel"`, "Remove all filters", `href="/?q=kernel"`)
	page = d.get("/?direction=linux&lang=en&source=nobody")
	wantIn(t, page, `<a href="/?direction=linux&amp;lang=en" aria-current="true"><span><bdi>nobody</bdi>`)
	wantIn(t, d.get("/"), "<bdi>In the queue</bdi>", "<bdi>No direction</bdi>", "<bdi>English</bdi>")
}

func TestPagesOfAList(t *testing.T) {
	d := newDesk(t, demoSources())
	var items []ledger.Item
	for i := range 65 {
		title := fmt.Sprintf("Post number %02d of many", i)
		items = append(items, ledger.Item{
			Source: "lwn", Key: ledger.NewItemKey("lwn", title), Title: title, Text: title + " with letters",
			Published: d.clock.Now().Add(-time.Duration(i) * time.Minute),
		})
	}
	if _, err := d.log.Append(t.Context(), items); err != nil {
		t.Fatal(err)
	}
	d.settle()
	first, second, third := d.get("/"), d.get("/?page=2"), d.get("/?page=3")
	wantIn(t, first, "65 posts · showing 1–30", "Post number 00 of", "Post number 29 of", `rel="next" href="/?page=2"`)
	wantNotIn(t, first, "Post number 30 of", `rel="prev"`)
	wantIn(t, second, "showing 31–60", "Post number 30 of", `rel="prev" href="/"`, `rel="next" href="/?page=3"`)
	wantIn(t, third, "showing 61–65", "Post number 64 of", `rel="prev" href="/?page=2"`)
	wantNotIn(t, third, `rel="next"`)
	for _, page := range []string{"-1", "0", "x", "1e9"} {
		wantIn(t, d.get("/?page="+page), "showing 1–30")
	}
	wantIn(t, d.get("/?page=99999999"), "Nothing here")
}

func TestPickingFromTheList(t *testing.T) {
	d := newDesk(t, demoSources())
	post := d.add(ledger.Item{Title: "A candidate", Text: "A candidate with enough letters."})
	review := fmt.Sprintf("/posts/%s/review", post.ID)
	page := d.post(review, url.Values{"verdict": {"picked"}, "next": {"/?sort=date"}})
	wantIn(t, page, "Picked.", "Nothing here")
	wantNotIn(t, d.get("/"), "Picked.") // said once
	wantIn(t, d.get("/?tab=picked"), "A candidate", `data-verdict="picked"`)
	wantIn(t, d.get("/?q=candidate"), "A <mark>candidate</mark>", `data-verdict="picked"`)

	res, body := d.postAs(d.client, review, url.Values{"verdict": {""}}, "Accept", "application/json")
	if res.StatusCode != http.StatusNoContent || body != "" {
		t.Errorf("by script: %s %q", res.Status, body)
	}
	wantIn(t, d.get("/"), "A candidate", `data-verdict=""`)
	res, body = d.postAs(d.client, review, url.Values{"verdict": {"adored"}}, "Accept", "application/json")
	if res.StatusCode != http.StatusBadRequest || !strings.Contains(body, "A verdict is picked, rejected or empty") {
		t.Errorf("unknown verdict: %s %q", res.Status, body)
	}
	if res, _ := d.postAs(newClient(t), review, url.Values{"verdict": {"picked"}}, "Accept", "application/json"); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("by a stranger's script: %s", res.Status)
	}
}

// TestUnknownNamesInAQuery: a direction or a source that there is not is told.
func TestUnknownNamesInAQuery(t *testing.T) {
	d := newDesk(t, demoSources())
	d.fill()
	wantIn(t, d.get("/?tab=all&q=direction:nosuch+source:lwn"), "No such value, left out: direction:nosuch")
	_, page := d.getAs(d.client, "/?tab=all&q=source:nosuch", "Accept-Language", "ru")
	wantIn(t, page, "Нет такого значения, отброшено: source:nosuch")
	wantNotIn(t, d.get("/?tab=all&q=source:lwn"), "left out")
}

// TestNoQueryBreaksThePage: whatever is typed, and whatever is in the address.
func TestNoQueryBreaksThePage(t *testing.T) {
	d := newDesk(t, demoSources())
	d.fill()
	for _, q := range []string{
		`"`, `-`, `*`, `a*`, `title:`, `(((`, `))`, `OR`, `NOT NOT`, `"a" OR -"b`, "\x00\xff", strings.Repeat("word ", 1000), "<script>alert(1)</script>",
		"{{.}}", "direction:\"", "status:xyz", "ядро -ядро", "🦀", "a:b:c:d", strings.Repeat("(", 500), "before:0000-00-00", `\`, "%00", "+", "/re/",
	} {
		res, page := d.getAs(d.client, "/?"+url.Values{"q": {q}}.Encode())
		if res.StatusCode != http.StatusOK {
			t.Errorf("q=%.40q: %s", q, res.Status)
		}
		wantNotIn(t, page, "<script>alert")
	}
	for _, field := range []string{"tab", "direction", "source", "lang", "status", "since", "until", "sort", "page"} {
		v := url.Values{field: {`"><script>alert(1)</script>` + "\x00"}}
		res, page := d.getAs(d.client, "/?"+v.Encode())
		if res.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", field, res.Status)
		}
		wantNotIn(t, page, "<script>alert")
	}
}

// TestPostWithoutTitle: a list always has something to click on: the first
// words of the text, and for a picture what it is and where it comes from.
func TestPostWithoutTitle(t *testing.T) {
	d := newDesk(t, demoSources())
	text := d.add(ledger.Item{Key: ledger.NewItemKey("lwn", "1"), Text: "Words that stand for a title.\nAnd more of them on another line."})
	photo := d.add(ledger.Item{Key: ledger.NewItemKey("lwn", "2"), Media: []string{"photo", "video"}})
	bare := d.add(ledger.Item{Key: ledger.NewItemKey("lwn", "3"), URL: "https://lwn.example.org/3", Media: []string{"https://lwn.example.org/3.mp3"}})
	english := d.get("/?tab=all")
	_, russian := d.getAs(d.client, "/?tab=all", "Accept-Language", "ru")
	for _, tt := range []struct {
		post                 ledger.Post
		inEnglish, inRussian string
	}{
		{text, "Words that stand for a title.", "Words that stand for a title."},
		{photo, "Photo · Kernel Weekly", "Фото · Kernel Weekly"},
		{bare, "Untitled · Kernel Weekly", "Без заголовка · Kernel Weekly"},
	} {
		link := `href="/posts/` + tt.post.ID.String() + `"><bdi>`
		wantIn(t, english, link+tt.inEnglish+"</bdi>")
		wantIn(t, russian, link+tt.inRussian+"</bdi>")
		wantIn(t, d.get("/posts/"+tt.post.ID.String()), "<h1><bdi>"+tt.inEnglish+"</bdi></h1>")
	}
}
