// Package plain makes plain text of what sources give: HTML becomes text that
// keeps paragraphs, list items and line breaks, and every text is made inert,
// without control characters and marks that reorder what stands beside them.
//
// All functions are pure and safe for concurrent use.
package plain

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// FromText cleans plain text: it is not looked at for markup, so that angle
// brackets and references stay as they are. Line breaks are kept, at most one
// empty line in a row; each other run of white space becomes one space; lines
// are trimmed.
func FromText(s string) string {
	var w writer
	w.b.Grow(len(s))
	w.lines(s)
	return w.b.String()
}

// Line cleans plain text that is one line by nature, such as a title: each run
// of white space, line breaks among them, becomes one space.
func Line(s string) string {
	var w writer
	w.b.Grow(len(s))
	w.flow(s)
	return w.b.String()
}

// writer collects text. White space and breaks are held back until something
// follows them, so that none stands at either end.
type writer struct {
	b      strings.Builder
	breaks int // line breaks due before the next character; two make an empty line
	space  bool
}

// breakLines asks for at least n line breaks before what follows.
func (w *writer) breakLines(n int) { w.breaks = max(w.breaks, n) }

// newline adds one line break to those due, up to an empty line.
func (w *writer) newline() { w.breaks = min(w.breaks+1, 2) }

// flow writes s as running text: line breaks are white space.
func (w *writer) flow(s string) { w.write(s, false) }

// lines writes s with its own line breaks.
func (w *writer) lines(s string) { w.write(s, true) }

func (w *writer) write(s string, keepLines bool) {
	for i := 0; i < len(s); {
		if n := wordLen(s[i:]); n > 0 {
			w.flush()
			w.b.WriteString(s[i : i+n])
			i += n
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		w.rune(r, keepLines, strings.HasPrefix(s[i+size:], "\n"))
		i += size
	}
}

// wordLen is the length of what s begins with of printing ASCII and of
// characters from U+00C0 to U+07FF, Cyrillic among them: none of them is white
// space or needs a closer look.
func wordLen(s string) int {
	i := 0
	for i < len(s) {
		switch c := s[i]; {
		case c > ' ' && c < 0x7F:
			i++
		case c >= 0xC3 && c <= 0xDF && i+1 < len(s) && s[i+1]&0xC0 == 0x80:
			i += 2
		default:
			return i
		}
	}
	return i
}

func (w *writer) rune(r rune, keepLines, beforeLF bool) {
	switch {
	case r == '\r' && beforeLF:
	case isBreak(r):
		if keepLines {
			w.newline()
		}
		w.space = true
	case unicode.IsSpace(r):
		w.space = true
	case Inert(r):
		w.flush()
		w.b.WriteRune(r)
	}
}

func isBreak(r rune) bool {
	return r == '\n' || r == '\r' || r == 0x85 || r == 0x2028 || r == 0x2029
}

func (w *writer) flush() {
	if w.b.Len() > 0 {
		switch {
		case w.breaks > 0:
			w.b.WriteString("\n\n"[:w.breaks])
		case w.space:
			w.b.WriteByte(' ')
		}
	}
	w.breaks, w.space = 0, false
}

// Inert reports whether r may stand in a text: it is no control character
// other than white space, no soft hyphen, no mark that is invisible by itself
// and none that overrides the direction of what follows. Joiners stay, which
// emoji and some scripts need, and the plain marks of direction.
func Inert(r rune) bool {
	switch {
	case r >= ' ' && r < 0x7F, r == '\t', r == '\n', r == '\r':
		return true
	case r < 0xA0: // C0, DEL, C1
		return r == 0x85
	case r < 0xAE:
		return r != 0xAD // soft hyphen
	case r < 0x180E:
		return true
	case r == 0x180E, // Mongolian vowel separator
		r == 0x200B,                // zero-width space
		r >= 0x202A && r <= 0x202E, // embeddings and overrides of direction
		r >= 0x2060 && r <= 0x206F, // word joiner, isolates, deprecated controls
		r == 0xFEFF,                // byte order mark
		r >= 0xFFF9 && r <= 0xFFFB, // interlinear annotation
		r >= 0xE000 && r <= 0xF8FF, // private use
		r >= 0xE0000,               // tags, more private use
		r&0xFFFE == 0xFFFE:         // no characters
		return false
	default:
		return true
	}
}
