package analyse

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxPart   = 64 // runes of a word that are looked at; a longer one is cut
	maxJoined = 4  // parts that are also indexed as one word
)

// Part is a word of a text, or a part of a word that a hyphen, a dot or the
// like holds together.
type Part struct {
	Text       string // folded, not stemmed
	Start, End int    // bytes in the text
	Position   int    // place among the parts of the text, from 1
	script     class  // latin, cyrillic, letter, digit or ideograph
	digits     bool   // has digits
	whole      bool   // a name such as c++ that is never stemmed
}

// Whole reports whether the part is a name such as c++, which has no forms.
func (p *Part) Whole() bool { return p.whole }

// Chain is what stands together: one part mostly, more in "wi-fi" or "1,5".
type Chain struct {
	Parts  []Part
	Joined string // the parts as one word, "wifi", where that is another way to write them
}

// scanner goes over a text once.
type scanner struct {
	text     string
	at       int
	position int
	chain    Chain
}

// Scan calls f with each chain of text. The chain is valid during the call.
func Scan(text string, f func(*Chain)) {
	s := &scanner{text: text}
	for s.next() {
		f(&s.chain)
	}
}

// next reads the next chain and reports whether there is one.
func (s *scanner) next() bool {
	s.chain.Parts, s.chain.Joined = s.chain.Parts[:0], ""
	for s.at < len(s.text) {
		if s.dotNet() {
			return true
		}
		f := fold(s.text[s.at:])
		switch f.class {
		case ideograph:
			s.ideographs()
			return true
		case other, invisible, mark:
			if s.text[s.at] == gap {
				s.position += gapWidth
			}
			s.at += f.size
		default:
			s.read()
			return true
		}
	}
	return false
}

// gap is a character (a record separator) that keeps phrases from reaching over
// it: between a title and its text.
const (
	gap      = '\x1e'
	gapWidth = 100
)

// Gap is text to put between texts that phrases must not reach across.
const Gap = string(rune(gap))

// read reads a chain from the first character of a word on.
func (s *scanner) read() {
	var connectors []byte
	for {
		s.part()
		if s.named() {
			break
		}
		width := s.connector()
		if width == 0 {
			break
		}
		connectors = append(connectors, s.text[s.at])
		s.at += width
	}
	s.chain.Joined = join(s.chain.Parts, connectors)
}

// part reads a part, whose first character is that of a word.
func (s *scanner) part() {
	s.position++
	p := Part{Start: s.at, Position: s.position}
	var b strings.Builder
	runes, apostrophe := 0, -1
	var counts [ideograph]int
	for s.at < len(s.text) {
		f := fold(s.text[s.at:])
		if f.class == other {
			if width := s.apostrophe(runes); width > 0 {
				apostrophe = b.Len()
				s.at += width
				continue
			}
			break
		}
		if f.class == ideograph {
			break
		}
		s.at += f.size
		if f.class == invisible {
			continue
		}
		p.End = s.at
		if f.class != mark {
			counts[f.class]++
		}
		if runes < maxPart {
			b.WriteRune(f.first)
			b.WriteString(f.rest)
			runes++
		}
	}
	p.Text = b.String()
	if apostrophe > 0 && p.Text[apostrophe:] == "s" {
		p.Text = p.Text[:apostrophe]
	}
	p.digits = counts[digit] > 0
	p.script, p.Text = settle(counts, p.Text, apostrophe)
	s.chain.Parts = append(s.chain.Parts, p)
}

// apostrophe returns the width of an apostrophe inside a word, which is read
// over: don't is dont, Apple's is apple.
func (s *scanner) apostrophe(runes int) int {
	r, size := utf8.DecodeRuneInString(s.text[s.at:])
	if runes == 0 || r != '\'' && r != '’' && r != 'ʼ' || !s.wordAt(s.at+size) {
		return 0
	}
	return size
}

// latinStem returns a Latin word without the Russian ending that it was given:
// github of GitHub'а and GitHubом; "" where text is no such word. Without an
// apostrophe an ending of one letter may as well be a letter that looks alike.
func latinStem(text string, apostrophe int) string {
	end := strings.IndexFunc(text, func(r rune) bool { return classOf(r) == cyrillic })
	if end < 3 || strings.ContainsFunc(text[:end], func(r rune) bool { return classOf(r) != latin && classOf(r) != digit }) {
		return ""
	}
	switch text[end:] {
	case "ом", "ем", "ой", "ов", "ам", "ами", "ах", "ы", "и", "ю", "я":
		return text[:end]
	case "а", "у", "е":
		if apostrophe == end {
			return text[:end]
		}
	}
	return ""
}

// settle tells a part's script, takes a Russian ending off a Latin word, and
// writes letters that only look as if they were of the script in those of the
// script that the part is mostly in.
func settle(counts [ideograph]int, text string, apostrophe int) (class, string) {
	switch {
	case counts[latin] > 0 && counts[cyrillic] > 0:
		if stem := latinStem(text, apostrophe); stem != "" {
			return latin, stem
		}
		if counts[cyrillic] >= counts[latin] {
			if swapped, ok := swap(text, latin, toCyrillic); ok {
				return cyrillic, swapped
			}
		} else if swapped, ok := swap(text, cyrillic, toLatin); ok {
			return latin, swapped
		}
		return letter, text
	case counts[cyrillic] > 0 && counts[letter] == 0:
		return cyrillic, text
	case counts[latin] > 0 && counts[letter] == 0:
		return latin, text
	case counts[letter] > 0:
		return letter, text
	default:
		return digit, text
	}
}

