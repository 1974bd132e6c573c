package words

import (
	"bytes"
	"unicode/utf8"
)

// Letters that look alike in one of their cases, each above its counterpart.
const (
	latinAlike    = "abcehkmoptxy"
	cyrillicAlike = "авсенкмортху"
)

// unmix gives a word of Cyrillic and Latin letters the alphabet that most of
// them have, where the others only look like letters of it: the с of "cмартфон"
// may be Latin by mistake or on purpose. Any other word stays as it is, of
// script Other: "vpnщик".
func unmix(word []byte) ([]byte, Script) {
	cyrillic, latin := 0, 0
	for _, b := range word {
		switch {
		case b < utf8.RuneSelf:
			latin++
		case utf8.RuneStart(b):
			cyrillic++
		}
	}
	if cyrillic >= latin {
		if swapped, ok := swap(word, latinAlike, cyrillicAlike); ok {
			return swapped, Cyrillic
		}
	}
	if latin >= cyrillic {
		if swapped, ok := swap(word, cyrillicAlike, latinAlike); ok {
			return swapped, Latin
		}
	}
	return word, Other
}

// swap replaces the letters of the alphabet that from is of. ok is false where
// one has no counterpart.
func swap(word []byte, from, to string) (swapped []byte, ok bool) {
	ok = true
	toLatin := to[0] < utf8.RuneSelf
	swapped = bytes.Map(func(r rune) rune {
		if isLatin := r < utf8.RuneSelf; isLatin == toLatin {
			return r
		}
		i := 0
		for _, f := range from {
			if f == r {
				return []rune(to)[i]
			}
			i++
		}
		ok = false
		return r
	}, word)
	return swapped, ok
}
