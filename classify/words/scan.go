// Package words takes texts apart the same way for every classifier: into
// folded words with Unicode boundaries, into stems by script, into sentences.
package words

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Script is the alphabet that a word is written in.
type Script uint8

// The scripts. A word with a digit, with letters of several alphabets or with
// some that neither Russian nor English has is Other: no stemmer knows it.
const (
	Other Script = iota
	Cyrillic
	Latin
)

// Scanner walks through the words of a text: runs of letters and digits, folded
// to lower case with ё as е and without accents. Hyphens, dots and apostrophes
// part words; "c++" and "c#" keep their signs. Invisible characters inside a
// word do not part it. Web addresses are no words.
//
// The zero Scanner has an empty text; Reset gives it one. It reuses its memory
// and is not safe for concurrent use.
type Scanner struct {
	text       string
	pos        int
	start, end int
	folded     []byte
	script     Script
	brk        bool
}

// Reset begins at the start of text.
func (s *Scanner) Reset(text string) {
	s.text, s.pos, s.start, s.end = text, 0, 0, 0
}

// Folded is the current word, folded. It is valid until the next call of Next.
func (s *Scanner) Folded() []byte { return s.folded }

// Span is where the current word stands in the text, in bytes.
func (s *Scanner) Span() (start, end int) { return s.start, s.end }

// Script is the current word's script.
func (s *Scanner) Script() Script { return s.script }

// Break reports whether a sentence or a line ended before the current word.
func (s *Scanner) Break() bool { return s.brk }

// Next goes to the next word and reports whether there is one.
func (s *Scanner) Next() bool {
	s.brk = s.start == 0 && s.end == 0
	ended := false // a full stop was the last character
	for s.pos < len(s.text) {
		c, size := s.class(s.pos)
		switch c {
		case letter, digit:
			if n := linkLen(s.text[s.pos:]); n > 0 {
				s.pos += n
				ended = false
				continue
			}
			s.word()
			return true
		case lineEnd:
			s.brk, ended = true, false
		case space:
			s.brk = s.brk || ended
			ended = false
		case stop:
			ended = true
		case closer, ignored:
		case mark, other:
			ended = false
		}
		s.pos += size
	}
	return false
}

// linkLen returns the length of the web address that s begins with; 0 for none.
func linkLen(s string) int {
	if s[0] != 'h' && s[0] != 'H' && s[0] != 'w' && s[0] != 't' {
		return 0
	}
	for _, begin := range [...]string{"https://", "http://", "www.", "t.me/"} {
		if len(s) <= len(begin) || !strings.EqualFold(s[:len(begin)], begin) {
			continue
		}
		for i, r := range s {
			if unicode.IsSpace(r) || strings.ContainsRune("()[]<>\"«»", r) {
				return i
			}
		}
		return len(s)
	}
	return 0
}

// word reads the word that begins at pos.
func (s *Scanner) word() {
	s.folded = s.folded[:0]
	s.start = s.pos
	var has alphabets
	for s.pos < len(s.text) {
		b := s.text[s.pos]
		if b < utf8.RuneSelf {
			switch {
			case b >= 'a' && b <= 'z':
				has.latin = true
			case b >= 'A' && b <= 'Z':
				has.latin = true
				b += 'a' - 'A'
			case b >= '0' && b <= '9':
				has.rest = true
			default:
				s.endWord(has)
				s.signs(b)
				return
			}
			s.folded = append(s.folded, b)
			s.pos++
			continue
		}
		if b>>1 == 0xD0>>1 && s.pos+1 < len(s.text) { // most of Cyrillic, without the detours below
			if r := rune(b&0x1F)<<6 | rune(s.text[s.pos+1]&0x3F); r >= 'А' && r <= 'я' && s.text[s.pos+1]>>6 == 2 {
				if r <= 'Я' {
					r += 'а' - 'А'
				}
				has.cyrillic = true
				s.folded = append(s.folded, 0xC0|byte(r>>6), 0x80|byte(r&0x3F))
				s.pos += 2
				continue
			}
		}
		if !s.rune(&has) {
			break
		}
	}
	s.endWord(has)
}

// alphabets says which letters a word has; rest stands for digits and for
// letters that neither Russian nor English has.
type alphabets struct{ cyrillic, latin, rest bool }

