package feed_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Five articles with one teaser are five posts, also when the fifth comes later
// and alone is new.
func TestTeaserDoesNotMergeArticles(t *testing.T) {
	titles := []string{"Earthquake in the north", "Budget is agreed", "A new graphics card", "The cup final"}
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		var b strings.Builder
		b.WriteString(`<rss version="2.0"><channel><title>teasers</title>`)
		for i, title := range titles {
			fmt.Fprintf(&b, `<item><title>%s</title><link>https://news.example.org/%d</link><guid>%[2]d</guid><description>Read the full story on our web site, where you find more news every day.</description></item>`, title, i)
		}
		b.WriteString(`</channel></rss>`)
		fmt.Fprint(rw, b.String())
	})
	now := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	first, err := w.crawl(source("https://news.example.org/rss"), now)
	if err != nil || first.report.New != 4 {
		t.Fatalf("first run: %+v, %v", first.report, err)
	}
	titles = append(titles, "The genome of the onion")
	second, err := w.crawl(source("https://news.example.org/rss"), now.Add(time.Hour))
	if err != nil || second.report.New != 1 || second.report.SeenAgain != 0 || second.report.Revised != 0 {
		t.Fatalf("second run: %+v, %v", second.report, err)
	}
}
