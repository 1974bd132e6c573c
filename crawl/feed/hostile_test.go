package feed

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestHostileDocumentsTakeLinearTime: a long document, made
// to be slow or to grow, takes a time and memory in proportion to its length.
// The bounds are for machines under load and with the race detector; quadratic
// work would take minutes to days, and an entity that multiplies would take all
// memory.
func TestHostileDocumentsTakeLinearTime(t *testing.T) {
	const (
		size     = hostileSize
		mostTime = 15 * time.Second
		mostMiB  = 250 // allocated in all, most of it one after the other
	)
	const jsonItems = `{"version":"https://jsonfeed.org/version/1","items":[`
	repeat := func(piece string) string { return strings.Repeat(piece, size/len(piece)) }
	half := func(piece string) string { return strings.Repeat(piece, size/2/len(piece)) }
	// numbered repeats a piece with a number in it.
	numbered := func(piece string, most int) string {
		var b strings.Builder
		for i := 0; b.Len() < most; i++ {
			fmt.Fprintf(&b, piece, i)
		}
		return b.String()
	}
	for name, doc := range map[string]string{
		"open tags":         "<rss><channel>" + repeat("<a>"),
		"open items":        "<rss><channel>" + repeat("<item>"),
		"open titles":       "<rss><channel><item>" + repeat("<title>"),
		"open quotes":       "<rss><channel>" + repeat(`<a b="`),
		"mixed quotes":      "<rss><channel>" + repeat(`<a b="'>`),
		"open end tags":     "<rss><channel>" + repeat("</a ") + ">",
		"comments":          "<rss><channel>" + repeat("<!--"),
		"doctypes":          "<rss><channel>" + repeat("<!a>"),
		"open subsets":      "<rss><channel>" + repeat("<!a[>"),
		"brackets":          "<rss><channel>" + repeat("<![CDATA["),
		"less-than":         "<rss><channel><item><title>" + repeat("< "),
		"ampersands":        "<rss><channel><item><title>" + repeat("&"),
		"references":        "<rss><channel><item><title>" + repeat("&amp;"),
		"long names":        "<rss><channel>" + repeat("<"+strings.Repeat("a", 1000)+">"),
		"one attribute":     `<rss><channel><item a="` + repeat("a") + `"><title>x</title></item></channel></rss>`,
		"attributes":        "<rss><channel><item " + repeat(`a="b" `) + "><title>x</title></item></channel></rss>",
		"NULs":              "<rss><channel><item><title>" + repeat("\x00") + "</title></item></channel></rss>",
		"end tags":          "<rss><channel>" + repeat("</a>"),
		"nested elements":   "<rss><channel><item><description>" + repeat("<div>"),
		"nested fields":     "<rss><channel><item><description>" + half("<a>") + half("</a>") + "</description></item></channel></rss>",
		"nested containers": "<rss><channel><item>" + half("<media:group>") + half("</x>"),
		"bases":             "<rss><channel><item>" + repeat(`<media:group xml:base="a/">`),
		"html in text":      "<rss><channel><item><description><![CDATA[" + repeat("<b ") + "]]></description></item></channel></rss>",
		"unknown tags":      "<rss><channel><item><description><![CDATA[" + repeat("<x>") + "]]></description></item></channel></rss>",
		"svgs":              "<rss><channel><item><description><![CDATA[" + repeat("<svg>") + "]]></description></item></channel></rss>",
		"nested html":       "<rss><channel><item><description><![CDATA[" + repeat("<div><p><ul><li>") + "]]></description></item></channel></rss>",
		"unread html":       "<rss><channel><item><description><![CDATA[" + repeat("<svg><template><object><audio><video><canvas><select>") + "]]></description></item></channel></rss>",
		"namespaces":        "<rss><channel>" + repeat(`<a xmlns:b="c">`),
		"many namespaces":   "<rss" + numbered(` xmlns:n%d="u"`, size/2) + "><channel><item>" + half("<a/>") + "</item></channel></rss>",
		"entities":          "<!DOCTYPE a [" + repeat(`<!ENTITY a "&a;&a;">`),
		"open entities":     "<!DOCTYPE a [" + repeat("<!ENTITY\t") + "]><rss>",
		"an entity that grows": `<!DOCTYPE a [<!ENTITY a "` + strings.Repeat("a", 4000) + `">]><rss><channel><item><title>` + half("&a;") +
			"</title></item></channel></rss>",
		"a billion laughs": `<!DOCTYPE a [<!ENTITY a "laughs">` + numbered(`<!ENTITY b%d "&a;&a;&a;&a;&a;&a;&a;&a;">`, 4<<10) + "]><rss><channel><item><title>" +
			half("&b9;") + "</title></item></channel></rss>",
		"items":              "<rss><channel>" + repeat("<item/>"),
		"items with a title": "<rss><channel>" + repeat("<item><title>a</title></item>"),
		"entries":            "<feed xmlns='http://www.w3.org/2005/Atom'>" + repeat("<entry/>"),
		"authors":            "<rss><channel><item>" + numbered("<dc:creator>%d</dc:creator>", size) + "</item></channel></rss>",
		"parts of an author": "<rss><channel><item><author>" + repeat("a<b/>") + "</author></item></channel></rss>",
		"enclosures":         "<rss><channel><item>" + numbered(`<enclosure url="http://a/%d"/>`, size) + "</item></channel></rss>",
		"json items":         jsonItems + repeat("{},") + "{}]}",
		"json nulls":         jsonItems + repeat("null,") + "{}]}",
		"json numbers":       jsonItems + repeat(`{"id":1},`) + "{}]}",
		"json authors":       jsonItems + `{"authors":[` + numbered(`{"name":"%d"},`, size) + "{}]}]}",
		"json attachments":   jsonItems + `{"attachments":[` + numbered(`{"url":"http://a/%d"},`, size) + "{}]}]}",
		"json objects":       jsonItems + repeat(`{"a":`),
		"json lists":         jsonItems + repeat("["),
		"json strings":       jsonItems + repeat(`"\"`),
		"digits":             "<rss><channel><item><pubDate>" + repeat("1 ") + "</pubDate></item></channel></rss>",
		"page in a page":     "<html>" + repeat("&lt;rss&gt;"),
		"feed inside html":   "<html>" + repeat("<script><a b='<rss'>"),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			done := make(chan struct{})
			go func() {
				defer close(done)
				readAll(doc)
			}()
			select {
			case <-done:
			case <-time.After(mostTime):
				t.Fatalf("more than %v for %d bytes", mostTime, len(doc))
			}
			runtime.ReadMemStats(&after)
			allocated := (after.TotalAlloc - before.TotalAlloc) >> 20
			if allocated > mostMiB {
				t.Errorf("%d MiB allocated for %d bytes", allocated, len(doc))
			}
			t.Logf("%v, %d MiB", time.Since(start), allocated)
		})
	}
}

