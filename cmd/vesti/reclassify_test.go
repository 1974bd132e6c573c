package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"vesti.nixg.ru/classify"
	"vesti.nixg.ru/ledger"
)

const (
	oldRules = `version: 1
directions:
  linux:
    - {rule: linux, weight: 5, keywords: [linux]}
  games:
    - {rule: games, weight: 5, keywords: [game]}
`
	perFeed = 500 // posts
)

// newRules move posts on Wine from linux to games and score games lower.
var newRules = strings.NewReplacer(
	"weight: 5, keywords: [linux]}", "weight: 5, keywords: [linux], negative: [wine]}",
	"weight: 5, keywords: [game]}", "weight: 4, keywords: [game, wine]}").Replace(oldRules)

// replayPosts is how many posts TestReclassify replays: 1,000, or what
// VESTI_REPLAY_POSTS says.
func replayPosts() int {
	if n, err := strconv.Atoi(os.Getenv("VESTI_REPLAY_POSTS")); err == nil && n >= perFeed {
		return n / perFeed * perFeed
	}
	return 2 * perFeed
}

// A dry run of changed rules shows its progress and what would change, and
// writes nothing; the run itself changes just that; a second one nothing. What
// an editor has decided stays.
func TestReclassify(t *testing.T) {
	n := replayPosts()
	d := newDesk(t)
	d.write("rules.yaml", oldRules)
	d.write("new.yaml", newRules)
	d.sources(manyFeeds(t, n/perFeed))
	d.do(exitDone, "crawl", "--all")
	d.do(exitDone, "work")
	var found searchResult
	d.json(exitDone, &found, "search", "wine", "--limit", "1")
	picked := found.Hits[0].ID.String()
	d.do(exitDone, "review", picked, "--pick")

	rules := filepath.Join(d.data, "new.yaml")
	var before, after statusResult
	d.json(exitDone, &before, "status")
	told := d.do(exitDone, "reclassify", "--rules", rules, "--dry-run")
	for _, part := range []string{fmt.Sprintf("%d posts judged", n-1), "would change", "nothing was written", "games", "moved", "samples"} {
		if !strings.Contains(told.stdout, part) {
			t.Errorf("the dry run does not say %q:\n%s", part, told.stdout)
		}
	}
	if !strings.Contains(told.stderr, "judging: ") {
		t.Errorf("no progress: %s", told.stderr)
	}
	var dry, applied, again classify.Diff
	d.json(exitDone, &dry, "reclassify", "--rules", rules, "--dry-run")
	d.json(exitDone, &after, "status")
	if moved, rescored := n/4-1, n/4; dry.Moved != moved || dry.Changed != moved+rescored || dry.Reviewed != 1 || dry.Written != 0 || after.Head != before.Head {
		t.Errorf("dry run: %+v; head %d, then %d", dry, before.Head, after.Head)
	}
	d.json(exitDone, &applied, "reclassify", "--rules", rules)
	if applied.Written != dry.Changed || fmt.Sprint(applied.Directions, applied.Moves, applied.Relevance, applied.Interest, applied.Samples) !=
		fmt.Sprint(dry.Directions, dry.Moves, dry.Relevance, dry.Interest, dry.Samples) {
		t.Errorf("applied %+v\nshown %+v", applied, dry)
	}
	d.json(exitDone, &after, "status")
	if after.Queue.DoneToday != n || after.Queue.Pending != 0 || int(after.Head-before.Head) != dry.Changed {
		t.Errorf("after it: %+v, %d events more", after.Queue, after.Head-before.Head)
	}
	d.json(exitDone, &again, "reclassify", "--rules", rules)
	before = after
	d.json(exitDone, &after, "status")
	if again.Changed != 0 || after.Head != before.Head {
		t.Errorf("a second run: %+v", again)
	}
	checkReplayed(t, d, n, picked)
}

