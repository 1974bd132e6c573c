package ledger

import (
	"crypto/sha256"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	// NormVersion numbers the rules of Normalise. It is stored with each post, so
	// that a later version knows which rules its key was made by.
	NormVersion = 1

	// MinLetters is the number of letters below which a text does not identify a
	// post by itself.
	MinLetters = 16

	// MaxText is the largest text of an item, in bytes. Crawlers cut longer ones
	// and say so; an engine refuses them with ErrTooLarge.
	MaxText = 1 << 20
)

// Normalise returns text as it is hashed: valid UTF-8 (each run of broken
// bytes becomes U+FFFD) in Unicode form NFC, without zero-width characters,
// soft hyphens and bidirectional marks, each run of Unicode white space one
// U+0020, trimmed. It folds neither case nor compatibility forms, which carry
// meaning.
func Normalise(text string) string {
	if n, ok := normalisePlain(text); ok {
		return n
	}
	return collapseSpace(norm.NFC.String(dropInvisible(strings.ToValidUTF8(text, "\uFFFD"))))
}

// normalisePlain is Normalise for texts of plain characters, which most are:
// one pass, and no copy where nothing changes. ok is false for other texts.
func normalisePlain(text string) (n string, ok bool) {
	var b []byte
	copied := 0 // of text into b, once there is one
	space := true
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[i:])
		}
		switch {
		case unicode.IsSpace(r):
			if r != ' ' || space { // else it stays as it is
				if b == nil {
					b = make([]byte, 0, len(text))
				}
				b = append(b, text[copied:i]...)
				if !space {
					b = append(b, ' ')
				}
				copied = i + size
			}
			space = true
		case !plain(r) || r == utf8.RuneError && size == 1:
			return "", false
		default:
			space = false
		}
		i += size
	}
	if b == nil {
		return strings.TrimSuffix(text, " "), true
	}
	b = append(b, text[copied:]...)
	return strings.TrimSuffix(string(b), " "), true
}

// plain reports whether r is visible and no part of any composition: Latin,
// Cyrillic, and the usual punctuation and signs, in the order of how often they
// come. It need not know all such characters.
func plain(r rune) bool {
	switch {
	case r < 0x80,
		r >= 0x400 && r < 0x483, r >= 0x48A && r < 0x530, // Cyrillic but its combining marks
		r >= 0x80 && r < 0x300 && r != 0xAD,
		r >= 0x2010 && r < 0x2028, r >= 0x2030 && r < 0x205F, // dashes, quotes, ellipsis
		r >= 0x20A0 && r < 0x20C0, // currencies
		r == 0x2116, r == 0x2122:
		return true
	default:
		return false
	}
}

// collapseSpace makes each run of white space one space and trims.
func collapseSpace(text string) string {
	if isNormalSpace(text) {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	space := false
	for _, r := range text {
		if unicode.IsSpace(r) {
			space = b.Len() > 0
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	return b.String()
}

// dropInvisible comes before the composition: a mark between a letter and its
// accent would keep them apart.
func dropInvisible(s string) string {
	if strings.IndexFunc(s, invisible) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if invisible(r) {
			return -1
		}
		return r
	}, s)
}

// invisible reports whether r is a zero-width character, a soft hyphen or a
// mark of direction.
func invisible(r rune) bool {
	switch {
	case r < 0xAD:
		return false
	case r == 0xAD, // soft hyphen
		r == 0x061C,                // Arabic letter mark
		r == 0x180E,                // Mongolian vowel separator
		r >= 0x200B && r <= 0x200F, // zero-width space, joiners, marks of direction
		r >= 0x202A && r <= 0x202E, // embeddings and overrides
		r >= 0x2060 && r <= 0x2064, // word joiner, invisible operators
		r >= 0x2066 && r <= 0x2069, // isolates
		r == 0xFEFF:                // byte order mark
		return true
	default:
		return false
	}
}

// isNormalSpace reports whether the only white space in s is single spaces
// between other characters, which is so for most texts and spares a copy.
func isNormalSpace(s string) bool {
	prev := ' '
	for _, r := range s {
		if unicode.IsSpace(r) && (r != ' ' || prev == ' ') {
			return false
		}
		prev = r
	}
	return prev != ' ' || s == ""
}

// IdentifyText returns the ID of a new post with this text: the SHA-256 of the
// normalised text, or, with fewer than MinLetters letters in it, of the text
// and the item's key, so that bare captions do not fall together. The same
// text gives the same ID at every source, the short one only at its own item.
func IdentifyText(text string, key ItemKey) PostID {
	n := Normalise(text)
	if letters(n) < MinLetters {
		return PostID(sha256.Sum256([]byte(n + "\x00" + string(key))))
	}
	return PostID(sha256.Sum256([]byte(n)))
}

// letters counts the letters of s, up to MinLetters.
func letters(s string) int {
	n := 0
	for _, r := range s {
		if unicode.IsLetter(r) {
			n++
			if n == MinLetters {
				break
			}
		}
	}
	return n
}

// ChangedWords is the share of words, 0 to 1, by which two texts differ: one
// minus twice the number of words they share (as multisets, whatever the
// order) over the number of both. Two texts without words do not differ.
func ChangedWords(before, after string) float64 {
	b, a := words(before), words(after)
	if len(b)+len(a) == 0 {
		return 0
	}
	counts := make(map[string]int, len(b))
	for _, w := range b {
		counts[w]++
	}
	shared := 0
	for _, w := range a {
		if counts[w] > 0 {
			counts[w]--
			shared++
		}
	}
	return 1 - 2*float64(shared)/float64(len(b)+len(a))
}

func words(s string) []string {
	return strings.FieldsFunc(Normalise(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
}

// CutText shortens s to at most limit bytes without splitting a character.
func CutText(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
