package feed

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/mmcdole/gofeed/atom"
	"github.com/mmcdole/gofeed/rss"

	"vesti.nixg.ru/crawl/decode"
	"vesti.nixg.ru/ledger"
)

// ParseOptions say what Parse cannot know from the bytes. The zero value is
// sound.
type ParseOptions struct {
	ContentType string         // the HTTP header
	URL         string         // that answered: the base of relative links
	Zone        *time.Location // of dates without one; nil for UTC
	DateOrder   DateOrder
	MaxBytes    int64 // of a body that turns out to be a gzip file; default 10 MiB
}

// Document is a feed as it was understood. Texts are plain, links absolute.
type Document struct {
	Format      string // rss, rdf, atom, cdf, json
	Encoding    string // that the bytes were in
	Cut         bool   // the document breaks off; what was whole before is in Entries
	Truncated   bool   // it was cut, or holds more entries than are read: Entries is not all
	Listed      int    // entries in the document, those that are not read too
	Title       string
	Description string
	Link        string // the site
	ID          string
	Author      string
	Language    string
	Updated     time.Time // zero for unknown
	UpdatedRaw  string    // as written
	Entries     []Entry   // in the document's order
}

// Entry is one entry of a document.
type Entry struct {
	GUID         string // "" for none
	Link         string // a web address; "" for none
	Title        string
	Author       string // names, parted by ", "
	Published    time.Time
	PublishedRaw string // as written
	Content      Text   // the full text
	Summary      Text
	Language     string
	Categories   []string
	Media        []string // addresses of enclosures

	key         ledger.ItemKey
	fingerprint ledger.Hash
}

// Text is a text as a document gave it.
type Text struct {
	Value string // markup where it is HTML
	kind  textKind
}

const defaultMaxBytes = 10 << 20

// Parse reads a feed of any kind. It fails with a *NotFeedError where the body
// is something else, and with a *BrokenError where it is a feed that cannot be
// read.
func Parse(body []byte, opts ParseOptions) (*Document, error) {
	if opts.MaxBytes <= 0 {
		opts.MaxBytes = defaultMaxBytes
	}
	text, encoding := decode.Text(body, opts.ContentType, opts.MaxBytes)
	m := mapper{zone: opts.Zone, order: opts.DateOrder}
	if u, err := url.Parse(opts.URL); err == nil && u.IsAbs() {
		m.base = u
	}
	doc, err := m.parse(text)
	if err != nil {
		return nil, err
	}
	doc.Encoding = encoding
	return doc, nil
}

// BrokenError is a feed that cannot be read.
type BrokenError struct{ Err error }

// Error says what the parser said.
func (e *BrokenError) Error() string { return fmt.Sprintf("the feed cannot be read: %v", e.Err) }

// Unwrap returns the parser's error.
func (e *BrokenError) Unwrap() error { return e.Err }

// mapper turns what gofeed gives into a Document.
type mapper struct {
	base  *url.URL // of relative links; nil for none
	zone  *time.Location
	order DateOrder
}

func (m *mapper) parse(text string) (*Document, error) {
	head := strings.TrimLeft(text, " \t\r\n\uFEFF")
	if strings.HasPrefix(head, "{") {
		return m.parseJSON(head)
	}
	r, err := repair(text)
	if err == nil && (r.entries > 0 || !r.wrapped) {
		return m.parseXML(r)
	}
	// A browser's view of a feed: the whole of it escaped inside a page.
	if inner := unescaped(text); inner != "" {
		if r, err := repair(inner); err == nil && r.entries > 0 {
			return m.parseXML(r)
		}
	}
	return nil, notFeed(head)
}

func (m *mapper) parseXML(r repaired) (doc *Document, err error) {
	defer func() {
		if p := recover(); p != nil {
			doc, err = nil, &BrokenError{Err: fmt.Errorf("the parser panicked: %v", p)}
		}
	}()
	if r.dialect == dialectAtom {
		f, err := (&atom.Parser{}).Parse(bytes.NewReader(r.xml))
		if err != nil {
			return nil, &BrokenError{Err: err}
		}
		doc = m.fromAtom(f)
	} else {
		f, err := (&rss.Parser{}).Parse(bytes.NewReader(r.xml))
		if err != nil {
			return nil, &BrokenError{Err: err}
		}
		doc = m.fromRSS(f)
	}
	doc.Format, doc.Cut, doc.Truncated = r.format, r.cut, r.cut || r.left > 0
	doc.Listed = len(doc.Entries) + r.left
	if doc.Language == "" {
		doc.Language = r.lang
	}
	return doc, nil
}

// unescaped returns the feed that a page shows as text, "" for none.
func unescaped(page string) string {
	for _, start := range []string{"&lt;?xml", "&lt;rss", "&lt;feed", "&lt;rdf:RDF"} {
		if i := strings.Index(page, start); i >= 0 {
			inner, _, _ := strings.Cut(page[i:], "</pre>")
			return decodeReferences(inner)
		}
	}
	return ""
}

// date returns the first of the candidates that can be read, and the first
// that was given.
func (m *mapper) date(candidates ...string) (t time.Time, raw string) {
	for _, c := range candidates {
		c = strings.TrimSpace(c)
		if c == "" {
			continue
		}
		if raw == "" {
			raw = c
		}
		if t, ok := ParseDate(c, m.zone, m.order); ok {
			return t, c
		}
	}
	return time.Time{}, raw
}
