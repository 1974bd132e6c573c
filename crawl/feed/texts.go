package feed

import (
	"slices"
	"strings"
	"unicode/utf8"

	"vesti.nixg.ru/crawl/plain"
)

// newText takes the mark off a text that went through gofeed.
func newText(value string) Text {
	value = strings.TrimSpace(value)
	switch r, size := utf8.DecodeRuneInString(value); r {
	case markPlain:
		return Text{Value: value[size:], kind: kindPlain}
	case markHTML:
		return Text{Value: value[size:], kind: kindHTML}
	default:
		return Text{Value: withoutCDATA(value)}
	}
}

// withoutCDATA takes off the marks of a section that was written or escaped
// within another one.
func withoutCDATA(value string) string {
	inner, ok := strings.CutPrefix(value, "<![CDATA[")
	if inner, closed := strings.CutSuffix(inner, "]]>"); ok && closed {
		return strings.TrimSpace(inner)
	}
	return value
}

// firstText returns the first of the texts that says something.
func firstText(values ...string) Text {
	for _, v := range values {
		if t := newText(v); strings.TrimSpace(t.Value) != "" {
			return t
		}
	}
	return Text{}
}

// Plain returns the text without markup, with its paragraphs as lines.
func (t Text) Plain() string {
	if t.kind == kindPlain {
		return plain.FromText(t.Value)
	}
	if t.kind == kindHTML {
		return plain.FromHTML(t.Value)
	}
	text := plain.Guess(t.Value)
	if strings.HasPrefix(text, "<") && !plain.HasTag(t.Value) && plain.IsMarkedUp(text) {
		return plain.FromHTML(text) // markup that was escaped twice
	}
	return text
}

// Line returns the text as one line: a title.
func (t Text) Line() string {
	switch {
	case t.kind == kindPlain:
		return plain.Line(t.Value)
	case t.kind == kindHTML || plain.IsMarkedUp(t.Value):
		return plain.Line(plain.FromHTML(t.Value))
	default:
		return plain.Line(decodeTwice(t.Value))
	}
}

// decodeTwice resolves the references that are left in a title of RSS, which
// by the letter is plain text but often HTML: once, and once more where what
// comes out still holds some.
func decodeTwice(s string) string {
	once := decodeReferences(s)
	if once == s {
		return s
	}
	return decodeReferences(once)
}

// author returns the name in an author's text, which feeds write as
// "name@host (Name)", "Name (name@host)", "Name <name@host>" or just so.
func author(text string) string {
	s := newText(text).Line()
	if isPlaceholder(s) {
		return ""
	}
	for _, pair := range []string{"()", "<>"} {
		before, rest, ok := strings.Cut(s, pair[:1])
		inside, after, closed := strings.Cut(rest, pair[1:])
		if !ok || !closed || strings.TrimSpace(after) != "" {
			continue
		}
		before, inside = strings.TrimSpace(before), strings.TrimSpace(inside)
		switch {
		case strings.Contains(inside, "@") && before != "":
			return strings.Trim(before, `" `)
		case strings.Contains(before, "@") && inside != "":
			return inside
		}
	}
	return s
}

// authors joins the names of several authors, each once. A list that is longer
// than any byline is cut.
func authors(texts []string) string {
	var names []string
	for _, t := range texts[:min(len(texts), maxOfAName)] {
		name := author(t)
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}
