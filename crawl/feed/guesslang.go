package feed

import (
	"strings"
	"unicode"
)

// guessLanguage names the language of a text where nobody says it: "ru" for
// Cyrillic without the letters of its neighbours, "en" for Latin with enough of
// English's small words. For anything else, and for a text too short to tell,
// it is "".
func guessLanguage(text string) string {
	cyrillic, latin, others := 0, 0, 0
	for i, r := range text {
		if i > maxGuess {
			text = text[:i]
			break
		}
		switch {
		case strings.ContainsRune("іїєґўІЇЄҐЎ", r):
			others++
		case unicode.Is(unicode.Cyrillic, r):
			cyrillic++
		case unicode.Is(unicode.Latin, r):
			latin++
		}
	}
	switch {
	case cyrillic >= minGuess && cyrillic > 2*latin:
		if others*100 > cyrillic {
			return ""
		}
		return "ru"
	case latin >= minGuess && latin > 2*(cyrillic+others) && isEnglish(text):
		return "en"
	default:
		return ""
	}
}

const (
	maxGuess = 4 << 10 // bytes that are looked at
	minGuess = 20      // letters that are needed
)

// isEnglish reports whether at least one word in ten is a small word of
// English that no other language in Latin letters shares.
func isEnglish(text string) bool {
	words, small := 0, 0
	for w := range strings.FieldsSeq(strings.ToLower(text)) {
		words++
		switch strings.Trim(w, ".,;:!?\"“”()") {
		case "the", "of", "and", "to", "with", "that", "from", "by", "this", "are", "was", "which", "has", "have", "its", "it", "is", "for", "their", "been":
			small++
		}
	}
	return small*10 >= words
}
