package feed

import "strings"

// scanner cuts a document that means to be XML into tokens and is never at a
// loss: what is no markup is text, and what the document's end cuts off is
// reported as cut. Names and texts are parts of the document, not copies.
type scanner struct {
	doc string
	pos int // of what comes next
	cut bool
	// noSubset: no bracket that a declaration opens is closed from here on, so that
	// nobody looks for one again.
	noSubset bool

	kind  tokenKind
	start int    // of the token
	text  string // of a text, raw; of CDATA, what is inside; of a DOCTYPE, all
	name  string // of a tag, with its prefix, as written
	attrs string // of a start tag: what stands between its name and its end
	empty bool   // a start tag that closes itself
}

type tokenKind uint8

const (
	tokenEnd tokenKind = iota // of the document
	tokenText
	tokenCDATA
	tokenOpen
	tokenClose
	tokenDoctype
	tokenOther // comments, processing instructions
)

// next reads the next token and returns its kind.
func (s *scanner) next() tokenKind {
	s.start = s.pos
	rest := s.doc[s.pos:]
	if rest == "" {
		s.kind = tokenEnd
		return s.kind
	}
	if rest[0] != '<' {
		n := strings.IndexByte(rest, '<')
		if n < 0 {
			n = len(rest)
		}
		return s.give(tokenText, rest[:n], n)
	}
	switch {
	case len(rest) == 1:
		s.cut = true
		return s.give(tokenOther, "", 1)
	case rest[1] == '?':
		return s.until(rest, 2, "?>", tokenOther)
	case strings.HasPrefix(rest, "<!--"):
		return s.until(rest, 4, "-->", tokenOther)
	case len(rest) >= 9 && strings.EqualFold(rest[:9], "<![CDATA["):
		return s.until(rest, 9, "]]>", tokenCDATA)
	case rest[1] == '!':
		return s.doctype(rest)
	case rest[1] == '/' && len(rest) > 2 && isNameStart(rest[2]):
		return s.closeTag(rest)
	case isNameStart(rest[1]):
		return s.openTag(rest)
	case rest == "</" || rest == "<!":
		s.cut = true
		return s.give(tokenOther, "", len(rest))
	}
	// A "<" that begins nothing is text.
	n := strings.IndexByte(rest[1:], '<') + 1
	if n == 0 {
		n = len(rest)
	}
	return s.give(tokenText, rest[:n], n)
}

func (s *scanner) give(kind tokenKind, text string, length int) tokenKind {
	s.kind, s.text, s.pos = kind, text, s.pos+length
	return kind
}

// until reads a token that ends with end; its text begins at from.
func (s *scanner) until(rest string, from int, end string, kind tokenKind) tokenKind {
	n := strings.Index(rest[from:], end)
	if n < 0 {
		s.cut = true
		return s.give(kind, rest[from:], len(rest))
	}
	return s.give(kind, rest[from:from+n], from+n+len(end))
}

// doctype reads a declaration, with an internal subset in brackets.
func (s *scanner) doctype(rest string) tokenKind {
	end := strings.IndexByte(rest, '>')
	if open := strings.IndexByte(rest[:max(end, 0)], '['); open >= 0 && !s.noSubset {
		if n := subsetEnd(rest[open:]); n >= 0 {
			end = open + n
		} else {
			s.noSubset = true
		}
	}
	if end < 0 {
		s.cut = true
		return s.give(tokenOther, "", len(rest))
	}
	return s.give(tokenDoctype, rest[:end], end+1)
}

// subsetEnd is the place of the ">" behind the subset that s begins with, -1 for
// none.
func subsetEnd(s string) int {
	if n := strings.Index(s, "]>"); n >= 0 {
		return n + 1
	}
	if n := strings.IndexByte(s, ']'); n >= 0 {
		if m := strings.IndexByte(s[n:], '>'); m >= 0 {
			return n + m
		}
	}
	return -1
}

func (s *scanner) closeTag(rest string) tokenKind {
	n := nameLen(rest[2:]) + 2
	s.name = rest[2:n]
	end := strings.IndexAny(rest[n:], "<>")
	switch {
	case end < 0:
		s.cut = true
		return s.give(tokenOther, "", len(rest))
	case rest[n+end] == '<':
		return s.give(tokenClose, "", n+end) // "</title <link>"
	default:
		return s.give(tokenClose, "", n+end+1)
	}
}

func (s *scanner) openTag(rest string) tokenKind {
	n := nameLen(rest[1:]) + 1
	name := rest[1:n]
	end := tagEnd(rest[n:])
	if end < 0 {
		s.cut = true
		return s.give(tokenOther, "", len(rest))
	}
	attrs := rest[n : n+end]
	after := n + end
	if after < len(rest) && rest[after] == '>' {
		after++
	}
	s.name = name
	s.attrs, s.empty = strings.CutSuffix(strings.TrimRight(attrs, " \t\r\n"), "/")
	return s.give(tokenOpen, "", after)
}

// tagEnd is the place in a start tag, after its name, of the ">" or the "<" of
// the next tag that ends it; -1 where the document is cut before.
func tagEnd(s string) int {
	for i := 0; i < len(s); {
		switch s[i] {
		case '>', '<':
			return i
		case '"', '\'':
			n := quoted(s[i:])
			if n < 0 {
				return -1
			}
			i += n
		default:
			i++
		}
	}
	return -1
}

// quoted is the length of a quoted value with its quotes. A value whose closing
// quote is missing ends before the ">" of its tag, which shows by a "<" that
// comes after that and before the quote. It is -1 where the document is cut.
func quoted(s string) int {
	end := strings.IndexByte(s[1:], s[0])
	value := s[1:]
	if end >= 0 {
		value = value[:end]
	}
	if gt := strings.IndexByte(value, '>'); gt >= 0 {
		lt := strings.IndexByte(value, '<')
		if lt > gt || end < 0 {
			return gt + 1
		}
	}
	if end < 0 {
		return -1
	}
	return end + 2
}

// attribute is one attribute of a start tag; its value is still escaped.
type attribute struct{ name, value string }

// attributes calls f with each attribute in the text between a start tag's
// name and its end, until f returns false.
func attributes(s string, f func(attribute) bool) {
	for {
		s = strings.TrimLeft(s, " \t\r\n/")
		n := 0
		for n < len(s) && !strings.ContainsRune(" \t\r\n=/\"'", rune(s[n])) {
			n++
		}
		if n == 0 {
			if s == "" {
				return
			}
			s = s[1:] // a stray quote or sign
			continue
		}
		a := attribute{name: s[:n]}
		s = strings.TrimLeft(s[n:], " \t\r\n")
		if strings.HasPrefix(s, "=") {
			s = strings.TrimLeft(s[1:], " \t\r\n")
			a.value, s = attributeValue(s)
		}
		if !f(a) {
			return
		}
	}
}

func attributeValue(s string) (value, rest string) {
	if s == "" {
		return "", ""
	}
	if s[0] == '"' || s[0] == '\'' {
		if v, after, ok := strings.Cut(s[1:], s[:1]); ok {
			return v, after
		}
		return s[1:], ""
	}
	n := strings.IndexAny(s, " \t\r\n")
	if n < 0 {
		n = len(s)
	}
	return s[:n], s[n:]
}

func isNameStart(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == ':' || c >= 0x80
}

// nameLen is the length of the name that s begins with.
func nameLen(s string) int {
	for i := range len(s) {
		switch s[i] {
		case ' ', '\t', '\r', '\n', '/', '>', '<', '=', '"', '\'':
			return i
		}
	}
	return len(s)
}
