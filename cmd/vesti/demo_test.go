package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"vesti.nixg.ru/httpui/grafana"
)

// What "make run" shows a newcomer: posts arrive, are classified and are found;
// a source that cannot be reached says why.
func TestDemo(t *testing.T) {
	d := newDesk(t)
	d.sources("sources:\n  - {slug: nowhere, name: Nowhere, feed_url: \"http://feed.invalid/rss\", crawler: rss, direction: linux, lang: en, priority: P0}\n")
	s := d.serve("--demo")
	s.login()
	eventually(t, "demo posts are classified and found", func() error {
		var st statusResult
		d.json(exitDone, &st, "status")
		if st.Queue.DoneToday < demoFirst || st.Queue.Pending > 0 {
			return fmt.Errorf("queue: %+v", st.Queue)
		}
		var found searchResult
		d.json(exitDone, &found, "search", "планировщики")
		if found.Total != 1 || found.Hits[0].Direction != "linux" {
			return fmt.Errorf("search: %+v", found)
		}
		return nil
	})
	if page := s.page("/?q=планировщик"); !strings.Contains(page, "Ядро Linux 7.2") {
		t.Error("the search page does not show the post")
	}
	eventually(t, "the unreachable source is shown with its reason", func() error {
		if page := s.page("/crawlers"); !strings.Contains(page, "feed.invalid") || !strings.Contains(page, "host name does not exist") {
			return fmt.Errorf("no reason on /crawlers")
		}
		return nil
	})
	// The page's text, longer than the feed's summary, is what was stored.
	var found searchResult
	d.json(exitDone, &found, "search", `"между контейнерами по весу"`)
	if found.Total != 1 {
		t.Errorf("the article's own text is not found: %+v", found)
	}
	log := d.do(exitDone, "log", found.Hits[0].ID.String()).stdout
	for _, want := range []string{"PostFetched", "PostClassified", "linux"} {
		if !strings.Contains(log, want) {
			t.Errorf("vesti log does not tell of %s:\n%s", want, log)
		}
	}
	eventually(t, "more demo posts arrive", func() error {
		if n := s.metric(`vesti_queue_posts{state="done_today"}`); n <= demoFirst {
			return fmt.Errorf("%v done", n)
		}
		return nil
	})
	if err := grafana.Check(strings.NewReader(s.page("/metrics"))); err != nil {
		t.Errorf("the dashboard or an alert asks for what /metrics does not have:\n%v", err)
	}
	link := found.Hits[0].URL
	if code := s.stop(); code != exitDone {
		t.Errorf("SIGTERM: exit code %d\n%s", code, s.logged())
	}
	d.serve("--demo")
	resp, err := http.Get(link)
	if err != nil {
		t.Fatalf("after a restart the post's link leads nowhere: %v", err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("after a restart the post's link answers %s, %v", resp.Status, err)
	}
}
