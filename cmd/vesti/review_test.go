package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"vesti.nixg.ru/classify"
	"vesti.nixg.ru/ledger"
)

// An editor's word outranks the classifiers, each part of it can be given alone,
// replaces what was said before, survives a reclassification, and can be taken
// back: then the classifiers' decision shows again.
func TestReviewCommand(t *testing.T) {
	d := newDesk(t)
	d.sources(oneSource(staticFeed(t, 1).URL))
	s := d.serve()
	var found searchResult
	eventually(t, "the post is judged", func() error {
		if d.json(exitDone, &found, "search", "kernel", "--direction", "linux"); found.Total != 1 {
			return fmt.Errorf("%d posts", found.Total)
		}
		return nil
	})
	id := found.Hits[0].ID.String()
	d.write("other.yaml", "version: 1\ndirections:\n  games:\n    - {rule: test, weight: 9, keywords: [kernel]}\n")
	reclassify := func(judged int) {
		t.Helper()
		var diff classify.Diff
		d.json(exitDone, &diff, "reclassify", "--rules", d.data+"/other.yaml")
		if diff.Judged != judged || diff.Written != judged || diff.Reviewed != 1-judged {
			t.Errorf("reclassify: %+v", diff)
		}
	}
	for _, tt := range []struct {
		args      []string
		verdict   ledger.Verdict
		direction ledger.Direction
		shown     ledger.Direction // where the post is found
	}{
		{[]string{"--pick"}, ledger.VerdictPicked, "", "linux"},
		{[]string{"--direction", "llm"}, ledger.VerdictPicked, "llm", "llm"},
		{[]string{"--reject", "--note", "a duplicate"}, ledger.VerdictRejected, "llm", "llm"},
		{[]string{"--pick"}, ledger.VerdictPicked, "llm", "llm"},
		{[]string{"--undo"}, ledger.VerdictNone, "", "linux"},
		{[]string{"--direction", "tech"}, ledger.VerdictNone, "tech", "tech"},
	} {
		var said struct {
			Verdict   ledger.Verdict
			Direction ledger.Direction
		}
		d.json(exitDone, &said, append([]string{"review", id}, tt.args...)...)
		if said.Verdict != tt.verdict || said.Direction != tt.direction {
			t.Errorf("review %s: %+v", tt.args, said)
		}
		eventually(t, fmt.Sprintf("after review %s the post is in %s", tt.args, tt.shown), func() error {
			if d.json(exitDone, &found, "search", "kernel", "--direction", string(tt.shown)); found.Total != 1 || found.Hits[0].Verdict != tt.verdict {
				return fmt.Errorf("%+v", found)
			}
			return nil
		})
		if tt.verdict != ledger.VerdictNone || tt.direction != "" {
			reclassify(0)
		}
	}
	d.do(exitDone, "review", id, "--undo")
	var before, after struct{ Events []logEntry }
	d.json(exitDone, &before, "log", id)
	if said := d.do(exitDone, "review", id, "--undo").stdout; !strings.Contains(said, "nothing to take back") {
		t.Errorf("a second --undo said %s", said)
	}
	if d.json(exitDone, &after, "log", id); len(after.Events) != len(before.Events) {
		t.Errorf("a second --undo made %d events", len(after.Events)-len(before.Events))
	}
	for _, wrong := range [][]string{{}, {"--pick", "--reject"}, {"--undo", "--pick"}, {"--direction", "gardening"}} {
		if e := d.try(append([]string{"review", id}, wrong...)...); e.code != exitUsage {
			t.Errorf("review %s: exit code %d, %s", wrong, e.code, e.stderr)
		}
	}
	if e := d.try("review", "ffffffffffff", "--pick"); e.code != exitUsage || !strings.Contains(e.stderr, "ffffffffffff") {
		t.Errorf("review of no post: exit code %d, %s", e.code, e.stderr)
	}
	d.do(exitDone, "review", id, "--undo")
	reclassify(1)
	log := d.do(exitDone, "log", id).stdout
	if strings.Count(log, "PostReviewed") != 7 || strings.Count(log, "a duplicate") != 2 {
		t.Errorf("the history:\n%s", log)
	}
	s.stop()
	inApp(t, d, func(ctx context.Context, a *App) {
		num, err := a.log.FindPost(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if p, err := a.log.Post(ctx, num); err != nil || p.State.Reviewed || p.State.EffectiveDirection() != "games" {
			t.Errorf("in the end %+v, %v", p.State, err)
		}
	})
}