// checkReplayed holds every post's state against what its text says.
func checkReplayed(t *testing.T, d *desk, n int, picked string) {
	t.Helper()
	inApp(t, d, func(ctx context.Context, a *App) {
		replays := make(map[ledger.PostNum]int)
		for after := ledger.Seq(0); ; {
			events, err := a.log.Read(ctx, after, 10_000)
			if err != nil {
				t.Fatal(err)
			}
			if len(events) == 0 {
				break
			}
			for _, e := range events {
				if p, ok := e.Payload.(ledger.PostClassified); ok && p.Replay {
					replays[e.Post]++
				}
			}
			after = events[len(events)-1].Seq
		}
		posts := 0
		for after := ledger.Seq(0); after < a.log.Head(); after += 10_000 {
			events, err := a.log.Read(ctx, after, 10_000)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range events {
				f, ok := e.Payload.(ledger.PostFetched)
				if !ok || e.Seq > after+10_000 {
					continue
				}
				posts++
				p, err := a.log.Post(ctx, e.Post)
				if err != nil {
					t.Fatal(err)
				}
				kind := strings.Fields(f.Item.Title)[0]
				want, times := map[string]ledger.Direction{"Linux": "linux", "Wine": "games", "Game": "games", "Other": "tech"}[kind], 0
				if kind == "Wine" || kind == "Game" {
					times = 1
				}
				if p.ID.String() == picked {
					want, times = "linux", 0
				}
				if p.State.Direction != want || replays[e.Post] != times || p.State.Status != ledger.StatusClassified {
					t.Fatalf("%s: %+v, replayed %d times", f.Item.Title, p.State, replays[e.Post])
				}
			}
		}
		if posts != n {
			t.Errorf("%d posts", posts)
		}
	})
}

// manyFeeds serves feeds of posts of four kinds and returns their registry.
func manyFeeds(t *testing.T, feeds int) string {
	t.Helper()
	texts := []string{
		"Linux %d|The Linux kernel of number %[1]d came out with support for many devices.",
		"Wine %d|On Linux the layer Wine of number %[1]d runs programs that were made for others.",
		"Game %d|The game of number %[1]d came out today, its studio says so in a note.",
		"Other %d|The report of number %[1]d says nothing that any of the rules knows.",
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/rss+xml")
		feed, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		fmt.Fprint(w, `<rss version="2.0"><channel><title>many</title>`)
		for i := range perFeed {
			title, text, _ := strings.Cut(fmt.Sprintf(texts[i%len(texts)], feed*perFeed+i), "|")
			fmt.Fprintf(w, "<item><title>%s</title><guid>%d-%d</guid><description>%s</description></item>", title, feed, i, text)
		}
		fmt.Fprint(w, `</channel></rss>`)
	}))
	t.Cleanup(srv.Close)
	var b strings.Builder
	b.WriteString("sources:\n")
	for i := range feeds {
		fmt.Fprintf(&b, "  - {slug: feed-%d, name: Feed %[1]d, feed_url: \"%[2]s/%[1]d\", crawler: rss, direction: tech, lang: en, priority: P1, allow_private: true, full_text: false, max_items: %[3]d}\n",
			i, srv.URL, perFeed)
	}
	return b.String()
}

// TestRulesComeLater: with directions of one's own there is no rules file to
// begin with, and the one written while vesti runs is put in force.
func TestRulesComeLater(t *testing.T) {
	d := newDesk(t)
	d.sources("sources: []\n")
	d.write("vesti.yaml", "directions: [gardening]\n")
	inApp(t, d, func(context.Context, *App) {}) // writes no starter rules
	inApp(t, d, func(_ context.Context, a *App) {
		d.write("rules.yaml", "version: 1\ndirections:\n  gardening:\n    - {rule: flowers, keywords: [роза]}\n")
		if changed, err := a.readRules(); !changed || err != nil {
			t.Errorf("the new file: changed %t, %v", changed, err)
		}
		if found, _ := a.rules.Classify(&ledger.Item{Text: "Зацвела роза"}); found.Direction != "gardening" {
			t.Errorf("judged by the new rules: %+v", found)
		}
	})
}
