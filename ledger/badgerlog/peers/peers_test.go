package main

import (
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestFeed(t *testing.T) {
	const n = 4000
	f := newFeed(n, 7)
	if !reflect.DeepEqual(f.posts, newFeed(n, 7).posts) {
		t.Error("the same seed made other posts")
	}
	texts := make(map[string]bool)
	items := make(map[[2]string]bool)
	size, cyrillic := 0, 0
	for i := range f.posts {
		p := &f.posts[i]
		if f.fresh[i] != len(texts) {
			t.Fatalf("%d texts before post %d, fresh says %d", len(texts), i, f.fresh[i])
		}
		if !texts[p.Text] {
			size += len(p.Text)
			cyrillic += len(p.Text) - utf8.RuneCountInString(p.Text)
		}
		texts[p.Text] = true
		items[[2]string{p.Source, p.Key}] = true
		if !utf8.ValidString(p.Text) || !utf8.ValidString(p.Title) {
			t.Fatalf("post %d is not UTF-8", i)
		}
	}
	if got := 1 - float64(len(texts))/n; math.Abs(got-duplicateShare) > 0.03 {
		t.Errorf("%.2f of the posts repeat a text, want %.2f", got, duplicateShare)
	}
	if got := 1 - float64(len(items))/n; math.Abs(got-duplicateShare/2) > 0.03 {
		t.Errorf("%.2f of the posts are items met again, want %.2f", got, duplicateShare/2)
	}
	if mean := size / len(texts); mean < textBytes*9/10 || mean > textBytes*11/10 {
		t.Errorf("a text has %d bytes, want about %d", mean, textBytes)
	}
	if share := float64(cyrillic) / float64(size); share < 0.2 || share > 0.5 {
		t.Errorf("%.2f of the bytes are second bytes of letters: texts are to be mostly Cyrillic", share)
	}
}

func TestFeedTake(t *testing.T) {
	f := newFeed(10, 1)
	got := 0
	for {
		part := f.take(4)
		if len(part) == 0 {
			break
		}
		got += len(part)
	}
	if got != 10 || f.taken() != 10 {
		t.Errorf("took %d posts, taken says %d, want 10", got, f.taken())
	}
	f.rewind()
	if f.taken() != 0 {
		t.Errorf("taken is %d after a rewind", f.taken())
	}
}

// TestContestants runs a tiny contest on each contestant: the contest itself
// checks that duplicates are told and that no post is handled twice. Those
// whose programs are not installed are skipped.
func TestContestants(t *testing.T) {
	const posts = 5000
	for _, name := range append([]string{vesti}, peerNames()...) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			open(t, dir)
			env := &environment{postsFile: filepath.Join(dir, "posts.json")}
			if err := env.find(name); err != nil {
				t.Skip(err)
			}
			f := newFeed(posts, 3)
			if err := writePosts(env.postsFile, f); err != nil {
				t.Fatal(err)
			}
			all, err := env.contestants(nil)
			if name != vesti {
				all, err = env.contestants([]string{name})
			}
			if err != nil {
				t.Fatal(err)
			}
			one := all[len(all)-1]
			c := &contest{
				contestants: []contestant{one}, feed: f, dir: dir, rounds: 1, section: 150 * time.Millisecond,
				log: slog.New(slog.DiscardHandler),
			}
			if err := c.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			works := 2 + len(one.modes)
			if one.single {
				works--
			}
			if len(c.rates) != 2*works {
				t.Errorf("%d series measured, want %d: %v", len(c.rates), 2*works, c.rates)
			}
			left, err := filepath.Glob(filepath.Join(dir, name+"-*"))
			if err != nil || len(left) > 0 {
				t.Errorf("folders left behind: %v, %v", left, err)
			}
		})
	}
}

// open lets a server under another account pass through the folders above dir.
func open(t *testing.T, dir string) {
	t.Helper()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o711); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReport(t *testing.T) {
	c := &contest{
		contestants: []contestant{
			{name: vesti, modes: []mode{{name: "not awaited"}, {name: "awaited", awaited: true}}},
			{name: "river", modes: []mode{{name: "8 workers"}, {name: "100 workers", workers: 100}}},
			{name: "sqlite-go", modes: []mode{{name: "transactions", both: true}}},
		},
		rates: map[measure][]float64{
			{vesti, classD, "claim", "not awaited"}:        {900, 1000, 5000},
			{vesti, classD, "claim", "awaited"}:            {100, 120, 110},
			{"river", classD, "claim", "8 workers"}:        {50, 50, 50},
			{"river", classD, "claim", "100 workers"}:      {200, 250, 100},
			{"sqlite-go", classD, "claim", "transactions"}: {20, 10, 30},
		},
	}
	rows := c.rows()
	file := filepath.Join(t.TempDir(), "ratios.json")
	if err := writeJSON(file, rows); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{
		{"work": "claim", "class": "D", "peer": "river", "vesti_per_s": 1000.0, "peer_per_s": 200.0, "ratio": 5.0},
		{"work": "claim", "class": "D", "peer": "sqlite-go", "vesti_per_s": 1000.0, "peer_per_s": 20.0, "ratio": 50.0},
		{"work": "claim_awaited", "class": "D", "peer": "sqlite-go", "vesti_per_s": 110.0, "peer_per_s": 20.0, "ratio": 5.5},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("JSON:\ngot  %v\nwant %v", got, want)
	}
	var table strings.Builder
	if err := printTable(&table, rows); err != nil {
		t.Fatal(err)
	}
	if s := table.String(); strings.Count(s, "MISSED") != 1 || strings.Count(s, "met") != 2 {
		t.Errorf("want one target missed and two met:\n%s", s)
	}
}

func TestParse(t *testing.T) {
	for _, args := range [][]string{{"-rounds", "0"}, {"-posts", "-1"}, {"-section", "0s"}, {"-nonsense"}, {"more"}} {
		if _, err := parse(args); !errors.Is(err, errUsage) {
			t.Errorf("parse(%q): %v, want errUsage", args, err)
		}
	}
	env := &environment{}
	if _, err := env.contestants([]string{"oracle"}); !errors.Is(err, errUsage) {
		t.Errorf("an unknown peer: %v, want errUsage", err)
	}
}
