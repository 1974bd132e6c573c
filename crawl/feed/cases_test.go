package feed_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"vesti.nixg.ru/crawl/feed"
	"vesti.nixg.ru/crawl/plain"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/ledgertest/cases"
)

func TestPublicCases(t *testing.T) {
	cases.Run(t, cases.Feed, func(t *testing.T, c cases.Case) error {
		switch kind := c.InputType(t); kind {
		case "feed", "dates":
			return checkFeed(t, c)
		case "html":
			return checkText(t, c)
		case "urls":
			var x expectation
			c.Decode(t, c.Expect, &x)
			return x.checkURLs()
		default:
			return fmt.Errorf("no way to check an input of type %q", kind)
		}
	})
}

// expectation is what a case may demand of this package. "ui", "search" and
// "metrics" are about pages; the rest of what is left out there says in words
// what other keys say in values.
type expectation struct {
	Entries           *int
	Documents         *int
	Dedup             string
	Items             []map[string]any
	Titles            []string
	ListOrder         []string `json:"list_order"`
	ListFirstNot      string   `json:"list_first_not"`
	LinkNotContains   []string `json:"link_not_contains"`
	FeedDescription   string   `json:"feed_description_contains"`
	NoReplacement     bool     `json:"no_replacement_char"`
	UTF8              bool     `json:"utf8_valid"`
	NoControls        bool     `json:"text_has_no_control_chars"`
	RawDateKept       bool     `json:"raw_date_kept"`
	KeepRef           bool     `json:"fetch_and_open_url_keep_ref"`
	Idempotent        bool
	SameCanonicalKept bool   `json:"different_texts_same_canonical_both_kept"`
	PublishedRule     string `json:"published_rule"`
	Rows              []struct {
		In      string
		Want    *string  `json:"canonical"`
		WantAny []string `json:"canonical_any_of"`
		Note    string
	}
	InputIs             string `json:"input_is"`
	Lines               []string
	TextContains        []string `json:"text_contains"`
	TextNotContains     []string `json:"text_not_contains"`
	UI, Search, Metrics json.RawMessage
}

func decodeExpectation(t *testing.T, c cases.Case) expectation {
	var x expectation
	dec := json.NewDecoder(strings.NewReader(string(c.Expect)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&x); err != nil {
		t.Fatalf("case %s demands what this test cannot check: %v", c.ID, err)
	}
	return x
}

func checkFeed(t *testing.T, c cases.Case) error {
	var in struct {
		File        string
		URL         string
		ContentType string `json:"content_type"`
		Now         time.Time
		Limit       int
	}
	c.Decode(t, c.Input, &in)
	x := decodeExpectation(t, c)
	if in.URL == "" {
		in.URL = "https://feed.example.org/rss.xml"
	}
	body := c.File(t, in.File)
	w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", in.ContentType)
		w.Write(body)
	})
	src := source(in.URL)
	src.MaxItems = in.Limit
	run, err := w.crawl(src, in.Now)
	if err != nil {
		return err
	}
	doc, err := feed.Parse(body, feed.ParseOptions{ContentType: in.ContentType, URL: in.URL})
	if err != nil {
		return err
	}
	return errors.Join(x.checkRun(run, doc), x.checkItems(run, doc), x.checkURLs())
}

func (x expectation) checkRun(run result, doc *feed.Document) error {
	var f failures
	if x.Entries != nil {
		f.check(run.report.Entries == *x.Entries, "entries: %d, want %d", run.report.Entries, *x.Entries)
	}
	if x.Documents != nil {
		f.check(run.report.New == *x.Documents, "documents: %d, want %d", run.report.New, *x.Documents)
	}
	if x.Dedup == "different" {
		f.check(run.report.New == len(run.items), "%d documents of %d entries, want them different", run.report.New, len(run.items))
	}
	newestFirst := slices.Clone(run.items)
	slices.Reverse(newestFirst)
	var titles []string
	for _, it := range newestFirst {
		titles = append(titles, it.Title)
	}
	for _, want := range [][]string{x.Titles, x.ListOrder} {
		f.check(want == nil || slices.Equal(titles, want), "titles, newest first: %q, want %q", titles, want)
	}
	if x.ListFirstNot != "" {
		// What has no date of its own sorts by when it was fetched, so the test
		// of the list is the page's; here the wrong date must not be kept.
		for _, it := range run.items {
			f.check(it.Title != x.ListFirstNot || it.Published.IsZero(), "%q keeps its date %v", it.Title, it.Published)
		}
	}
	f.check(strings.Contains(doc.Description, x.FeedDescription), "description %q, want it to contain %q", doc.Description, x.FeedDescription)
	for _, it := range run.items {
		for _, part := range x.LinkNotContains {
			f.check(!strings.Contains(it.URL+it.CanonicalURL, part), "link %q contains %q", it.URL, part)
		}
		all := it.Title + it.Text + it.Author
		f.check(!x.NoReplacement || !strings.ContainsRune(all, utf8.RuneError), "U+FFFD in %q", all)
		f.check(utf8.ValidString(all), "invalid UTF-8 in %q", all)
		f.check(strings.IndexFunc(all, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }) < 0, "control character in %q", all)
		f.check(!x.RawDateKept || it.PublishedRaw != "", "%q: the date as written is lost", it.Title)
	}
	return f.err()
}

