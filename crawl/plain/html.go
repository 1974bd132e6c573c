package plain

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// FromHTML returns the text of an HTML fragment or document. Paragraphs are
// parted by an empty line; list items, table rows and other blocks stand on
// lines of their own; inline elements neither break nor part words; scripts,
// styles and what else is not read is left out with all it holds. White space
// is as a browser would show it.
func FromHTML(s string) string {
	if strings.IndexByte(s, '<') < 0 && strings.IndexByte(s, '&') < 0 {
		return Line(s)
	}
	var open map[atom.Atom]bool // elements that are never closed
	for {
		c := converter{unclosed: open}
		c.w.b.Grow(len(s) / 2)
		c.run(s)
		if c.skip == 0 || isRaw(c.skip) {
			return c.w.b.String()
		}
		// An element that should be left out has no end: it swallowed the rest.
		// Read its content instead. Each element gets here once.
		if open == nil {
			open = map[atom.Atom]bool{}
		}
		open[c.skip] = true
	}
}

type converter struct {
	w        writer
	pre      int
	skip     atom.Atom // the element that is being left out
	depth    int       // of elements of its name
	unclosed map[atom.Atom]bool
}

func (c *converter) run(s string) {
	z := html.NewTokenizer(strings.NewReader(s))
	z.AllowCDATA(true)
	for {
		switch z.Next() {
		case html.ErrorToken:
			return
		case html.TextToken:
			if c.skip == 0 {
				c.text(string(z.Text()))
			}
		case html.StartTagToken:
			name, more := z.TagName()
			a := atom.Lookup(name)
			c.start(a)
			c.emoji(a, z, more)
		case html.EndTagToken:
			name, _ := z.TagName()
			c.end(atom.Lookup(name))
		case html.SelfClosingTagToken:
			// XHTML's empty elements: <script/> opens nothing here.
			z.NextIsNotRawText()
			name, more := z.TagName()
			a := atom.Lookup(name)
			c.empty(a)
			c.emoji(a, z, more)
		case html.CommentToken, html.DoctypeToken:
		}
	}
}

func (c *converter) text(s string) {
	if c.pre > 0 {
		c.w.lines(s)
	} else {
		c.w.flow(s)
	}
}

func (c *converter) start(a atom.Atom) {
	if c.skip != 0 {
		if a == c.skip {
			c.depth++
		}
		return
	}
	if notRead(a) && !c.unclosed[a] {
		c.skip, c.depth = a, 1
		return
	}
	if a == atom.Pre {
		c.pre++
	}
	c.empty(a)
}

// empty is what a tag does by itself, whether or not something is inside.
func (c *converter) empty(a atom.Atom) {
	if c.skip != 0 {
		return
	}
	switch a {
	case atom.Br:
		c.w.newline()
	case atom.Td, atom.Th, atom.Img, atom.Option:
		c.w.space = true
	default:
		c.w.breakLines(blockBreaks(a))
	}
}

// emoji writes the character that a picture stands for, as weblogs show emoji.
func (c *converter) emoji(a atom.Atom, z *html.Tokenizer, more bool) {
	if a != atom.Img || c.skip != 0 {
		return
	}
	alt, isEmoji := "", false
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		switch string(key) {
		case "alt":
			alt = string(value)
		case "class":
			isEmoji = strings.Contains(string(value), "emoji") || strings.Contains(string(value), "smiley")
		}
	}
	if isEmoji {
		c.w.flow(alt)
	}
}

func (c *converter) end(a atom.Atom) {
	if c.skip != 0 {
		if a == c.skip {
			if c.depth--; c.depth == 0 {
				c.skip = 0
			}
		}
		return
	}
	if a == atom.Pre && c.pre > 0 {
		c.pre--
	}
	c.w.breakLines(blockBreaks(a))
}

// blockBreaks is the number of line breaks around the element: 2 for those
// with a margin, 1 for other blocks, 0 for inline ones.
func blockBreaks(a atom.Atom) int {
	switch a {
	case atom.P, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Blockquote, atom.Pre,
		atom.Ul, atom.Ol, atom.Dl, atom.Table, atom.Figure, atom.Hr, atom.Article, atom.Section:
		return 2
	case atom.Div, atom.Li, atom.Dt, atom.Dd, atom.Tr, atom.Caption, atom.Figcaption, atom.Address,
		atom.Header, atom.Footer, atom.Main, atom.Nav, atom.Aside, atom.Details, atom.Summary,
		atom.Fieldset, atom.Legend, atom.Form, atom.Center, atom.Body, atom.Hgroup, atom.Menu, atom.Dir:
		return 1
	default:
		return 0
	}
}

// notRead reports whether the element's content is no text for a reader.
func notRead(a atom.Atom) bool {
	switch a {
	case atom.Svg, atom.Template, atom.Object, atom.Applet, atom.Audio, atom.Video, atom.Canvas,
		atom.Select, atom.Datalist, atom.Head, atom.Annotation:
		return true
	default:
		return isRaw(a)
	}
}

// isRaw reports whether the tokenizer reads the element's content as text up
// to its end tag. Without one a browser takes the rest of the document.
func isRaw(a atom.Atom) bool {
	switch a {
	case atom.Script, atom.Style, atom.Iframe, atom.Noembed, atom.Noframes, atom.Noscript, atom.Textarea, atom.Title:
		return true
	default:
		return false
	}
}
