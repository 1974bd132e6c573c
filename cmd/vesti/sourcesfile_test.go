package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/ledger"
)

// TestCheckReadsTheFile: a source is checked before it is put in force, and a
// mistake in the file is told with its line, beside a running server too.
func TestCheckReadsTheFile(t *testing.T) {
	d := newDesk(t)
	d.sources("sources: []\n")
	d.serve()
	d.sources(oneSource(staticFeed(t, 3).URL))
	var sum crawl.Summary
	d.json(exitDone, &sum, "sources", "check")
	if sum.Sources != 1 || sum.Fetched != 3 || len(sum.Results) != 1 || sum.Results[0].Slug != "one" {
		t.Errorf("a source that is in the file alone: %+v", sum)
	}
	d.do(exitDone, "sources", "check", "--source", "one")
	d.do(exitUsage, "sources", "check", "--source", "nosuch")
	var list struct{ Sources []sourceRow }
	if d.json(exitDone, &list, "sources", "list"); len(list.Sources) != 0 {
		t.Errorf("a check put %+v in force", list.Sources)
	}
	d.sources("sources:\n  - slug: one\n    feedurl: x\n")
	if e := d.do(exitUsage, "sources", "check"); !strings.Contains(e.stderr, "sources.yaml:3: feedurl: unknown key") {
		t.Errorf("a mistake in the file: %q", e.stderr)
	}
}

// TestReloadSaysWhatItChanged: and takes no empty file for a wish to have no
// sources.
func TestReloadSaysWhatItChanged(t *testing.T) {
	d := newDesk(t)
	feed := staticFeed(t, 1).URL
	d.sources(oneSource(feed))
	d.serve()
	d.sources("")
	if e := d.do(exitUsage, "sources", "reload"); !strings.Contains(e.stderr, "to have no sources write sources: []") {
		t.Errorf("an empty file: %q", e.stderr)
	}
	var list struct{ Sources []sourceRow }
	if d.json(exitDone, &list, "sources", "list"); len(list.Sources) != 1 {
		t.Errorf("an empty file left %+v in force", list.Sources)
	}
	d.sources(strings.ReplaceAll(oneSource(feed), "name: One", "name: Another") +
		strings.TrimPrefix(strings.ReplaceAll(oneSource(feed+"/two"), "slug: one", "slug: two"), "sources:\n"))
	if e := d.do(exitDone, "sources", "reload"); !strings.Contains(e.stdout, "added    two\nchanged  one\n1 added, 1 changed, 0 removed; 2 sources in force\n") {
		t.Errorf("added and changed: %q", e.stdout)
	}
	d.sources("sources: []\n")
	var out struct {
		Sources int
		crawl.Changes
	}
	if d.json(exitDone, &out, "sources", "reload"); out.Sources != 0 || len(out.Removed) != 2 || out.Added == nil {
		t.Errorf("removed: %+v", out)
	}
}

// TestImportIntoNothing: the file that a person writes to have no sources takes
// those of another reader.
func TestImportIntoNothing(t *testing.T) {
	for _, empty := range []string{"sources: []\n", "# mine\nsources: [ ]  # none yet\n\n", "[]\n"} {
		path := filepath.Join(t.TempDir(), "sources.yaml")
		if err := os.WriteFile(path, []byte(empty), 0o600); err != nil {
			t.Fatal(err)
		}
		src := crawl.Source{Slug: "one", Name: "One", FeedURL: "https://one.example/feed", Crawler: ledger.CrawlerRSS, Direction: "tech"}
		if err := addSources(path, []crawl.Source{src}, nil); err != nil {
			t.Errorf("%q: %v", empty, err)
			continue
		}
		got, err := crawl.LoadSources(path, nil)
		written, _ := os.ReadFile(path)
		if err != nil || len(got) != 1 || strings.Count(string(written), "#") != strings.Count(empty, "#") {
			t.Errorf("%q became %q: %v", empty, written, err)
		}
	}
}