func (x expectation) checkItems(run result, doc *feed.Document) error {
	var f failures
	for _, want := range x.Items {
		n := int(want["n"].(float64))
		if n > len(doc.Entries) {
			f.check(false, "item %d: there are %d entries", n, len(doc.Entries))
			continue
		}
		e := doc.Entries[n-1]
		it, ok := run.item(e)
		if !ok {
			f.check(false, "item %d: not stored", n)
			continue
		}
		published := ""
		if !it.Published.IsZero() {
			published = it.Published.Truncate(time.Second).Format(time.RFC3339)
		}
		values := map[string]string{
			"title": it.Title, "link": it.URL, "canonical_url": it.CanonicalURL, "guid": e.GUID, "author": it.Author,
			"published": published, "raw": it.PublishedRaw, "text": it.Text,
		}
		for key, v := range want {
			if err := checkKey(values, key, v, run.now); err != nil {
				f.check(false, "item %d: %v", n, err)
			}
		}
	}
	return f.err()
}

// checkKey checks one demand on an item; see FORMAT.md of the cases.
func checkKey(values map[string]string, key string, want any, now time.Time) error {
	field, test := key, ""
	for _, suffix := range []string{"_any_of", "_not_contains", "_contains", "_not", "_regex", "_rule", "_lines_separate"} {
		if before, ok := strings.CutSuffix(key, suffix); ok {
			field, test = before, suffix
			break
		}
	}
	if key == "n" {
		return nil
	}
	got, ok := values[field]
	if !ok {
		return fmt.Errorf("no way to check %q", key)
	}
	if field == "published" && got == "" && test != "_not" {
		got = now.Format(time.RFC3339) // shown and sorted as fetched
	}
	bad := fmt.Errorf("%s %q, want %s %v", field, got, test, want)
	switch test {
	case "":
		if field == "raw" && want == "" {
			return nil
		}
		if got != want {
			return bad
		}
	case "_any_of":
		if field == "published" && slices.Contains(want.([]any), nil) && got == now.Format(time.RFC3339) {
			return nil
		}
		if !slices.Contains(want.([]any), any(got)) {
			return bad
		}
	case "_not":
		if slices.Contains(want.([]any), any(got)) {
			return bad
		}
	case "_contains", "_not_contains":
		for _, part := range want.([]any) {
			in := strings.Contains(ledger.Normalise(got), ledger.Normalise(part.(string)))
			if in != (test == "_contains") {
				return bad
			}
		}
	case "_regex":
		if !regexp.MustCompile(want.(string)).MatchString(got) {
			return bad
		}
	case "_rule": // only of dates: missing ones count as fetched
		if got != now.Format(time.RFC3339) {
			return bad
		}
	case "_lines_separate":
		for _, set := range want.([]any) {
			for _, line := range set.([]any) {
				if !slices.Contains(lines(got), line.(string)) {
					return bad
				}
			}
		}
	}
	return nil
}

func checkText(t *testing.T, c cases.Case) error {
	var in struct{ File string }
	c.Decode(t, c.Input, &in)
	x := decodeExpectation(t, c)
	raw := string(c.File(t, in.File))
	text := plain.FromHTML(raw)
	if strings.HasPrefix(x.InputIs, "plain text") {
		text = plain.FromText(raw)
	}
	var f failures
	if x.Lines != nil {
		// The cases share one file: their lines are a stretch of it.
		f.check(hasStretch(lines(text), x.Lines), "lines %q, want %q", lines(text), x.Lines)
	}
	for _, part := range x.TextContains {
		f.check(strings.Contains(text, part), "text %q, want it to contain %q", text, part)
	}
	for _, part := range x.TextNotContains {
		f.check(!strings.Contains(text, part), "text %q, want it not to contain %q", text, part)
	}
	return f.err()
}

func hasStretch(all, part []string) bool {
	for i := range all {
		if i+len(part) <= len(all) && slices.Equal(all[i:i+len(part)], part) {
			return true
		}
	}
	return false
}

func lines(s string) []string {
	var all []string
	for l := range strings.Lines(s) {
		if l = strings.TrimSpace(l); l != "" {
			all = append(all, l)
		}
	}
	return all
}

func (x expectation) checkURLs() error {
	var f failures
	for _, row := range x.Rows {
		got := feed.CanonicalURL(row.In)
		wanted := row.WantAny
		if row.Want != nil {
			wanted = append(wanted, *row.Want)
		}
		f.check(slices.Contains(wanted, got), "canonical of %q: %q, want %q", row.In, got, wanted)
		f.check(feed.CanonicalURL(got) == got, "canonical of %q is not its own canonical: %q", got, feed.CanonicalURL(got))
	}
	return f.err()
}

// failures collects what does not hold.
type failures []error

func (f *failures) check(ok bool, format string, args ...any) {
	if !ok {
		*f = append(*f, fmt.Errorf(format, args...))
	}
}

func (f failures) err() error { return errors.Join(f...) }
