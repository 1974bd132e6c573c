package feed

import (
	"context"

	"vesti.nixg.ru/ledger"
)

// leastNotices is how many articles' pages, beside the one that was taken for
// an article's text, make a notice of it. One may be the same article once more,
// under another headline and address.
const leastNotices = 2

// notices are what the pages of a site had in the place of articles ("accept
// our cookies", "subscribe"). That the first one is none cannot be seen: it is
// taken for its article's text, until other articles' pages have it too.
type notices struct {
	count map[ledger.PostID]int            // by text, of pages that had another article's
	texts map[ledger.ItemKey]ledger.PostID // of the entries that this run took
}

func newNotices() notices {
	return notices{count: map[ledger.PostID]int{}, texts: map[ledger.ItemKey]ledger.PostID{}}
}

// takeBack gives entries that have a notice for their text the feed's own.
func (t *taking) takeBack(ctx context.Context, entries []*Entry, known []ledger.KnownItem) error {
	before := 0 // entries whose pages were notices in earlier runs
	for i, e := range entries {
		if known[i].Post != 0 && known[i].Fingerprint == e.noticed() {
			before++
		}
	}
	for id, n := range t.notices.count {
		if n+before < leastNotices {
			continue
		}
		for i, e := range entries {
			if !t.notices.holds(e, known[i], id) {
				continue
			}
			item := t.item(t.job, t.doc, e)
			item.Fingerprint = e.noticed()
			t.log.DebugContext(ctx, "text is a notice, taken back", "source", string(item.Source), "url", item.URL)
			if err := t.add(ctx, e, item, known[i].Post); err != nil {
				return err
			}
		}
	}
	return t.flush(ctx)
}

// holds reports whether the entry has, from its page, the text that id
// identifies.
func (n *notices) holds(e *Entry, known ledger.KnownItem, id ledger.PostID) bool {
	if text, taken := n.texts[e.key]; taken {
		return text == id
	}
	return known.Has(id) && known.Fingerprint != e.noticed()
}
