package feed

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"vesti.nixg.ru/crawl/plain"
	"vesti.nixg.ru/ledger/ledgertest/cases"
)

// FuzzParse: no input panics or hangs; texts are inert, links are web
// addresses, and the same bytes give the same keys.
func FuzzParse(f *testing.F) {
	for _, b := range cases.FeedSeeds(f) {
		f.Add(b)
	}
	for _, s := range []string{
		`<rss><channel><item><title>Ёлка убрана</title><pubDate>10 марта 2025</pubDate><description>&lt;p&gt;a</description></item></channel></rss>`, `{"version":"https://jsonfeed.org/version/1","items":[{"id":1,"content_html":"<p>x"},{"id":`,
		`<feed><entry><title type="xhtml"><div>a</feed>`, `<rss><item><title><![CDATA[a]]`, `<channel href="x"><item href="y">`,
		`<rss><channel><item><link>a<guid>b</item></rss>`, `<!DOCTYPE a [<!ENTITY b "c">]><rss><title>&b;`, `<a:feed xmlns:a="http://www.w3.org/2005/Atom"><a:entry/>`,
		`<html><pre>&lt;rss&gt;&lt;channel&gt;&lt;item&gt;&lt;title&gt;x&lt;/title&gt;&lt;/item&gt;`, `<rss><item a='x><b c="d`,
	} {
		f.Add([]byte(s))
	}
	now := time.Date(2025, 3, 10, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, body []byte) {
		opts := ParseOptions{URL: "https://feed.example.org/rss.xml", MaxBytes: 1 << 16}
		doc, err := Parse(body, opts)
		if err != nil {
			return
		}
		again, err := Parse(body, opts)
		if err != nil {
			t.Fatalf("the second time: %v", err)
		}
		identify("s", doc.Entries)
		identify("s", again.Entries)
		for i, e := range doc.Entries {
			text, _ := e.text()
			for _, s := range []string{e.Title, e.Author, text} {
				checkInert(t, s)
			}
			for _, l := range append([]string{e.Link}, e.Media...) {
				if l != "" && !strings.HasPrefix(l, "http://") && !strings.HasPrefix(l, "https://") {
					t.Fatalf("link %q", l)
				}
			}
			if e.key == "" || e.key != again.Entries[i].key || e.fingerprint != again.Entries[i].fingerprint {
				t.Fatalf("keys %q and %q", e.key, again.Entries[i].key)
			}
		}
		if n := len(newest(doc.Entries, 3, now)); n > 3 {
			t.Fatalf("%d entries of at most 3", n)
		}
	})
}

func checkInert(t *testing.T, s string) {
	t.Helper()
	if !utf8.ValidString(s) {
		t.Fatalf("invalid UTF-8: %q", s)
	}
	for _, r := range s {
		if !plain.Inert(r) {
			t.Fatalf("%U in %q", r, s)
		}
	}
}

// FuzzParseDate: a date that is read is one that a feed can have, in UTC, and
// its own form reads as itself.
func FuzzParseDate(f *testing.F) {
	for _, s := range []string{
		"Mon, 10 Mar 2025 12:30:00 +0300", "2025-03-10T12:30:00Z", "5 марта 2025 г., 09:30", "10/Mar/2025:12:30:00 +0300", "05/03/25",
		"Sun Mar 09 2025 15:45:00 GMT+0300 (Moscow)", "March 10th, 2025 3pm", "20250310T123000Z", "2025-069", "-", "1741609800", "12:", "1:2:3.4.5",
	} {
		f.Add(s, "")
	}
	f.Fuzz(func(t *testing.T, raw, order string) {
		got, ok := ParseDate(raw, nil, DateOrder(order))
		if !ok {
			if !got.IsZero() {
				t.Fatalf("no date, but %v", got)
			}
			return
		}
		if got.Location() != time.UTC || isZeroDate(got) {
			t.Fatalf("%q: %v", raw, got)
		}
		if again, ok := ParseDate(got.Format(time.RFC3339Nano), nil, ""); !ok || !again.Equal(got) {
			t.Fatalf("%q: %v, read again %v", raw, got, again)
		}
	})
}

// FuzzCanonicalURL: a canonical address is its own canonical address, and a web
// address without tracking.
func FuzzCanonicalURL(f *testing.F) {
	for _, s := range []string{
		"https://site.example.org/a?utm_source=rss&id=7#x", "HTTP://A:80/?&&ref", "http://[::1]:80/ж?ж#!ж", "//x", "www.x.org", "https://a/%zz%",
		"https://u:p@h:/?a;b&amp;utm_x=1", "http://a/#/?utm_source=1", " https://a\t/b\n ", "https://a?#", "https://://",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c := CanonicalURL(s)
		if c == "" {
			return
		}
		if again := CanonicalURL(c); again != c {
			t.Fatalf("%q: %q, again %q", s, c, again)
		}
		if !isWeb(c) || strings.ContainsAny(c, " \t\r\n<>\"") {
			t.Fatalf("%q: %q", s, c)
		}
	})
}
