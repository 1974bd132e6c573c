package telegram

import (
	"net/url"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// WithLink is how both ways write a link: its text, and its address after it
// where the text does not show it.
func WithLink(text, href string) string {
	if !hidden(text, href) {
		return text
	}
	return text + " (" + href + ")"
}

// hidden reports whether a reader of text alone would not know href.
func hidden(text, href string) bool {
	h := strings.TrimSpace(href)
	lower := strings.ToLower(h)
	if !strings.HasPrefix(lower, "http://") && !strings.HasPrefix(lower, "https://") {
		return false // "?q=%23tag", "tg://", "mailto:" of an address that is shown
	}
	shown := bareLink(text)
	if shown == "" {
		return false // nothing to click at
	}
	if name, ok := strings.CutPrefix(shown, "@"); ok {
		return bareLink(h) != "t.me/"+name
	}
	return bareLink(h) != shown
}

// bareLink is what two spellings of one address have in common.
func bareLink(s string) string {
	s = strings.TrimSpace(s)
	if plain, err := url.PathUnescape(s); err == nil {
		s = plain
	}
	s = strings.ToLower(s)
	s = strings.TrimPrefix(strings.TrimPrefix(s, "https://"), "http://")
	return strings.TrimSuffix(s, "/")
}

// Tidy removes blanks at the ends of lines and blank lines at both ends.
func Tidy(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " \t\u00a0")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n ")
}

// messageText is the plain text of a message's markup: what MTProto calls its
// message, with hidden links written out.
func messageText(n *html.Node) string {
	var b strings.Builder
	writeText(&b, n)
	return Tidy(b.String())
}

func writeText(b *strings.Builder, n *html.Node) {
	switch {
	case n.Type == html.TextNode:
		b.WriteString(n.Data)
		return
	case n.Type != html.ElementNode:
		return
	case n.DataAtom == atom.Br:
		b.WriteByte('\n')
		return
	case n.DataAtom == atom.A:
		var inner strings.Builder
		writeChildren(&inner, n)
		b.WriteString(WithLink(inner.String(), attr(n, "href")))
		return
	}
	block := n.DataAtom == atom.Blockquote || n.DataAtom == atom.Pre || n.DataAtom == atom.Div || n.DataAtom == atom.P
	if block {
		breakLine(b)
	}
	writeChildren(b, n)
	if block {
		breakLine(b)
	}
}

func writeChildren(b *strings.Builder, n *html.Node) {
	for c := range n.ChildNodes() {
		writeText(b, c)
	}
}

func breakLine(b *strings.Builder) {
	if s := b.String(); s != "" && !strings.HasSuffix(s, "\n") {
		b.WriteByte('\n')
	}
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
