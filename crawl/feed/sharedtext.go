package feed

import (
	"context"
	"fmt"
	"net/url"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/ledger"
)

// sharedTexts know the texts that stand under several titles: a teaser ("read
// the full story on our site"), a notice in the place of every article
// ("subscribe", "checking your browser"). Such a text identifies no post, and
// its articles would fall together. A page's is not taken, and a feed's gets its
// title before it, so that each article stays a post of its own.
//
// They look through the whole document, known entries too; at what the run
// itself took; and at what the ledger has from earlier runs.
type sharedTexts struct {
	source ledger.Slug
	sink   crawl.Sink
	title  map[string]string        // by text as the feed has it, of the first entry that had it
	many   map[string]bool          // texts under more than one title
	taken  map[ledger.PostID]holder // by this run
}

// holder is an item that has a text.
type holder struct{ title, url string }

func newSharedTexts(job crawl.Job, entries []Entry) *sharedTexts {
	s := &sharedTexts{
		source: job.Source.Slug, sink: job.Sink,
		title: map[string]string{}, many: map[string]bool{}, taken: map[ledger.PostID]holder{},
	}
	for i := range entries {
		s.see(entries[i].rawText(), entries[i].Title)
	}
	return s
}

// see notes that title has text.
func (s *sharedTexts) see(text, title string) {
	if text == "" {
		return
	}
	if first, seen := s.title[text]; !seen {
		s.title[text] = title
	} else if first != title {
		s.many[text] = true
	}
}

// anothers reports whether the text that id identifies, and that it would get,
// is another article's: an item of the same source or site has it under another
// title and address. own is the item's post, zero for a new item.
func (s *sharedTexts) anothers(ctx context.Context, it *ledger.Item, id ledger.PostID, own ledger.PostNum) (bool, error) {
	if it.Title == "" {
		return false, nil
	}
	if h, ok := s.taken[id]; ok {
		return h.unlike(it), nil
	}
	known, err := s.sink.KnownText(ctx, s.source, id)
	if err != nil {
		return false, fmt.Errorf("look up text: %w", err)
	}
	h := holder{known.Title, known.CanonicalURL}
	return known.Post != 0 && known.Post != own && (known.Carried || sameSite(h.url, it.CanonicalURL)) && h.unlike(it), nil
}

// unlike reports whether h is not the same article under another key.
func (h holder) unlike(it *ledger.Item) bool {
	return lettersOf(h.title) != lettersOf(it.Title) && (h.url == "" || h.url != it.CanonicalURL)
}

func sameSite(a, b string) bool {
	ua, err := url.Parse(a)
	if err != nil || ua.Host == "" {
		return false
	}
	ub, err := url.Parse(b)
	return err == nil && ua.Host == ub.Host
}

// take puts the title before the item's text where that is the feed's own and
// shared, and notes that the item has the text, whose identity it returns. raw is
// the text as the feed has it.
func (s *sharedTexts) take(ctx context.Context, it *ledger.Item, raw string, own ledger.PostNum) (ledger.PostID, error) {
	id := ledger.IdentifyText(it.Text, it.Key)
	if !isFromPage(it) && it.Text != "" {
		shared := it.Title != "" && s.many[raw]
		if !shared {
			var err error
			if shared, err = s.anothers(ctx, it, id, own); err != nil {
				return id, err
			}
		}
		if shared {
			it.Text = it.Title + "\n\n" + it.Text
			cutText(it)
			id = ledger.IdentifyText(it.Text, it.Key)
		}
	}
	s.taken[id] = holder{it.Title, it.CanonicalURL}
	return id, nil
}

// rawText is what text reads, before it is made plain.
func (e *Entry) rawText() string {
	if e.Content.Value != "" {
		return e.Content.Value
	}
	return e.Summary.Value
}
