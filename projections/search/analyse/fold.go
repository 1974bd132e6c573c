package analyse

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// class is what a character is to the scanner.
type class uint8

const (
	other     class = iota // white space and whatever stands between words
	invisible              // dropped, also inside a word
	latin
	cyrillic
	letter // of any further script
	digit
	ideograph // a word by itself
	mark      // a vowel sign or the like: part of its word
)

// folded is one character of a text after folding: in lower case, without
// accents, ё as е, compatibility forms as what they stand for.
type folded struct {
	class class
	first rune
	rest  string // of a character that becomes several: ß, æ, ﬁ
	size  int    // bytes in the text
}

// fold reads the character at the start of s, which is not empty. Letters of
// the two common scripts take the short way.
func fold(s string) folded {
	r, size := utf8.DecodeRuneInString(s)
	if followedByAccent(s[size:]) {
		return foldCluster(s)
	}
	switch {
	case r >= 'a' && r <= 'z':
		return folded{class: latin, first: r, size: size}
	case r >= 'A' && r <= 'Z':
		return folded{class: latin, first: r + 'a' - 'A', size: size}
	case r >= '0' && r <= '9':
		return folded{class: digit, first: r, size: size}
	case r < utf8.RuneSelf:
		return folded{size: size}
	case r >= 'а' && r <= 'я':
		return folded{class: cyrillic, first: r, size: size}
	case r >= 'А' && r <= 'Я':
		return folded{class: cyrillic, first: r + 'а' - 'А', size: size}
	case r == 'ё' || r == 'Ё':
		return folded{class: cyrillic, first: 'е', size: size}
	case hidden(r):
		return folded{class: invisible, size: size}
	default:
		return foldRare(r, s[:size])
	}
}

// isAccent tells the combining marks that letters of the European scripts carry.
func isAccent(r rune) bool { return r >= 0x0300 && r <= 0x036F }

func followedByAccent(s string) bool {
	if s == "" || s[0] != 0xCC && s[0] != 0xCD {
		return false
	}
	r, _ := utf8.DecodeRuneInString(s)
	return isAccent(r)
}

// foldCluster folds a character with the accents that follow it: й and ё come
// together, a stress mark falls away.
func foldCluster(s string) folded {
	_, size := utf8.DecodeRuneInString(s)
	for followedByAccent(s[size:]) {
		_, n := utf8.DecodeRuneInString(s[size:])
		size += n
	}
	composed := norm.NFC.String(s[:size])
	r, n := utf8.DecodeRuneInString(composed)
	f := fold(composed[:n])
	if isAccent(r) {
		f = folded{class: invisible}
	}
	f.size = size
	return f
}

// foldRare folds what is neither ASCII nor Russian.
func foldRare(r rune, s string) folded {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Mc):
		if isAccent(r) {
			return folded{class: invisible, size: len(s)}
		}
		return folded{class: mark, first: r, size: len(s)}
	case !unicode.IsLetter(r) && !unicode.IsDigit(r):
		return folded{size: len(s)}
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
		return folded{class: ideograph, first: r, size: len(s)}
	}
	var out []rune
	for _, d := range norm.NFKC.String(s) {
		out = append(out, foldLetter(unicode.ToLower(d))...)
	}
	if len(out) == 0 {
		return folded{class: invisible, size: len(s)}
	}
	return folded{class: classOf(out[0]), first: out[0], rest: string(out[1:]), size: len(s)}
}

// foldLetter takes the accents from a Latin letter. Those of other scripts make
// another letter: й is not и.
func foldLetter(r rune) []rune {
	switch r {
	case 'ё':
		return []rune{'е'}
	case 'ß':
		return []rune("ss")
	case 'æ':
		return []rune("ae")
	case 'œ':
		return []rune("oe")
	case 'ø':
		return []rune{'o'}
	case 'ł':
		return []rune{'l'}
	case 'đ', 'ð':
		return []rune{'d'}
	case 'ı':
		return []rune{'i'}
	case 'þ':
		return []rune("th")
	}
	if !unicode.Is(unicode.Latin, r) {
		if isAccent(r) {
			return nil
		}
		return []rune{r}
	}
	var out []rune
	for _, d := range norm.NFD.String(string(r)) {
		if !isAccent(d) {
			out = append(out, d)
		}
	}
	return out
}

func classOf(r rune) class {
	switch {
	case unicode.Is(unicode.Latin, r):
		return latin
	case unicode.Is(unicode.Cyrillic, r):
		return cyrillic
	case unicode.IsDigit(r):
		return digit
	case unicode.IsLetter(r):
		return letter
	default:
		return mark
	}
}

// hidden are characters that show nothing: soft hyphens, zero-width characters,
// marks of direction, variation selectors.
func hidden(r rune) bool {
	switch {
	case r == 0x00AD, r == 0x061C, r == 0x180E, r == 0xFEFF:
		return true
	case r >= 0x200B && r <= 0x200F, r >= 0x202A && r <= 0x202E, r >= 0x2060 && r <= 0x2069, r >= 0xFE00 && r <= 0xFE0F:
		return true
	default:
		return false
	}
}
