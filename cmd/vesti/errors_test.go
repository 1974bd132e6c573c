package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"vesti.nixg.ru/ledger"
)

// TestErrors: what is wrong with a command line is said once, names the thing,
// and has one exit code whichever command it is; a program that asked for JSON
// gets the same as JSON.
func TestErrors(t *testing.T) {
	d := newDesk(t)
	d.sources(oneSource(staticFeed(t, 3).URL))
	d.write("notes.opml", "no OPML at all")
	d.do(exitDone, "crawl", "--all")
	missing := filepath.Join(d.data, "missing.yaml")
	check := func(t *testing.T, args []string, want string) {
		t.Helper()
		e := d.do(exitUsage, append([]string{"--json"}, args...)...)
		if strings.Count(e.stderr, "vesti: ") != 1 || !strings.Contains(e.stderr, want) {
			t.Errorf("%v: %q does not say %q", args, e.stderr, want)
		}
		var answer struct {
			Error string `json:"error"`
		}
		if err := json.Unmarshal([]byte(e.stdout), &answer); err != nil || !strings.HasSuffix(e.stderr, "vesti: "+answer.Error+"\n") {
			t.Errorf("%v: as JSON %q (%v), for people %q", args, e.stdout, err, e.stderr)
		}
	}
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"--sources", missing, "crawl", "--all"}, "setting sources: stat " + missing},
		{[]string{"--set", "rules=" + missing, "work"}, "setting rules: stat " + missing},
		{[]string{"--set", "directions=linux,linux", "status"}, "linux is there twice"},
		{[]string{"rebuild", "queue", "nosuch"}, `no projection is called "nosuch"; there are queue, sources, posts, search`},
		{[]string{"sources", "import", filepath.Join(d.data, "notes.opml")}, "notes.opml: invalid: no OPML"},
		{[]string{"sources", "import", "nosuch.opml"}, "nosuch.opml"},
		{[]string{"restore", "nosuch.backup"}, "nosuch.backup"},
		{[]string{"review", "zzz", "--pick"}, `no post is called "zzz"`},
		{[]string{"review", "00000000", "--pick"}, `no post is called "00000000"`},
		{[]string{"replay", "zzz"}, `no post is called "zzz"`},
		{[]string{"log", "zzz"}, `no post is called "zzz"`},
		{[]string{"crawl", "--source", "nosuch"}, "nosuch"},
		{[]string{"sources", "preview", "nosuch"}, "nosuch"},
		{[]string{"search", "--limit", "500"}, "--limit 500: want 1 to 200, or 0 for the most"},
		{[]string{"search", "--limit", "-1"}, "--limit -1: want 1 to 200, or 0 for the most"},
		{[]string{"search", "-ядро"}, "unknown flag: -ядро; put -- before a query that begins with a minus: vesti search -- -word"},
		{[]string{"status", "-ядро"}, `unknown flag: -ядро; see "vesti status --help"`},
		{[]string{"work", "--workers", "2000"}, "--workers 2000: want 1 to 1024, or 0 for the setting work.workers"},
		{[]string{"log", "one", "--limit", "-1"}, "--limit -1: want a number, 0 for all"},
		{[]string{"sources", "dropped", "one", "--limit", "-1"}, "--limit -1: want a number, 0 for all"},
		{[]string{"work", "--limit", "-1"}, "--limit -1: want a number, 0 for all"},
		{[]string{"search", "--nosuch"}, "--nosuch"},
		{[]string{"nosuch"}, "nosuch"},
		{[]string{"search", "--direction", "nosuch"}, "--direction nosuch: want one of"},
		{[]string{"search", "--source", "nosuch"}, `source "nosuch" is not in the registry`},
		{[]string{"sources", "import", "--direction", "zzz", filepath.Join(d.data, "notes.opml")}, "--direction zzz: want one of"},
		{[]string{"search", "--lang", "zz"}, "--lang zz: no language"},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) { check(t, tt.args, tt.want) })
	}
	if e := d.do(exitUsage, "review", "zzz", "--pick"); e.stdout != "" {
		t.Errorf("for people, on standard output: %q", e.stdout)
	}
	d.serve()
	if e := d.do(exitDone, "--set", "work.workers=2", "status"); !strings.Contains(e.stderr, "--set, --sources and --config are not heeded") {
		t.Errorf("a setting beside a running server: %q", e.stderr)
	}
	// the server answers as the command itself does
	for _, i := range []int{3, 4, 7, 13} {
		tt := tests[i]
		t.Run("served "+strings.Join(tt.args, " "), func(t *testing.T) { check(t, tt.args, tt.want) })
	}
}

