package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vesti.nixg.ru/classify"
	"vesti.nixg.ru/crawl"
)

// A chain of two backups, made while a server runs, brings every post back into
// another data folder, and the index is built again.
func TestBackupAndRestore(t *testing.T) {
	d := newDesk(t)
	d.sources(oneSource(staticFeed(t, 20).URL))
	s := d.serve()
	eventually(t, "posts are classified", func() error {
		var st statusResult
		d.json(exitDone, &st, "status")
		if st.Queue.DoneToday != 20 {
			return fmt.Errorf("queue: %+v", st.Queue)
		}
		return nil
	})
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	if e := d.do(exitDone, "backup", first); !strings.Contains(e.stdout, "copy them too: "+filepath.Join(d.data, "sources.yaml")) {
		t.Errorf("the backup said %s", e.stdout)
	}
	var found searchResult
	d.json(exitDone, &found, "search", "kernel")
	d.do(exitDone, "review", found.Hits[0].ID.String(), "--pick", "--note", "after the first link")
	d.do(exitDone, "backup", second, "--since", first)
	if e := d.try("backup", first); e.code != exitUsage {
		t.Errorf("a backup over another: exit code %d", e.code)
	}
	if e := d.try("restore", first, second, "--yes"); e.code != exitFailed || !strings.Contains(e.stderr, "stop it first") {
		t.Errorf("restore under a running server: exit code %d, %s", e.code, e.stderr)
	}
	s.stop()

	other := newDesk(t)
	other.sources("sources: []\n")
	e := other.do(exitDone, "restore", first, second)
	if !strings.Contains(e.stdout, filepath.Join(other.data, "rules.yaml")) || strings.Contains(e.stdout, "sources.yaml") {
		t.Errorf("of the files that a backup has not, the restore said: %s", e.stdout)
	}
	other.do(exitDone, "verify")
	had := entries(t, other.data)
	e = other.do(exitUsage, "restore", first, second)
	if !strings.Contains(e.stdout, "20 posts") || !strings.Contains(e.stderr, "with --yes the restored one takes its place") {
		t.Errorf("a restore over a store without --yes: %s%s", e.stdout, e.stderr)
	}
	var tried struct{ OK, Restored bool }
	if other.json(exitUsage, &tried, "restore", first, second); tried.OK || tried.Restored {
		t.Errorf("as JSON: %+v", tried)
	}
	if now := entries(t, other.data); !slices.Equal(had, now) {
		t.Errorf("it left %v, there was %v", now, had)
	}
	if e := other.do(exitDone, "restore", first, second, "--yes"); !strings.Contains(e.stdout, "The store that was there before is now") {
		t.Errorf("a restore over a store: %s", e.stdout)
	}
	other.do(exitDone, "verify")
	var again searchResult
	other.json(exitDone, &again, "search", "kernel")
	if again.Total != 20 {
		t.Errorf("after the restore %d posts are found", again.Total)
	}
	if log := other.do(exitDone, "log", found.Hits[0].ID.String()).stdout; !strings.Contains(log, "picked") {
		t.Errorf("what the second link holds is missing:\n%s", log)
	}
	b, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	torn := filepath.Join(dir, "torn")
	if err := os.WriteFile(torn, b[:len(b)*2/3], 0o600); err != nil {
		t.Fatal(err)
	}
	if e := other.try("restore", torn, "--yes"); e.code != exitFailed {
		t.Errorf("restore of a cut backup: exit code %d\n%s", e.code, e.stdout)
	}
	none := newDesk(t)
	none.do(exitFailed, "restore", torn)
	if _, err := os.Stat(none.data); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a restore that failed left %v", entries(t, none.data))
	}
	if err := os.WriteFile(torn, b[:20], 0o600); err != nil {
		t.Fatal(err)
	}
	if e := other.try("restore", torn); e.code != exitFailed || !strings.Contains(e.stderr, "damaged or cut") || strings.Contains(e.stderr, "restore: restore:") {
		t.Errorf("restore of 20 bytes of a backup: exit code %d, %s", e.code, e.stderr)
	}
	if err := os.WriteFile(torn, []byte("a letter to the editor, no backup at all"), 0o600); err != nil {
		t.Fatal(err)
	}
	if e := other.try("restore", torn); e.code != exitFailed || !strings.Contains(e.stderr, "does not begin like one") {
		t.Errorf("restore of a text: exit code %d, %s", e.code, e.stderr)
	}
	nowhere := filepath.Join(dir, "nowhere", "third")
	if e := other.try("backup", nowhere); e.code != exitUsage || !strings.Contains(e.stderr, nowhere+":") || strings.Contains(e.stderr, ".vesti-backup") {
		t.Errorf("backup into a folder that is not there: exit code %d, %s", e.code, e.stderr)
	}
	other.do(exitDone, "verify")
	if e := other.do(exitDone, "compact"); strings.Contains(e.stderr, "WARN") {
		t.Errorf("compact warned: %s", e.stderr)
	}
}

