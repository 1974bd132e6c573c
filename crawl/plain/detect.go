package plain

import (
	"html"
	"strings"

	"golang.org/x/net/html/atom"
)

// Guess cleans a text of which nobody said whether it is HTML or plain, as the
// description of an RSS item: HTML where a tag of HTML is in it. References
// alone are resolved, and the line breaks stay.
func Guess(s string) string {
	switch {
	case HasTag(s):
		return FromHTML(s)
	case HasReference(s):
		return FromText(html.UnescapeString(s))
	default:
		return FromText(s)
	}
}

// HasTag reports whether s holds the start or end of an HTML element, of an
// unknown one that is closed, or a comment or CDATA mark. Angle brackets around
// anything else are no markup.
func HasTag(s string) bool {
	unknown := 0
	for rest := s[:strings.LastIndexByte(s, '>')+1]; ; {
		i := strings.IndexByte(rest, '<')
		if i < 0 {
			return false
		}
		rest = rest[i+1:]
		if strings.HasPrefix(rest, "!--") || strings.HasPrefix(rest, "![CDATA[") {
			return true
		}
		name := tagName(strings.TrimPrefix(rest, "/"))
		if name == "" {
			continue
		}
		if isElement(name) {
			return true
		}
		if unknown++; unknown <= maxUnknown && rest[0] != '/' && strings.Contains(rest, "</"+name+">") {
			return true
		}
	}
}

// maxUnknown bounds how many unknown names are looked for.
const maxUnknown = 8

// IsMarkedUp reports whether s, a line that should be plain, was meant as
// HTML: it closes an element, or has one that needs no closing. A title that
// speaks of "the <b> tag" is not.
func IsMarkedUp(s string) bool {
	for rest := s[:strings.LastIndexByte(s, '>')+1]; ; {
		i := strings.IndexByte(rest, '<')
		if i < 0 {
			return false
		}
		rest = rest[i+1:]
		if end, ok := strings.CutPrefix(rest, "/"); ok {
			if name := tagName(end); name != "" && isElement(name) {
				return true
			}
			continue
		}
		switch strings.ToLower(tagName(rest)) {
		case "br", "img", "wbr", "hr":
			return true
		}
	}
}

// HasReference reports whether s holds a character reference that HTML knows,
// closed by its semicolon.
func HasReference(s string) bool {
	for rest := s; ; {
		i := strings.IndexByte(rest, '&')
		if i < 0 {
			return false
		}
		rest = rest[i:]
		if end := strings.IndexByte(rest[:min(len(rest), maxReference)], ';'); end > 1 {
			ref := rest[:end+1]
			if d := html.UnescapeString(ref); d != ref && !strings.HasSuffix(d, ";") {
				return true
			}
		}
		rest = rest[1:]
	}
}

// maxReference bounds the length of a reference, "&" and ";" included; the
// longest name of HTML has 33.
const maxReference = 40

// tagName returns the name that s begins with, "" where it is followed by what
// cannot follow a tag's name.
func tagName(s string) string {
	n := 0
	for n < len(s) && (isLetter(s[n]) || n > 0 && s[n] >= '0' && s[n] <= '9') {
		n++
	}
	if n == 0 || n == len(s) {
		return ""
	}
	switch s[n] {
	case '>', '/', ' ', '\t', '\n', '\r':
		return s[:n]
	default:
		return ""
	}
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isElement(name string) bool {
	switch atom.Lookup([]byte(strings.ToLower(name))) {
	case atom.A, atom.Abbr, atom.Acronym, atom.Address, atom.Article, atom.Aside, atom.Audio, atom.B,
		atom.Big, atom.Blockquote, atom.Body, atom.Br, atom.Button, atom.Caption, atom.Center, atom.Cite,
		atom.Code, atom.Dd, atom.Del, atom.Details, atom.Div, atom.Dl, atom.Dt, atom.Em, atom.Embed,
		atom.Figcaption, atom.Figure, atom.Font, atom.Footer, atom.Form, atom.H1, atom.H2, atom.H3,
		atom.H4, atom.H5, atom.H6, atom.Head, atom.Header, atom.Hr, atom.Html, atom.I, atom.Iframe,
		atom.Img, atom.Input, atom.Ins, atom.Kbd, atom.Label, atom.Li, atom.Link, atom.Main, atom.Mark,
		atom.Meta, atom.Nav, atom.Nobr, atom.Noscript, atom.Object, atom.Ol, atom.P, atom.Picture,
		atom.Pre, atom.Q, atom.S, atom.Samp, atom.Script, atom.Section, atom.Small, atom.Source,
		atom.Span, atom.Strike, atom.Strong, atom.Style, atom.Sub, atom.Summary, atom.Sup, atom.Svg,
		atom.Table, atom.Tbody, atom.Td, atom.Template, atom.Textarea, atom.Tfoot, atom.Th, atom.Thead,
		atom.Time, atom.Tr, atom.Tt, atom.U, atom.Ul, atom.Var, atom.Video, atom.Wbr:
		return true
	default:
		return false
	}
}
