package feed

import "vesti.nixg.ru/ledger"

// sharedTexts are texts that several entries of a run have under different
// titles: a teaser ("read the full story on our site"), a subscription notice
// in place of the article. Such a text identifies no post, and its entries would
// fall together; with its title before it each stays a post of its own.
type sharedTexts struct {
	title map[string]string // by text, of the first entry that had it
	many  map[string]bool   // texts under more than one title
}

// newSharedTexts looks through a whole document, known entries too, so that the
// next new entry with the same teaser is told as well.
func newSharedTexts(entries []Entry) sharedTexts {
	s := sharedTexts{title: map[string]string{}, many: map[string]bool{}}
	for i := range entries {
		s.see(entries[i].rawText(), entries[i].Title)
	}
	return s
}

// see notes that title has text, and reports whether another title has it too.
func (s sharedTexts) see(text, title string) bool {
	if text == "" {
		return false
	}
	first, seen := s.title[text]
	if !seen {
		s.title[text] = title
	} else if first != title {
		s.many[text] = true
	}
	return s.many[text]
}

// tellApart puts the title before the item's text where the text is shared. raw
// is the entry's text as the feed has it; a page's text is compared as it is.
func (s sharedTexts) tellApart(it *ledger.Item, raw string) {
	if it.TextFrom == ledger.TextPage || it.TextFrom == ledger.TextSelector {
		raw = it.Text
	}
	if it.Title != "" && s.see(raw, it.Title) {
		it.Text = it.Title + "\n\n" + it.Text
		cutText(it)
	}
}

// rawText is what text reads, before it is made plain.
func (e *Entry) rawText() string {
	if e.Content.Value != "" {
		return e.Content.Value
	}
	return e.Summary.Value
}
