package search_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"vesti.nixg.ru/ledger/ledgertest"
	"vesti.nixg.ru/ledger/ledgertest/cases"
)

func TestPublicCases(t *testing.T) {
	cases.Run(t, cases.Search, func(t *testing.T, c cases.Case) error {
		if c.InputType(t) == "search_generated" {
			return checkGenerated(t, c)
		}
		return checkQueries(t, c)
	})
}

// caseInput is the input of cases of both kinds.
type caseInput struct {
	Docs json.RawMessage `json:"docs"` // a file's name, or documents
}

type caseDoc struct {
	ID    string `json:"id"`
	Lang  string `json:"lang"`
	Title string `json:"title"`
	Text  string `json:"text"`

	Generator *struct {
		Prefix string `json:"prefix"`
		Repeat string `json:"repeat"`
		Times  int    `json:"times"`
		Suffix string `json:"suffix"`
	} `json:"text_generator"`
}

type caseExpect struct {
	Queries []struct {
		Q       string   `json:"q"`
		Must    []string `json:"must"`
		MustNot []string `json:"must_not"`
	} `json:"queries"`
	IndexBytesMax int64 `json:"index_bytes_max"`
	RSSGrowthMax  int64 `json:"rss_growth_mb_max"`
}

func checkQueries(t *testing.T, c cases.Case) error {
	var in caseInput
	c.Decode(t, c.Input, &in)
	var expect caseExpect
	c.Decode(t, c.Expect, &expect)
	raw := in.Docs
	var file string
	if json.Unmarshal(raw, &file) == nil {
		raw = c.File(t, file)
	}
	var docs []caseDoc
	c.Decode(t, raw, &docs)
	dir := t.TempDir()
	d := attach(t, ledgertest.Open(t), dir)
	for _, one := range docs {
		text := one.Text
		if g := one.Generator; g != nil {
			text = g.Prefix + strings.Repeat(g.Repeat, g.Times) + g.Suffix
		}
		d.add(t, doc{ID: one.ID, Lang: one.Lang, Title: one.Title, Text: text})
	}
	var errs []error
	for _, q := range expect.Queries {
		if emptyQuery(q.Q) {
			q.Must, q.MustNot = nil, nil
			if got := d.find(t, q.Q); len(got) != len(docs) {
				errs = append(errs, fmt.Errorf("%q lists %v, want every document", q.Q, got))
			}
		}
		got := d.find(t, q.Q)
		for _, id := range q.Must {
			if !slices.Contains(got, id) {
				errs = append(errs, fmt.Errorf("%q finds %v, want %s among them", q.Q, got, id))
			}
		}
		for _, id := range q.MustNot {
			if slices.Contains(got, id) {
				errs = append(errs, fmt.Errorf("%q finds %v, want %s not among them", q.Q, got, id))
			}
		}
	}
	if size := folderBytes(t, dir); expect.IndexBytesMax > 0 && size > expect.IndexBytesMax {
		errs = append(errs, fmt.Errorf("the index takes %d bytes, want at most %d", size, expect.IndexBytesMax))
	}
	return errors.Join(errs...)
}

func folderBytes(t testing.TB, dir string) int64 {
	t.Helper()
	var sum int64
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && e.IsDir() {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil {
			sum += info.Size()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// emptyQuery: for these the settled choices say that the newest posts are
// listed, where the case itself has none of them.
func emptyQuery(q string) bool { return strings.Trim(q, " \t\"") == "" }

func checkGenerated(t *testing.T, c cases.Case) error {
	before := resident(t)
	err := checkQueries(t, c)
	var expect caseExpect
	c.Decode(t, c.Expect, &expect)
	if grown := (resident(t) - before) >> 20; expect.RSSGrowthMax > 0 && grown > expect.RSSGrowthMax {
		err = errors.Join(err, fmt.Errorf("resident memory grew by %d MB, want at most %d", grown, expect.RSSGrowthMax))
	}
	return err
}

// resident is the memory that the process has in use, in bytes.
func resident(t *testing.T) int64 {
	t.Helper()
	runtime.GC()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("no /proc here")
	}
	pages, err := strconv.ParseInt(strings.Fields(string(b))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// TestChecks runs the list of small checks beside the cases: a few documents, a
// query, and exactly which of them it finds.
func TestChecks(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(cases.Folder(t, "VESTI_CASES", "../shared/cases"), "search-checks.json"))
	if err != nil {
		t.Skip(err)
	}
	var checks []struct {
		ID    string   `json:"id"`
		Name  string   `json:"name"`
		Docs  []string `json:"docs"`
		Query string   `json:"query"`
		Want  []int    `json:"want"`
	}
	if err := json.Unmarshal(raw, &checks); err != nil {
		t.Fatal(err)
	}
	for _, c := range checks {
		t.Run(c.ID, func(t *testing.T) {
			d := open(t)
			for i, text := range c.Docs {
				d.add(t, doc{ID: strconv.Itoa(i), Text: text})
			}
			want := []string{}
			for _, i := range c.Want {
				want = append(want, strconv.Itoa(i))
			}
			got := d.find(t, c.Query)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%s: %q finds %v of %q, want %v", c.Name, c.Query, got, c.Docs, want)
			}
		})
	}
}