// TestSearchSaysWhatItLeftOut: a value that there is not narrows nothing, so it
// is told, in the pages' words to a person and by name to a program.
func TestSearchSaysWhatItLeftOut(t *testing.T) {
	d := newDesk(t)
	d.sources(oneSource(staticFeed(t, 3).URL))
	d.do(exitDone, "crawl", "--all")
	e := d.do(exitDone, "search", "status:zzz before:junk after:2026-13-45 verdict:perhaps direction:gardening -source:nosuch direction:games")
	for _, want := range []string{
		"No such value, left out: status:zzz", "No such value, left out: verdict:perhaps",
		"No such value, left out: direction:gardening", "No such value, left out: source:nosuch",
		"Not a date, left out: before:junk", "Not a date, left out: after:2026-13-45",
	} {
		if !strings.Contains(e.stderr, want+"\n") && !strings.Contains(e.stderr, want+". ") {
			t.Errorf("standard error does not say %q:\n%s", want, e.stderr)
		}
	}
	if strings.Contains(e.stdout, "left out") {
		t.Errorf("notes among the results:\n%s", e.stdout)
	}
	var found searchResult
	d.json(exitDone, &found, "search", "status:zzz")
	if len(found.Notes) != 1 || found.Notes[0].Reason != "bad_value" || len(found.Notes[0].Parts) != 1 || found.Notes[0].Parts[0] != "status:zzz" {
		t.Errorf("notes %+v", found.Notes)
	}
	if d.json(exitDone, &found, "search", "--limit", "0"); len(found.Hits) != 3 {
		t.Errorf("without a limit %d hits", len(found.Hits))
	}
	d.json(exitDone, &found, "search", "--lang", "EN", "--source", "one")
	if found.Total != 3 || len(found.Notes) != 0 {
		t.Errorf("found %d, notes %+v", found.Total, found.Notes)
	}
	d.sources("sources: []\n")
	if d.json(exitDone, &found, "search", "--source", "one"); found.Total != 3 {
		t.Errorf("of a source that was taken off the registry: %d found", found.Total)
	}
}

// TestStoreWithoutSourcesAndRules: a mistake in a file that a command does not
// need is told and no hindrance: least of all to a backup.
func TestStoreWithoutSourcesAndRules(t *testing.T) {
	d := newDesk(t)
	d.sources(oneSource(staticFeed(t, 3).URL))
	d.do(exitDone, "crawl", "--all")
	d.sources("sources:\n  - slug: [\n")
	d.write("rules.yaml", "version: 1\ndirections:\n  linux: 5\n")
	for _, args := range [][]string{
		{"status"}, {"search"}, {"search", "--source", "one"}, {"log", "one"}, {"verify"}, {"compact"}, {"backup", filepath.Join(t.TempDir(), "a.backup")},
	} {
		e := d.do(exitDone, append(args, "--quiet")...)
		for _, want := range []string{"warning: sources.yaml:2:", "rules.yaml: "} {
			if !strings.Contains(e.stderr, want) {
				t.Errorf("%v: %q does not say %q", args, e.stderr, want)
			}
		}
	}
	d.do(exitUsage, "crawl", "--all")
	d.do(exitUsage, "work")
	d.do(exitUsage, "reclassify")
}

// TestBrokenRulesAreTold: who saves a rules file with a mistake learns it from
// the commands, and not from the server's log alone.
func TestBrokenRulesAreTold(t *testing.T) {
	d := newDesk(t)
	d.sources("sources: []\n")
	d.write("rules.yaml", oldRules)
	s := d.serve()
	if e := d.do(exitDone, "status"); strings.Contains(e.stdout, "rules.yaml") {
		t.Errorf("sound rules: %s", e.stdout)
	}
	d.write("rules.yaml", strings.Replace(oldRules, "weight: 5", "weight: heavy", 1))
	told := regexp.MustCompile(`rules\.yaml: line 4: .*; the rules from \d\d:\d\d are in force`)
	if e := d.do(exitDone, "status"); !told.MatchString(e.stdout) {
		t.Errorf("status: %s", e.stdout)
	}
	if e := d.do(exitDone, "reclassify", "--dry-run"); !told.MatchString(e.stderr) {
		t.Errorf("reclassify: %s", e.stderr)
	}
	s.wantLogged("the rules file cannot be used")
	d.write("rules.yaml", oldRules)
	if e := d.do(exitDone, "status"); strings.Contains(e.stdout, "rules.yaml") {
		t.Errorf("mended rules: %s", e.stdout)
	}
	s.wantLogged("the rules file is good again")
}

// TestLockIsNamed: who finds the store taken learns by whom.
func TestLockIsNamed(t *testing.T) {
	d := newDesk(t)
	d.sources("sources: []\n")
	s := d.serve()
	if err := os.Remove(socketPath(d.data)); err != nil { // else the command is carried out by the server
		t.Fatal(err)
	}
	e := d.do(exitFailed, "status")
	for _, want := range []string{d.data, fmt.Sprintf("(process %d)", s.cmd.Process.Pid), "stop that process", "--data"} {
		if !strings.Contains(e.stderr, want) {
			t.Errorf("%q does not say %q", e.stderr, want)
		}
	}
}

