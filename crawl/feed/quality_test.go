package feed_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html/charset"

	"vesti.nixg.ru/crawl/decode"
	"vesti.nixg.ru/crawl/feed"
	"vesti.nixg.ru/crawl/plain"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/ledgertest/cases"
	"vesti.nixg.ru/ledger/ledgertest/quality"
)

// TestQuality measures the parser on public test feeds and real captures.
//
// The expectations are those of feedparser's own tests, in the fields title,
// link, summary, content, author, date, id and encoding. They are mapped so
// that they ask for the same information, not for feedparser's form of it:
//
//   - Texts are compared as text: as they stand, or after their markup is
//     removed as it is removed here, white space aside. A summary may be what
//     here is the content, since feedparser copies one to the other.
//   - A link is the address of the entry or the site. Other relations, and the
//     type, title, length and language of a link or text, are not kept here and
//     not counted; nor are addresses and mailboxes of authors where there is a
//     name, publishers, and dates of expiry.
//   - A date is compared as an instant, with any date that the document gives.
//   - An encoding is right where it decodes the document to the same text.
//
// The groups base and sanitize are counted apart: their values come after
// feedparser's rewriting of markup, which has no counterpart here.
func TestQuality(t *testing.T) {
	quality.Wanted(t)
	t.Run("feedparser", measureFeedparser)
	t.Run("captures", measureCaptures)
}

type feedparserTest struct {
	Group      string
	Headers    map[string]string
	Expect     string
	Assertions []assertion
}

type assertion struct {
	Path  []any
	Op    string
	Value any
	Field string
}

// share is a part of a whole.
type share struct{ met, all int }

func (s *share) add(ok bool) {
	s.all++
	if ok {
		s.met++
	}
}

func (s share) value() float64 {
	if s.all == 0 {
		return 1
	}
	return float64(s.met) / float64(s.all)
}

func measureFeedparser(t *testing.T) {
	dir := cases.Corpora(t, "feeds/feedparser")
	var tests map[string]feedparserTest
	readJSON(t, filepath.Join(dir, "expectations.json"), &tests)
	var parsed, fair share
	fields, apart := map[string]*share{}, map[string]*share{}
	for name, test := range tests {
		body, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		doc, err := feed.Parse(body, feed.ParseOptions{ContentType: header(test.Headers, "content-type"), URL: location(test.Headers)})
		parsed.add(err == nil)
		if err != nil {
			t.Logf("%s: %v", name, err)
			doc = &feed.Document{}
		}
		for _, a := range test.Assertions {
			ok, counts := meets(doc, body, a)
			if !counts {
				continue
			}
			group := strings.TrimPrefix(test.Group, "wellformed/")
			if group == "sanitize" || group == "base" {
				tally(apart, group).add(ok)
				if !ok {
					t.Logf("APART %s: %v %s %#v\n\tgot %+v", name, a.Path, a.Op, a.Value, doc)
				}
				continue
			}
			fair.add(ok)
			tally(fields, a.Field).add(ok)
			if !ok {
				t.Logf("%s: %v %s %#v\n\tgot %+v", name, a.Path, a.Op, a.Value, doc)
			}
		}
	}
	values := map[string]float64{"feeds.feedparser.parsed": parsed.value(), "feeds.feedparser.expectations": fair.value()}
	for field, s := range fields {
		values["feeds.feedparser.expectations."+field] = s.value()
		t.Logf("%-10s %d of %d", field, s.met, s.all)
	}
	for group, s := range apart {
		values["feeds.feedparser.apart."+group] = s.value()
	}
	t.Logf("parsed %d of %d, fair expectations met %d of %d", parsed.met, parsed.all, fair.met, fair.all)
	quality.Report(t, values)
}

func tally(m map[string]*share, key string) *share {
	if m[key] == nil {
		m[key] = &share{}
	}
	return m[key]
}

func header(h map[string]string, name string) string {
	for k, v := range h {
		if strings.EqualFold(k, name) {
			return v
		}
	}
	return ""
}

// location is the address that the test's documents are relative to:
// feedparser serves them from port 8097 of its own machine.
func location(headers map[string]string) string {
	if l := header(headers, "content-location"); strings.HasPrefix(l, "http") {
		return l
	}
	return "http://127.0.0.1:8097/tests/feed.xml"
}

// meets reports whether doc meets a, and whether a counts at all.
func meets(doc *feed.Document, body []byte, a assertion) (ok, counts bool) {
	if a.Op != "==" || a.Field == "" {
		return false, false
	}
	path := make([]string, len(a.Path))
	entry := -1
	for i, p := range a.Path {
		if s, isString := p.(string); isString {
			path[i] = s
			continue
		}
		path[i] = strconv.Itoa(int(p.(float64)))
		if i == 1 {
			entry = int(p.(float64))
		}
	}
	if a.Field == "encoding" {
		return meetsEncoding(doc, body, a)
	}
	if entry >= len(doc.Entries) {
		doc, entry = &feed.Document{Entries: make([]feed.Entry, 1)}, 0
	}
	last := path[len(path)-1]
	if s, isString := a.Value.(string); isString {
		return meetsText(doc, entry, a.Field, path, last, s)
	}
	tuple, isTuple := a.Value.([]any)
	if a.Field != "date" || !isTuple || len(tuple) < 6 || strings.HasPrefix(last, "expired") {
		return false, false
	}
	n := make([]int, 6)
	for i := range n {
		n[i] = int(tuple[i].(float64))
	}
	want := time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], 0, time.UTC)
	return datesOf(doc, entry, func(t time.Time, _ string) bool { return t.Truncate(time.Second).Equal(want) }), true
}

