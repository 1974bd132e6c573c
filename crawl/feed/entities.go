package feed

import (
	"html"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// entities are the general entities that a document declares for itself. The
// zero value has none.
type entities struct {
	values map[string]string
	grown  int // bytes that they have put into the document until now
}

const (
	maxEntities    = 256     // that a document may declare
	maxEntityValue = 4 << 10 // bytes of one's value, expanded
	maxDeclaration = 8 << 10 // bytes of one's declaration
	maxExpansion   = 1 << 20 // bytes that a document's own entities may put into it, all taken together
	maxReference   = 64      // bytes of a reference, "&" and ";" included
)

// declare reads the entity declarations of a DOCTYPE. Values may use entities
// declared before them; what grows beyond maxEntityValue is dropped, as are
// external and parameter entities.
func (e *entities) declare(doctype string) {
	for rest := doctype; ; {
		_, after, ok := strings.Cut(rest, "<!ENTITY")
		if !ok || len(e.values) >= maxEntities {
			return
		}
		rest = after
		declaration := after[:min(len(after), maxDeclaration)]
		name, value, ok := strings.Cut(strings.TrimLeft(declaration, " \t\r\n"), " ")
		value = strings.TrimLeft(value, " \t\r\n")
		if !ok || name == "%" || value == "" || value[0] != '"' && value[0] != '\'' {
			continue
		}
		value, _, ok = strings.Cut(value[1:], value[:1])
		if !ok || len(value) > maxEntityValue {
			continue
		}
		if value = e.decode(value); len(value) > maxEntityValue {
			continue
		}
		if e.values == nil {
			e.values = map[string]string{}
		}
		if _, twice := e.values[name]; !twice {
			e.values[name] = value
		}
	}
}

// decodeReferences resolves the references in s that need no declaration.
func decodeReferences(s string) string { return (&entities{}).decode(s) }

// decode resolves the references in s: numeric ones, those of HTML whether
// declared or not, and the document's own. A reference that means nothing
// stays as it is written, and so does an "&" that begins none.
func (e *entities) decode(s string) string {
	amp := strings.IndexByte(s, '&')
	if amp < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for amp >= 0 {
		b.WriteString(s[:amp])
		s = s[amp:]
		text, n := e.reference(s)
		b.WriteString(text)
		s = s[n:]
		amp = strings.IndexByte(s, '&')
	}
	b.WriteString(s)
	return b.String()
}

// reference resolves the reference that s begins with and returns its text and
// length.
func (e *entities) reference(s string) (text string, length int) {
	end := strings.IndexByte(s[:min(len(s), maxReference)], ';')
	if end < 2 {
		return "&", 1
	}
	name := s[1:end]
	if name[0] == '#' {
		if r, n := surrogates(s); n > 0 {
			return r, n
		}
		if r, ok := numeric(name[1:]); ok {
			return r, end + 1
		}
		return "&", 1
	}
	switch name {
	case "amp":
		return "&", end + 1
	case "lt":
		return "<", end + 1
	case "gt":
		return ">", end + 1
	case "quot":
		return `"`, end + 1
	case "apos":
		return "'", end + 1
	}
	if v, ok := e.values[name]; ok && e.grown+len(v) <= maxExpansion {
		e.grown += len(v)
		return v, end + 1
	}
	ref := s[:end+1]
	// A name that HTML knows only without its semicolon leaves the semicolon.
	if d := html.UnescapeString(ref); d != ref && !strings.HasSuffix(d, ";") {
		return d, end + 1
	}
	return "&", 1
}

// numeric resolves the number of a character reference. Controls vanish, and
// the numbers 128 to 159 are read as windows-1252, as browsers do.
func numeric(digits string) (string, bool) {
	n, err := number32(digits)
	if err != nil {
		return "", false
	}
	switch r := rune(min(n, utf8.MaxRune+1)); {
	case r >= 0x80 && r < 0xA0:
		return html.UnescapeString("&#" + strconv.Itoa(int(r)) + ";"), true
	case !isXMLChar(r):
		return "", true
	default:
		return string(r), true
	}
}

func number32(digits string) (uint64, error) {
	if len(digits) > 1 && digits[0]|0x20 == 'x' {
		return strconv.ParseUint(digits[1:], 16, 32) //nolint:wrapcheck // says no more than that it is no number
	}
	return strconv.ParseUint(digits, 10, 32) //nolint:wrapcheck // the same
}

// surrogates resolves two references in a row to the halves of a character, as
// programs write emoji that think in UTF-16. length is 0 for anything else.
func surrogates(s string) (text string, length int) {
	high, rest, ok := strings.Cut(s[:min(len(s), 2*maxReference)], ";")
	if !ok || !strings.HasPrefix(rest, "&#") {
		return "", 0
	}
	low, _, ok := strings.Cut(rest, ";")
	if !ok {
		return "", 0
	}
	h, errHigh := number32(high[2:])
	l, errLow := number32(low[2:])
	if errHigh != nil || errLow != nil || h >= 0xDC00 || !utf16.IsSurrogate(rune(h)) {
		return "", 0
	}
	r := utf16.DecodeRune(rune(h), rune(l))
	if r == utf8.RuneError {
		return "", 0
	}
	return string(r), len(high) + len(low) + 2
}

// isXMLChar reports whether r may stand in the text of a document. Two private
// characters that mark texts on their way through the parser may not.
func isXMLChar(r rune) bool {
	switch {
	case r < ' ':
		return r == '\t' || r == '\n' || r == '\r'
	case r == 0x7F, r == markPlain, r == markHTML:
		return false
	case r < 0xD800:
		return true
	case r < 0xE000:
		return false
	default:
		return r != 0xFFFE && r != 0xFFFF && r <= utf8.MaxRune
	}
}

// dropIllegal returns doc without the characters that no XML text may hold.
func dropIllegal(doc string) string {
	clean := true
	for i := range len(doc) {
		c := doc[i]
		if c < ' ' && c != '\n' && c != '\t' && c != '\r' || c == 0x7F || c == 0xEE || c == 0xEF {
			clean = false
			break
		}
	}
	if clean {
		return doc
	}
	return strings.Map(func(r rune) rune {
		if isXMLChar(r) {
			return r
		}
		return -1
	}, doc)
}