// TestLogOfPost: a line for a person has no empty quotes, and a program gets
// keys in snake_case.
func TestLogOfPost(t *testing.T) {
	d := newDesk(t)
	d.sources(oneSource(staticFeed(t, 1).URL))
	d.do(exitDone, "crawl", "--all")
	d.do(exitDone, "work")
	var found searchResult
	d.json(exitDone, &found, "search")
	id := found.Hits[0].ID.String()
	said := d.do(exitDone, "log", id).stdout
	for _, unwanted := range []string{`""`, "worker/worker", "0001-01-01"} {
		if strings.Contains(said, unwanted) {
			t.Errorf("%q in\n%s", unwanted, said)
		}
	}
	if !strings.Contains(said, "worker/") {
		t.Errorf("no worker in\n%s", said)
	}
	var history struct {
		Events []struct {
			Type    string                     `json:"type"`
			Payload map[string]json.RawMessage `json:"payload"`
		} `json:"events"`
	}
	d.json(exitDone, &history, "log", id)
	if len(history.Events) < 2 || history.Events[0].Payload["text_len"] == nil || history.Events[1].Payload["duration_ms"] == nil {
		t.Errorf("history %+v", history)
	}
}

// TestReadingMakesNothing: a command that only reads leaves no folder where there
// is none, and says what makes one.
func TestReadingMakesNothing(t *testing.T) {
	d := newDesk(t)
	feed := staticFeed(t, 3).URL
	lines := filepath.Join(t.TempDir(), "labelled.jsonl")
	if err := os.WriteFile(lines, []byte(`{"text": "Вышло ядро Linux", "direction": "linux"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	nothing := func(after []string) {
		t.Helper()
		if _, err := os.Stat(filepath.Join(d.data, "ledger")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v made a store", after)
		}
	}
	for _, args := range [][]string{{"sources", "list"}, {"sources", "reload"}, {"sources", "dropped", "one"}, {"verify"}, {"work"}, {"telegram", "status"}} {
		if e := d.do(exitUsage, args...); !strings.Contains(e.stderr, "there is no store in "+d.data+`; begin with "vesti serve"`) {
			t.Errorf("%v: %s", args, e.stderr)
		}
	}
	for _, args := range [][]string{{"sources", "check"}, {"sources", "export"}, {"crawl", "--all", "--dry-run"}} {
		if e := d.do(exitUsage, args...); !strings.Contains(e.stderr, filepath.Join(d.data, "sources.yaml")+`; "vesti serve" writes one`) {
			t.Errorf("%v: %s", args, e.stderr)
		}
	}
	d.do(exitDone, "classify", "eval", lines)
	d.do(exitDone, "sources", "discover", "--allow-private", feed)
	if _, err := os.Stat(d.data); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the data folder was made: %v", err)
	}
	d.sources(oneSource(feed))
	for _, args := range [][]string{{"sources", "check"}, {"sources", "export"}, {"crawl", "--all", "--dry-run"}, {"sources", "preview", "one"}} {
		d.do(exitDone, args...)
		nothing(args)
	}
	d.do(exitDone, "crawl", "--all")
	d.do(exitDone, "sources", "list")
}

// TestConfigShowsWhoseItIs: beside a server, the settings are the server's, and
// what a start from here would change is told.
func TestConfigShowsWhoseItIs(t *testing.T) {
	d := newDesk(t)
	d.sources("sources: []\n")
	if e := d.do(exitDone, "config"); !strings.Contains(e.stderr, "no server runs on "+d.data) {
		t.Errorf("without a server: %s", e.stderr)
	}
	d.serve("--set", "work.workers=3")
	e := d.do(exitDone, "config", "--set", "work.workers=5")
	if !strings.Contains(e.stderr, "the server that runs on "+d.data+" has these settings") ||
		!strings.Contains(e.stderr, "work.workers: a server started from here would have 5\n") || strings.Contains(e.stderr, "ledger.lease: ") {
		t.Errorf("with a server: %s", e.stderr)
	}
	var shown map[string]string
	if d.json(exitDone, &shown, "config", "--set", "work.workers=5"); shown["work.workers"] != "3" {
		t.Errorf("as JSON: work.workers = %s", shown["work.workers"])
	}
}

func TestLogOfMoves(t *testing.T) {
	for _, c := range []struct {
		payload ledger.SourceMoved
		want    string
	}{
		{ledger.SourceMoved{From: "https://a.example/", URL: "https://b.example/"}, "from https://a.example/ to https://b.example/"},
		{ledger.SourceMoved{From: "https://a.example/"}, "back to https://a.example/"},
	} {
		if got := describe(c.payload); len(got) != 1 || got[0] != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
