package main

import (
	"strings"
	"testing"

	"vesti.nixg.ru/crawl"
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