func datesOf(doc *feed.Document, entry int, f func(time.Time, string) bool) bool {
	if entry < 0 {
		return f(doc.Updated, doc.UpdatedRaw)
	}
	e := doc.Entries[entry]
	return f(e.Published, e.PublishedRaw)
}

func meetsText(doc *feed.Document, entry int, field string, path []string, last, want string) (ok, counts bool) {
	switch last {
	case "base", "language", "type", "rel", "length", "src":
		return false, false
	}
	var e feed.Entry
	if entry >= 0 {
		e = doc.Entries[entry]
	} else {
		e = feed.Entry{Title: doc.Title, Link: doc.Link, Author: doc.Author, GUID: doc.ID}
	}
	switch field {
	case "title":
		if slices.Contains(path, "links") {
			return false, false
		}
		return sameText(e.Title, want), true
	case "summary", "content":
		if entry < 0 {
			return sameText(doc.Description, want), true
		}
		return sameText(e.Summary.Plain(), want) || sameText(e.Content.Plain(), want), true
	case "link":
		if slices.Contains(path, "links") && (last != "href" || path[len(path)-2] != "0") {
			return false, false
		}
		return e.Link == want, true
	case "author":
		if last != "author" && last != "name" {
			return false, false
		}
		return sameAuthor(e.Author, want), true
	case "id":
		return e.GUID == want, true
	case "date":
		if last == "expired" {
			return false, false
		}
		at, readable := feed.ParseDate(want, nil, "")
		return datesOf(doc, entry, func(t time.Time, raw string) bool { return raw == want || readable && t.Equal(at) }), true
	}
	return false, false
}

func sameText(got, want string) bool {
	got = ledger.Normalise(got)
	for _, w := range []string{plain.FromText(want), plain.Guess(want), plain.FromHTML(want)} {
		if got == ledger.Normalise(w) {
			return true
		}
	}
	return false
}

// sameAuthor compares names; where there is none, mailboxes.
func sameAuthor(got, want string) bool {
	name, _, _ := strings.Cut(want, " (")
	return got == want || got == strings.TrimSpace(name) || strings.Contains(", "+got+", ", ", "+want+", ")
}

func meetsEncoding(doc *feed.Document, body []byte, a assertion) (ok, counts bool) {
	want, isString := a.Value.(string)
	if !isString {
		return false, false
	}
	if strings.EqualFold(want, doc.Encoding) {
		return true, true
	}
	enc, _ := charset.Lookup(want)
	if enc == nil {
		return false, true
	}
	theirs, err := enc.NewDecoder().Bytes(body)
	if err != nil {
		return false, true
	}
	ours, _ := decode.Text(body, "text/xml; charset="+doc.Encoding, 1<<20)
	return ours == string(theirs), true
}

func measureCaptures(t *testing.T) {
	root := cases.Corpora(t, "feeds")
	var manifest map[string]struct {
		Expect          string
		HTTPContentType string `json:"http_content_type"`
	}
	readJSON(t, filepath.Join(root, "manifest.json"), &manifest)
	values := map[string]float64{}
	for _, set := range []string{"wild", "fixtures", "derived"} {
		files, err := filepath.Glob(filepath.Join(root, set, "*"))
		if err != nil {
			t.Fatal(err)
		}
		var parsed share
		entries, dated, linked := share{}, share{}, share{}
		for _, file := range files {
			m := manifest[filepath.Base(file)]
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			doc, err := feed.Parse(body, feed.ParseOptions{ContentType: m.HTTPContentType, URL: "https://feed.example.org/feed"})
			if m.Expect == "not-a-feed" {
				if err == nil {
					t.Errorf("%s: taken for a feed", file)
				}
				continue
			}
			parsed.add(err == nil)
			if err != nil {
				t.Logf("%s: %v", file, err)
				continue
			}
			entries.add(len(doc.Entries) > 0)
			for _, e := range doc.Entries {
				dated.add(e.PublishedRaw == "" || !e.Published.IsZero())
				linked.add(e.Link != "")
				if e.PublishedRaw != "" && e.Published.IsZero() {
					t.Logf("%s: date %q", filepath.Base(file), e.PublishedRaw)
				}
				if e.Link == "" || e.Title == "" && e.Content.Plain()+e.Summary.Plain() == "" {
					t.Logf("%s: link %q title %q guid %q", filepath.Base(file), e.Link, e.Title, e.GUID)
				}
			}
			if len(doc.Entries) == 0 || doc.Truncated {
				t.Logf("%s: %d entries, truncated %v", filepath.Base(file), len(doc.Entries), doc.Truncated)
			}
		}
		values["feeds."+set+".parsed"] = parsed.value()
		t.Logf("%s: parsed %d of %d, with entries %d; dates read %d of %d; entries with a link %d of %d", set, parsed.met, parsed.all, entries.met, dated.met, dated.all, linked.met, linked.all)
	}
	quality.Report(t, values)
}

func readJSON(t *testing.T, path string, v any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
