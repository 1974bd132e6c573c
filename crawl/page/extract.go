package page

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/andybalholm/cascadia"
	"github.com/markusmobius/go-trafilatura"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"vesti.nixg.ru/crawl/decode"
	"vesti.nixg.ru/crawl/plain"
	"vesti.nixg.ru/ledger"
)

// Input is a page as it was fetched.
type Input struct {
	Body        []byte
	ContentType string // the HTTP header, "" for none
	URL         string // that answered
	Selector    string // CSS, of the article's text; "" leaves it to the extraction
}

// maxNodes is the largest tree of a page that is read: a larger one is no
// article, and the extraction would take more than its time. That its elements
// are not nested too deep is the parser's care.
const maxNodes = 100_000

// Extract returns the main text of a page. It fails with errors matching
// ErrNotPage, ErrNoText and ErrSlow, and where the extraction panicked.
func Extract(in Input) (p Page, err error) {
	defer func() {
		if v := recover(); v != nil {
			p, err = Page{}, fmt.Errorf("the extraction panicked: %v", v)
		}
	}()
	if !isHTML(in) {
		return Page{}, fmt.Errorf("%w: %s", ErrNotPage, contentType(in))
	}
	doc, err := html.Parse(strings.NewReader(Decode(in.Body, in.ContentType)))
	if err != nil {
		return Page{}, fmt.Errorf("%w: %w", ErrSlow, err)
	}
	if isLarge(doc) {
		return Page{}, fmt.Errorf("%w: more than %d elements and texts", ErrSlow, maxNodes)
	}
	p = Page{URL: in.URL, Canonical: canonical(doc, in.URL)}
	if text := selected(doc, in.Selector); text != "" {
		p.Text, p.From = text, ledger.TextSelector
		return p, nil
	}
	if p.Text, err = mainText(doc, in.URL); err != nil {
		return Page{}, err
	}
	p.From = ledger.TextPage
	return p, nil
}

// mainText runs the extraction. Its own reading of dates is off: it takes much
// time, and entries have theirs from the feed.
func mainText(doc *html.Node, pageURL string) (string, error) {
	opts := trafilatura.Options{EnableFallback: true, HtmlDateMode: trafilatura.Disabled}
	if u, err := url.Parse(pageURL); err == nil && u.IsAbs() {
		opts.OriginalURL = u
	}
	dropNoscript(doc)
	links := linkLines(doc)
	res, err := trafilatura.ExtractDocument(doc, opts)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoText, err)
	}
	text := ""
	if res.ContentNode != nil {
		text = plainNode(res.ContentNode)
	}
	if text == "" {
		text = plain.FromText(res.ContentText)
	}
	if text == "" {
		return "", ErrNoText
	}
	return withoutBoilerplate(text, links), nil
}

// dropNoscript takes out what a page says to readers whose browser runs no
// scripts, which in a page made by scripts is all the text there is.
func dropNoscript(doc *html.Node) {
	var all []*html.Node
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && n.DataAtom == atom.Noscript {
			all = append(all, n)
		}
	}
	for _, n := range all {
		n.Parent.RemoveChild(n)
	}
}

// selected returns the text of what the selector picks, each element once.
func selected(doc *html.Node, selector string) string {
	if selector == "" {
		return ""
	}
	sel, err := cascadia.ParseGroup(selector)
	if err != nil {
		return ""
	}
	var parts []string
	var last *html.Node
	for _, n := range cascadia.QueryAll(doc, sel) {
		if last != nil && contains(last, n) {
			continue
		}
		last = n
		if text := plainNode(n); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n\n")
}

func contains(outer, n *html.Node) bool {
	for ; n != nil; n = n.Parent {
		if n == outer {
			return true
		}
	}
	return false
}

func plainNode(n *html.Node) string {
	var b bytes.Buffer
	if err := html.Render(&b, n); err != nil {
		return ""
	}
	return plain.FromHTML(b.String())
}

// maxUnpacked is the most of a page that turns out to be a gzip file, in bytes.
const maxUnpacked = 4 << 20

// Decode returns a page as UTF-8, by its bytes and what is said of them.
func Decode(body []byte, contentType string) string {
	text, _ := decode.Text(body, contentType, maxUnpacked)
	return text
}

func contentType(in Input) string {
	if t, _, err := mime.ParseMediaType(in.ContentType); err == nil {
		return t
	}
	t, _, _ := strings.Cut(http.DetectContentType(in.Body), ";")
	return t
}

// isHTML looks at the label, and at the bytes where it says nothing of use.
func isHTML(in Input) bool {
	switch t := contentType(in); {
	case t == "text/html", t == "application/xhtml+xml":
		return true
	case strings.HasPrefix(t, "image/"), strings.HasPrefix(t, "audio/"), strings.HasPrefix(t, "video/"), t == "application/pdf":
		return false
	default:
		return strings.HasPrefix(http.DetectContentType(in.Body), "text/html")
	}
}

func isLarge(doc *html.Node) bool {
	nodes := 0
	for range doc.Descendants() {
		if nodes++; nodes > maxNodes {
			return true
		}
	}
	return false
}