// readAll does with a document what a run does before it asks the ledger.
func readAll(doc string) {
	d, err := Parse([]byte(doc), ParseOptions{URL: "https://feed.example.org/"})
	if err != nil {
		return
	}
	identify("s", d.Entries)
	for _, e := range newest(d.Entries, 0, time.Now()) {
		e.text()
	}
}

func TestLongListsOfAnItemAreCut(t *testing.T) {
	list := func(element string, n int) string { return strings.Repeat(element+",", n-1) + element }
	doc := `{"version":"https://jsonfeed.org/version/1","items":[{"id":"1","tags":[` + list(`"a,]"`, 100) + `],"url":"http://x.org/1","authors":[` + list(`{"name":"A"}`, 40) +
		`],"title":"t"},{"id":"2","tags":[` + list(`"b"`, maxOfAName) + `],"title":"u"}]}`
	d := mustParse(t, doc)
	if len(d.Entries) != 2 || d.Truncated {
		t.Fatalf("%d entries", len(d.Entries))
	}
	for i, want := range []Entry{{GUID: "1", Title: "t", Link: "http://x.org/1", Author: "A"}, {GUID: "2", Title: "u"}} {
		e := d.Entries[i]
		if e.GUID != want.GUID || e.Title != want.Title || e.Link != want.Link || e.Author != want.Author || len(e.Categories) != maxOfAName {
			t.Errorf("%+v", e)
		}
	}
}

// A document with more entries than are read gives those at both of its ends,
// and says so.
func TestOfTooManyEntriesTheEndsAreRead(t *testing.T) {
	const listed = maxEntries + 1000
	for name, c := range map[string]struct{ head, item, tail string }{
		"rss":  {"<rss><channel><title>t</title>", "<item><title>%d</title></item>", "</channel></rss>"},
		"atom": {`<feed xmlns="http://www.w3.org/2005/Atom">`, "<entry><title>%d</title></entry>", "</feed>"},
		"json": {`{"version":"https://jsonfeed.org/version/1","items":[null`, `,{"title":"%d","tags":["a","b"]}`, `],"title":"t"}`},
		"json to be repaired": {
			`{"version":"https://jsonfeed.org/version/1","items":[null`, `,{"title":"%d","id":7,"tags":["a","b"]}`, `],"title":"t"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			b.WriteString(c.head)
			for i := range listed {
				fmt.Fprintf(&b, c.item, i)
			}
			b.WriteString(c.tail)
			doc, err := Parse([]byte(b.String()), ParseOptions{})
			if err != nil {
				t.Fatal(err)
			}
			n := len(doc.Entries)
			if n < maxEntries-1 || n > maxEntries || doc.Listed < listed || doc.Listed > listed+1 || !doc.Truncated {
				t.Fatalf("%d entries of %d, truncated: %v", n, doc.Listed, doc.Truncated)
			}
			for i, want := range map[int]string{0: "0", n/2 - 1: fmt.Sprint(n/2 - 1), n - maxEntries/2: fmt.Sprint(listed - maxEntries/2), n - 1: fmt.Sprint(listed - 1)} {
				if got := doc.Entries[i].Title; got != want {
					t.Errorf("entry %d: %q, want %q", i, got, want)
				}
			}
		})
	}
}
