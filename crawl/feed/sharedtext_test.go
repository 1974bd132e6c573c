package feed_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/ledger"
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

// headlines are of articles that come one by one, each in a run of its own.
var headlines = []string{"Earthquake in the north", "Budget is agreed", "A new graphics card", "The cup final"}

// oneByOne crawls a feed that only ever lists its newest article, and returns
// the items.
func oneByOne(t *testing.T, src crawl.Source, description string, pages map[string]func(http.ResponseWriter)) []ledger.Item {
	t.Helper()
	s := &site{pages: pages}
	w := newWorld(t, s.serve)
	var items []ledger.Item
	for i, title := range headlines {
		s.mu.Lock()
		s.feed = rss(fmt.Sprintf(`<item><title>%s</title><link>https://news.example.org/a/%d</link><guid>%[2]d</guid><description>%s</description></item>`,
			title, i, fmt.Sprintf(description, title)))
		s.mu.Unlock()
		run, err := w.crawl(src, now.Add(time.Duration(i)*time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		if run.report.New != 1 || run.report.SeenAgain != 0 {
			t.Errorf("%s: %+v; want one new post", title, run.report)
		}
		items = append(items, run.items...)
	}
	return items
}

// A site that answers for every article with the same notice has its articles
// told apart across runs: from the second on the notice is no article's text.
func TestNoticeOnEveryPageDoesNotMergeArticles(t *testing.T) {
	notice := article(`<p>We value your privacy. We and our partners store information on your device, such as cookies, and process personal data.</p>
		<p>You can choose below, and change your choice at any time in the settings of your account on this web site.</p>`)
	pages := map[string]func(http.ResponseWriter){}
	for i := range headlines {
		pages[fmt.Sprintf("/a/%d", i)] = notice
	}
	for name, description := range map[string]string{"with a summary": "In short: %s.", "without": "%.0s"} {
		t.Run(name, func(t *testing.T) {
			items := oneByOne(t, feedSource(), description, pages)
			for _, it := range items[1:] {
				if it.TextFrom == ledger.TextPage || strings.Contains(it.Text, "privacy") {
					t.Errorf("%s: text from %s: %q", it.Title, it.TextFrom, it.Text)
				}
			}
		})
	}
}

// A notice that was taken for an article's text is taken back when two other
// articles' pages have it, in one run or in several.
func TestNoticeIsTakenBack(t *testing.T) {
	notice := article(`<p>We value your privacy. We and our partners store information on your device, such as cookies, and process personal data.</p>
		<p>You can choose below, and change your choice at any time in the settings of your account on this web site.</p>`)
	for name, runs := range map[string][]int{"in one run": {3}, "in three": {1, 2, 3}, "in two": {2, 4}, "the last two at once": {1, 3}} {
		t.Run(name, func(t *testing.T) {
			s := &site{pages: map[string]func(http.ResponseWriter){"/a/9": article(paragraphs("tunnels"))}}
			for i := range headlines {
				s.pages[fmt.Sprintf("/a/%d", i)] = notice
			}
			w := newWorld(t, s.serve)
			entry := func(n int, title string) string {
				return fmt.Sprintf(`<item><title>%s</title><link>https://news.example.org/a/%d</link><guid>%[2]d</guid><description>In short: %[1]s.</description></item>`, title, n)
			}
			texts, last := map[string]string{}, crawl.Report{}
			for hour, n := range append(runs, runs[len(runs)-1]) {
				list := []string{entry(9, "A tunnel")} // which has an article of its own
				for i, title := range headlines[:n] {
					list = append(list, entry(i, title))
				}
				s.feed = rss(list...)
				run, err := w.crawl(feedSource(), now.Add(time.Duration(hour)*time.Hour))
				if err != nil {
					t.Fatal(err)
				}
				for _, it := range run.items {
					texts[it.Title] = it.Text
				}
				last = run.report
			}
			for title, text := range texts {
				if title == "A tunnel" && !strings.Contains(text, "about tunnels") || title != "A tunnel" && text != "In short: "+title+"." {
					t.Errorf("%s: %q", title, text)
				}
			}
			if last.New+last.Revised > 0 || s.asked["/a/0"] != 1 || s.asked["/a/1"] != 1 {
				t.Errorf("a run later: %+v; pages asked for: %v", last, s.asked)
			}
		})
	}
}

// One other article with the same page may be the same one once more.
func TestOneCopyTakesNoTextBack(t *testing.T) {
	s := &site{pages: map[string]func(http.ResponseWriter){"/a/1": article(paragraphs("tunnels")), "/a/2": article(paragraphs("tunnels"))}}
	s.feed = rss(item(1, "<description>One.</description>"), item(2, "<description>Two.</description>"))
	run, err := newWorld(t, s.serve).crawl(feedSource(), now)
	if err != nil || run.report.New != 2 || run.report.Revised != 0 || run.items[0].TextFrom != ledger.TextPage {
		t.Errorf("%+v, %v", run.report, err)
	}
}

// The same teaser in every run tells nothing either.
func TestTeaserAcrossRunsDoesNotMergeArticles(t *testing.T) {
	items := oneByOne(t, source("https://news.example.org/rss.xml"), "Read the full story on our web site, with pictures and comments.%.0s", nil)
	for _, it := range items[1:] {
		if !strings.HasPrefix(it.Text, it.Title+"\n") {
			t.Errorf("%s: %q", it.Title, it.Text)
		}
	}
}

// An article that comes again under another key, with its title or its address
// as before, is the same post.
func TestTheSameArticleUnderAnotherKeyIsOnePost(t *testing.T) {
	for name, c := range map[string]struct{ title, link string }{
		"other guid":              {"Item 1", "https://news.example.org/a/1"},
		"other guid and address":  {"Item 1", "https://news.example.org/moved/1"},
		"other guid and headline": {"Updated: a bridge", "https://news.example.org/a/1?utm_source=rss"},
	} {
		t.Run(name, func(t *testing.T) {
			content := "<content:encoded><![CDATA[" + paragraphs("bridges") + "]]></content:encoded>"
			s := &site{feed: rss(item(1, content))}
			w := newWorld(t, s.serve)
			if run, err := w.crawl(feedSource(), now); err != nil || run.report.New != 1 {
				t.Fatalf("first run: %+v, %v", run.report, err)
			}
			s.feed = rss(fmt.Sprintf(`<item><title>%s</title><link>%s</link><guid>new</guid>%s</item>`, c.title, c.link, content))
			if run, err := w.crawl(feedSource(), now.Add(time.Hour)); err != nil || run.report.New != 0 {
				t.Errorf("second run: %+v, %v; want nothing new", run.report, err)
			}
		})
	}
}
