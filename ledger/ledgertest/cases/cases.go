// Package cases reads the public cases: small inputs made from bug reports on
// feed readers, each with the right values. They are data from outside the
// repository; the folder is VESTI_CASES (absolute, or relative to the module's
// root), by default ../shared/cases. Tests that need it skip where it is not.
//
// Each package that owns cases has one test, TestPublicCases, that calls Run.
// Which package owns which case stands in owners.go, and the cases that are not
// met yet in unmet.go: a case listed there that passes fails the test, so that
// the list can only shrink.
package cases

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Case is one case.json. Input and Expect stay raw: what is in them depends on
// the input's type, and the owner decodes what it needs.
type Case struct {
	ID     string          `json:"id"`
	Kind   string          `json:"kind"`
	Title  string          `json:"title"`
	Input  json.RawMessage `json:"input"`
	Expect json.RawMessage `json:"expect"`

	Dir string `json:"-"` // of case.json and its files
}

// InputType returns the input's type: feed, feeds, exchange, texts, ….
func (c Case) InputType(t testing.TB) string {
	t.Helper()
	var in struct{ Type string }
	c.Decode(t, c.Input, &in)
	return in.Type
}

// Decode reads raw, a part of the case, into v.
func (c Case) Decode(t testing.TB, raw json.RawMessage, v any) {
	t.Helper()
	if err := json.Unmarshal(raw, v); err != nil {
		t.Fatalf("case %s: %v", c.ID, err)
	}
}

// File returns the bytes of one of the case's files.
func (c Case) File(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(c.Dir, name))
	if err != nil {
		t.Fatalf("case %s: %v", c.ID, err)
	}
	return b
}

// Run runs check as a subtest for each case that the package owns. check
// returns what does not hold, nil when all does; it uses t for resources and
// for what is no verdict on the case, such as a broken file.
func Run(t *testing.T, owner string, check func(t *testing.T, c Case) error) {
	t.Helper()
	all := load(t)
	for _, c := range all {
		if ownerOf(c) != owner {
			continue
		}
		t.Run(c.ID, func(t *testing.T) {
			err := check(t, c)
			reason, listed := unmet()[c.ID]
			switch {
			case err != nil && listed:
				t.Skipf("not yet met (%s): %v", reason, err)
			case err != nil:
				t.Errorf("%s\n%v", c.Title, err)
			case listed:
				t.Errorf("passes, but is listed as unmet: strike it from unmet.go")
			}
		})
	}
}

// Folder returns the folder that the environment variable names, or def below
// the module's root, and skips the test where it does not exist.
func Folder(t testing.TB, variable, def string) string {
	t.Helper()
	dir := named(t, variable, def)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("test data not here: set %s (%v)", variable, err)
	}
	return dir
}

func named(t testing.TB, variable, def string) string {
	t.Helper()
	dir := os.Getenv(variable)
	if dir == "" {
		dir = def
	}
	if filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(moduleRoot(t), dir)
}

// FeedSeeds returns the smaller ones of the feeds in the corpora, none where they are
// not here: fuzz targets have other seeds as well.
func FeedSeeds(t testing.TB) [][]byte {
	t.Helper()
	const largest = 8 << 10
	root := named(t, "VESTI_CORPORA", defaultCorpora)
	var seeds [][]byte
	for _, pattern := range []string{"fixtures/*", "derived/*", "feedparser/*illformed*", "feedparser/*encoding*"} {
		files, err := filepath.Glob(filepath.Join(root, "feeds", filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if b, err := os.ReadFile(file); err == nil && len(b) < largest {
				seeds = append(seeds, b)
			}
		}
	}
	return seeds
}

const defaultCorpora = "../shared/corpora"

// Corpora returns a folder of the corpora, such as "feeds/wild", and skips the
// test where it does not exist.
func Corpora(t testing.TB, sub string) string {
	t.Helper()
	dir := filepath.Join(Folder(t, "VESTI_CORPORA", defaultCorpora), filepath.FromSlash(sub))
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("test data not here: %v", err)
	}
	return dir
}

func load(t *testing.T) []Case {
	t.Helper()
	root := Folder(t, "VESTI_CASES", "../shared/cases")
	files, err := filepath.Glob(filepath.Join(root, "*", "case.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no case below %s: %v", root, err)
	}
	slices.Sort(files)
	var all []Case
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		c := Case{Dir: filepath.Dir(f)}
		if err := json.Unmarshal(b, &c); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		all = append(all, c)
	}
	return all
}

func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatalf("no go.mod above %s", strings.TrimSpace(dir))
		}
		dir = up
	}
}