// rune reads one character of a word that is neither ASCII nor plain Cyrillic,
// and reports false where it ends the word.
func (s *Scanner) rune(has *alphabets) bool {
	r, size := utf8.DecodeRuneInString(s.text[s.pos:])
	switch {
	case r == 'ё' || r == 'Ё':
		has.cyrillic = true
		s.folded = append(s.folded, "е"...)
	case unicode.IsLetter(r):
		r = plain(r)
		switch {
		case r >= 'a' && r <= 'z':
			has.latin = true
		default:
			has.rest = true
		}
		s.folded = utf8.AppendRune(s.folded, r)
	case unicode.IsDigit(r):
		has.rest = true
		s.folded = utf8.AppendRune(s.folded, r)
	case r == breve && endsInI(s.folded): // й in two characters
		s.folded = utf8.AppendRune(s.folded[:len(s.folded)-len("и")], 'й')
	case unicode.Is(unicode.Mn, r), unicode.Is(unicode.Cf, r):
	default:
		return false
	}
	s.pos += size
	return true
}

// endWord notes where the word ends and what it is written in.
func (s *Scanner) endWord(has alphabets) {
	s.end = s.pos
	switch {
	case has.rest, !has.cyrillic && !has.latin:
		s.script = Other
	case has.cyrillic && has.latin:
		s.folded, s.script = unmix(s.folded)
	case has.cyrillic:
		s.script = Cyrillic
	default:
		s.script = Latin
	}
}

// signs takes the signs of "c++" and "c#" into the word that ends before b.
func (s *Scanner) signs(b byte) {
	rest := s.text[s.pos:]
	var n int
	switch {
	case b == '#':
		n = 1
	case b == '+' && len(rest) > 1 && rest[1] == '+':
		n = 2
	default:
		return
	}
	if c, _ := s.class(s.pos + n); c == letter || c == digit {
		return
	}
	if string(s.folded) == "с" { // of C++, in Cyrillic
		s.folded = append(s.folded[:0], 'c')
	}
	s.folded = append(s.folded, rest[:n]...)
	s.pos += n
	s.end = s.pos
	s.script = Other
}

// The classes of characters that Next tells apart.
type class uint8

const (
	other class = iota
	letter
	digit
	mark
	space
	lineEnd
	stop   // may end a sentence
	closer // may stand between a stop and the space after it
	ignored
)

// class returns the class of the character at i; past the end it is a line's
// end.
func (s *Scanner) class(i int) (c class, size int) {
	if i >= len(s.text) {
		return lineEnd, 0
	}
	if b := s.text[i]; b < utf8.RuneSelf {
		return asciiClass(b), 1
	}
	r, size := utf8.DecodeRuneInString(s.text[i:])
	switch {
	case unicode.IsLetter(r):
		return letter, size
	case unicode.IsDigit(r):
		return digit, size
	case r == '…':
		return stop, size
	case r == '»', r == '”', r == '’', r == '“':
		return closer, size
	case r == '\u2028', r == '\u2029', r == '\u0085':
		return lineEnd, size
	case unicode.IsSpace(r):
		return space, size
	case unicode.Is(unicode.Mn, r):
		return mark, size
	case unicode.Is(unicode.Cf, r):
		return ignored, size
	default:
		return other, size
	}
}

func asciiClass(b byte) class {
	switch {
	case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z':
		return letter
	case b >= '0' && b <= '9':
		return digit
	case b == '\n', b == '\r', b == '\v', b == '\f':
		return lineEnd
	case b == ' ', b == '\t':
		return space
	case b == '.', b == '!', b == '?', b == ';':
		return stop
	case b == '"', b == '\'', b == ')', b == ']':
		return closer
	default:
		return other
	}
}

const breve = '\u0306'

func endsInI(b []byte) bool { return len(b) >= len("и") && string(b[len(b)-len("и"):]) == "и" }

// plain returns a letter in lower case: a Latin one without its accents, one of
// the mathematical or full-width alphabets as the letter that it depicts.
func plain(r rune) rune {
	r = unicode.ToLower(r)
	depicts := r >= 0x1D400 && r <= 0x1D7FF || r >= 0xFF21 && r <= 0xFF5A
	switch {
	case depicts:
		if d := norm.NFKD.PropertiesString(string(r)).Decomposition(); len(d) > 0 {
			r, _ = utf8.DecodeRune(d)
		}
		return unicode.ToLower(r)
	case unicode.Is(unicode.Latin, r):
		if d := norm.NFD.PropertiesString(string(r)).Decomposition(); len(d) > 0 {
			r, _ = utf8.DecodeRune(d)
		}
	}
	return r
}