// Letters that look alike, in one of their cases.
const (
	latinAlike    = "abcehkmoptxy"
	cyrillicAlike = "авсенкмортху"
)

func toCyrillic(r rune) (rune, bool) { return counterpart(r, latinAlike, cyrillicAlike) }
func toLatin(r rune) (rune, bool)    { return counterpart(r, cyrillicAlike, latinAlike) }

func counterpart(r rune, from, to string) (rune, bool) {
	i := strings.IndexRune(from, r)
	if i < 0 {
		return 0, false
	}
	return []rune(to)[utf8.RuneCountInString(from[:i])], true
}

// swap replaces every letter of a script by its counterpart; it reports false
// where one has none.
func swap(text string, of class, with func(rune) (rune, bool)) (string, bool) {
	ok := true
	swapped := strings.Map(func(r rune) rune {
		if classOf(r) != of {
			return r
		}
		c, found := with(r)
		ok = ok && found
		return c
	}, text)
	return swapped, ok
}

// named makes the part that was just read a name with signs, where such signs
// follow: C++, C#, F#.
func (s *scanner) named() bool {
	p := &s.chain.Parts[len(s.chain.Parts)-1]
	rest := s.text[s.at:]
	var signs string
	switch {
	case strings.HasPrefix(rest, "++") && !strings.HasPrefix(rest, "+++") && !s.letterAt(s.at+2):
		signs = "++"
	case strings.HasPrefix(rest, "#") && utf8.RuneCountInString(p.Text) == 1 && !s.wordAt(s.at+1):
		signs = "#"
	default:
		return false
	}
	if p.Text == "с" {
		p.Text, p.script = "c", latin
	}
	if p.script != latin {
		return false
	}
	p.Text += signs
	p.whole = true
	s.at += len(signs)
	p.End = s.at
	return true
}

// dotNet reads the name .NET, whose dot begins it.
func (s *scanner) dotNet() bool {
	const name = ".net"
	end := s.at + len(name)
	if end > len(s.text) || !strings.EqualFold(s.text[s.at:end], name) || s.wordAt(end) {
		return false
	}
	if before, _ := utf8.DecodeLastRuneInString(s.text[:s.at]); s.at > 0 && (unicode.IsLetter(before) || unicode.IsDigit(before)) {
		return false
	}
	s.position++
	s.chain.Parts = append(s.chain.Parts, Part{
		Text: name, Start: s.at, End: end, Position: s.position, script: latin, whole: true,
	})
	s.at = end
	return true
}

// ideographs reads a run of them, each one a part.
func (s *scanner) ideographs() {
	for s.at < len(s.text) && len(s.chain.Parts) < maxPart {
		f := fold(s.text[s.at:])
		if f.class == ideograph {
			s.position++
			s.chain.Parts = append(s.chain.Parts, Part{
				Text: string(f.first), Start: s.at, End: s.at + f.size, Position: s.position, script: ideograph, whole: true,
			})
		} else if f.class != invisible {
			return
		}
		s.at += f.size
	}
}

// connector returns the width of a character that holds two parts together, 0
// where there is none.
func (s *scanner) connector() int {
	r, size := utf8.DecodeRuneInString(s.text[s.at:])
	if !s.wordAt(s.at + size) {
		return 0
	}
	switch r {
	case '-', '\u2010', '\u2011', '.', '/', '_', '&', '+':
		return size
	case ',', ':':
		last := s.chain.Parts[len(s.chain.Parts)-1]
		if last.script == digit && s.digitAt(s.at+size) {
			return size
		}
	}
	return 0
}

func (s *scanner) classAt(at int) class {
	if at >= len(s.text) {
		return other
	}
	return fold(s.text[at:]).class
}

func (s *scanner) wordAt(at int) bool {
	c := s.classAt(at)
	return c == latin || c == cyrillic || c == letter || c == digit
}

func (s *scanner) letterAt(at int) bool {
	c := s.classAt(at)
	return c == latin || c == cyrillic || c == letter
}

func (s *scanner) digitAt(at int) bool { return s.classAt(at) == digit }

// join returns the parts as one word: letters and digits without what is
// between them, since gpt-4 is also written gpt4; numbers with it, a comma as a
// point. It returns "" where nobody would write them so.
func join(parts []Part, connectors []byte) string {
	if len(parts) < 2 || len(parts) > maxJoined {
		return ""
	}
	numbers := true
	for i, p := range parts {
		numbers = numbers && p.script == digit
		if i > 0 && !joinable(parts[i-1], p) || p.whole {
			return ""
		}
	}
	var b strings.Builder
	for i, p := range parts {
		if i > 0 && numbers {
			sign := connectors[i-1]
			if sign == ',' {
				sign = '.'
			}
			b.WriteByte(sign)
		}
		b.WriteString(p.Text)
	}
	if b.Len() > maxPart {
		return ""
	}
	return b.String()
}

// joinable says that two parts could be written as one: not two Russian words.
func joinable(a, b Part) bool {
	if a.script == cyrillic || b.script == cyrillic {
		return a.script == digit || b.script == digit
	}
	return true
}
