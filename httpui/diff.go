package httpui

import (
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

// wordChanges tells how after differs from before, in pieces that a reader can
// follow; nil where they are equal or too long to compare.
func wordChanges(before, after string) []change {
	if before == after || len(before)+len(after) > diffSize {
		return nil
	}
	d := diffmatchpatch.New()
	d.DiffTimeout = diffTime
	parts := d.DiffCleanupSemantic(d.DiffMain(before, after, false))
	changes := make([]change, 0, len(parts))
	for _, p := range d.DiffCleanupSemanticLossless(parts) {
		c := change{Text: p.Text}
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
