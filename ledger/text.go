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
	text = norm.NFC.String(dropInvisible(strings.ToValidUTF8(text, "\uFFFD")))
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
