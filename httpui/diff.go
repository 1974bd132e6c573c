package httpui

import (
	"regexp"
	"time"

	"github.com/sergi/go-diff/diffmatchpatch"
)

// change is a piece of a text: kept, taken out or put in.
type change struct {
	Kind string // "", "del", "ins"
	Text string
}

// The limits of a comparison: a page must not wait for it.
const (
	diffTime = 200 * time.Millisecond
	diffSize = 200_000 // bytes of both texts together
)

// differ compares texts by words.
type differ struct {
	piece *regexp.Regexp // a word, or what stands between words
}

func newDiffer() differ { return differ{regexp.MustCompile(`[\pL\pN]+|[^\pL\pN]`)} }

// changes tells how after differs from before; nil where they are equal or too
// long to compare.
func (d differ) changes(before, after string) []change {
	if before == after || len(before)+len(after) > diffSize {
		return nil
	}
	// The library compares runes: each distinct word becomes one.
	w := wordRunes{index: map[string]rune{}}
	a, b := w.runes(d.piece.FindAllString(before, -1)), w.runes(d.piece.FindAllString(after, -1))
	compare := diffmatchpatch.New()
	compare.DiffTimeout = diffTime
	parts := compare.DiffCleanupSemantic(compare.DiffMainRunes(a, b, false))
	changes := make([]change, 0, len(parts))
	for _, p := range parts {
		c := change{Text: w.text(p.Text)}
		switch p.Type {
		case diffmatchpatch.DiffDelete:
			c.Kind = "del"
		case diffmatchpatch.DiffInsert:
			c.Kind = "ins"
		case diffmatchpatch.DiffEqual:
		}
		changes = append(changes, c)
	}
	return changes
}

// wordRunes numbers words by runes.
type wordRunes struct {
	index map[string]rune
	words []string
}

// The surrogates are no runes; words beyond them are moved past.
const (
	surrogates    = 0xd800
	surrogateSpan = 0x800
)

func (w *wordRunes) runes(words []string) []rune {
	out := make([]rune, 0, len(words))
	for _, word := range words {
		r, ok := w.index[word]
		if !ok {
			r = rune(len(w.words) + 1)
			if r >= surrogates {
				r += surrogateSpan
			}
			w.index[word] = r
			w.words = append(w.words, word)
		}
		out = append(out, r)
	}
	return out
}

func (w *wordRunes) text(runes string) string {
	var out []byte
	for _, r := range runes {
		if r >= surrogates+surrogateSpan {
			r -= surrogateSpan
		}
		out = append(out, w.words[r-1]...)
	}
	return string(out)
}