// entries are the names in a folder.
func entries(t *testing.T, dir string) []string {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range found {
		names = append(names, e.Name())
	}
	return names
}

func TestClassifyEval(t *testing.T) {
	d := newDesk(t)
	d.sources("sources: []\n")
	lines := filepath.Join(t.TempDir(), "labelled.jsonl")
	text := `{"text":"Вышло ядро Linux 7.2 с новым планировщиком","direction":"linux"}
{"text":"The election commission published the final count of the vote","direction":"politics"}
`
	if err := os.WriteFile(lines, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var eval classify.Evaluation
	d.json(exitDone, &eval, "classify", "eval", lines)
	if eval.Lines != 2 || eval.Accuracy != 1 {
		t.Errorf("evaluation: %+v", eval)
	}
	if err := os.WriteFile(lines, []byte("no JSON\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if e := d.try("classify", "eval", lines); e.code != exitUsage || !strings.Contains(e.stderr, lines) || !strings.Contains(e.stderr, "line 1") {
		t.Errorf("a broken file: exit code %d, %s", e.code, e.stderr)
	}
}

// OPML from another reader becomes sources, once.
func TestImportOPML(t *testing.T) {
	d := newDesk(t)
	feed := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(feed.Close)
	d.sources(oneSource(feed.URL))
	opml := filepath.Join(t.TempDir(), "subscriptions.opml")
	if err := os.WriteFile(opml, []byte(`<opml version="2.0"><body><outline text="games"><outline type="rss" text="Some Games" xmlUrl="https://games.example.org/rss"/></outline><outline text="Sport"><outline text="Chess" xmlUrl="https://chess.example.org/rss"/></outline></body></opml>`), 0o600); err != nil {
		t.Fatal(err)
	}
	if said := d.do(exitDone, "sources", "import", opml, "--dry-run").stdout; !strings.Contains(said, `folder "Sport" is no direction: 1 sources go to linux, --direction`) {
		t.Errorf("the dry run said %s", said)
	}
	if out := d.do(exitDone, "sources", "export").stdout; strings.Contains(out, "example.org") {
		t.Fatalf("a dry run left %s", out)
	}
	var told struct{ Defaulted []crawl.Defaulted }
	d.json(exitDone, &told, "sources", "import", "--direction", "tech", opml)
	if want := (crawl.Defaulted{Folder: "Sport", Direction: "tech", Sources: 1}); len(told.Defaulted) != 1 || told.Defaulted[0] != want {
		t.Errorf("the import told of %+v", told.Defaulted)
	}
	d.do(exitDone, "sources", "import", opml)
	var list struct{ Sources []sourceRow }
	d.json(exitDone, &list, "sources", "list")
	if len(list.Sources) != 3 {
		t.Errorf("%d sources after the import", len(list.Sources))
	}
	more := func(name string) string {
		path := filepath.Join(t.TempDir(), "more.opml")
		if err := os.WriteFile(path, []byte(`<opml version="2.0"><body><outline type="rss" text="`+name+`" xmlUrl="`+feed.URL+"/"+name+`"/></body></opml>`), 0o600); err != nil {
			t.Fatal(err)
		}
		return d.do(exitDone, "sources", "import", path).stdout
	}
	if said := more("One"); !strings.Contains(said, "They are crawled from the next start on") {
		t.Errorf("without a server the import said %s", said)
	}
	d.serve()
	if said := more("Two"); !strings.Contains(said, "The server that runs has taken them over") {
		t.Errorf("beside a server the import said %s", said)
	}
	if out := d.do(exitDone, "sources", "export").stdout; !strings.Contains(out, "https://games.example.org/rss") {
		t.Errorf("export: %s", out)
	}
}
