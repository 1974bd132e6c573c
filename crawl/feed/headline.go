package feed

import (
	"strings"
	"unicode"
)

// withoutHeadline drops the first line of text where it is the title once more,
// as pages have it: the title stands beside the text anyway. Case, punctuation
// and white space do not matter.
func withoutHeadline(text, title string) string {
	first, rest, more := strings.Cut(text, "\n")
	if title == "" || !more || lettersOf(first) != lettersOf(title) {
		return text
	}
	return strings.TrimLeft(rest, "\n")
}

func lettersOf(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsNumber(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}
