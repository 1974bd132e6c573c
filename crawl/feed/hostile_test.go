package feed

import (
	"strings"
	"testing"
	"time"
)

// TestHostileDocumentsTakeLinearTime: a document made to be slow takes a time in
// proportion to its length. The bound is for machines under load; quadratic
// work would take minutes.
func TestHostileDocumentsTakeLinearTime(t *testing.T) {
	const size = 1 << 19
	for name, c := range map[string]struct{ head, piece string }{
		"open tags":        {"<rss><channel>", "<a>"},
		"open items":       {"<rss><channel>", "<item>"},
		"open titles":      {"<rss><channel><item>", "<title>"},
		"open quotes":      {"<rss><channel>", `<a b="`},
		"mixed quotes":     {"<rss><channel>", `<a b="'>`},
		"comments":         {"<rss><channel>", "<!--"},
		"doctypes":         {"<rss><channel>", "<!a>"},
		"brackets":         {"<rss><channel>", "<![CDATA["},
		"less-than":        {"<rss><channel><item><title>", "< "},
		"ampersands":       {"<rss><channel><item><title>", "&"},
		"references":       {"<rss><channel><item><title>", "&amp;"},
		"long names":       {"<rss><channel>", "<" + strings.Repeat("a", 1000) + ">"},
		"end tags":         {"<rss><channel>", "</a>"},
		"nested elements":  {"<rss><channel><item><description>", "<div>"},
		"html in text":     {"<rss><channel><item><description><![CDATA[", "<b "},
		"unknown tags":     {"<rss><channel><item><description><![CDATA[", "<x>"},
		"svgs":             {"<rss><channel><item><description><![CDATA[", "<svg>"},
		"namespaces":       {"<rss><channel>", `<a xmlns:b="c">`},
		"entities":         {"<!DOCTYPE a [", `<!ENTITY a "&a;&a;">`},
		"json objects":     {`{"version":"https://jsonfeed.org/version/1","items":[`, `{"a":`},
		"json commas":      {`{"version":"https://jsonfeed.org/version/1","items":[`, `{},`},
		"json strings":     {`{"version":"https://jsonfeed.org/version/1","items":[`, `"\"`},
		"digits":           {"<rss><channel><item><pubDate>", "1 "},
		"page in a page":   {"<html>", "&lt;rss&gt;"},
		"feed inside html": {"<html>", "<script><a b='<rss'>"},
	} {
		t.Run(name, func(t *testing.T) {
			doc := c.head + strings.Repeat(c.piece, size/len(c.piece))
			start := time.Now()
			d, err := Parse([]byte(doc), ParseOptions{})
			if err == nil {
				for i := range d.Entries {
					d.Entries[i].text()
				}
			}
			if took := time.Since(start); took > 15*time.Second {
				t.Errorf("%v for half a megabyte", took)
			} else {
				t.Log(took)
			}
		})
	}
}
