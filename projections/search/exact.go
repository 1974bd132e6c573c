package search

import (
	"context"
	"errors"
	"fmt"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/projections/posts"
	"vesti.nixg.ru/projections/search/analyse"
)

// The index has words without their endings and cannot tell Иванов from Иванова,
// nor news from new. So the best hits are looked at once more in the ledger, and
// those with the words as they were typed gain a little.
const (
	exactTop    = 100 // hits that are looked at
	exactWeight = 0.2 // what a hit with every word as typed gains, as a share of its score
)

// exactWord is a word of a query as it was typed.
type exactWord struct {
	field, form string
	weight      float64 // how rare the word is in any form
}

// exactWords lists the words that root wants, each once.
func exactWords(root node, rarity map[string]float64) []exactWord {
	var words []exactWord
	seen := map[exactWord]bool{}
	add := func(field, term, form string) {
		w := exactWord{field, form, rarity[term]}
		if form != "" && w.weight > 0 && !seen[w] {
			seen[w] = true
			words = append(words, w)
		}
	}
	walk(root, func(n node) {
		switch n := n.(type) {
		case termNode:
			add(n.field, n.term, n.form)
		case phraseNode:
			for i, term := range n.terms {
				add(n.field, term, n.forms[i])
			}
		}
	})
	return words
}

// preferTyped returns what raises the scores of hits that have words as they
// were typed; nil where there are no such words.
func (s *Search) preferTyped(root node, rarity map[string]float64) func(context.Context, []posts.Match) error {
	words := exactWords(root, rarity)
	if len(words) == 0 {
		return nil
	}
	wanted := make(map[string]bool, len(words))
	for _, w := range words {
		wanted[w.form] = true
	}
	return func(ctx context.Context, best []posts.Match) error {
		for i := range best {
			full, err := s.texts.Post(ctx, best[i].Num)
			switch {
			case errors.Is(err, ledger.ErrNotFound), errors.Is(err, ledger.ErrUnreadable):
			case err != nil:
				return fmt.Errorf("read a hit: %w", err)
			default:
				best[i].Score *= 1 + exactWeight*typedShare(words, formsIn(full.Item.Title, wanted), formsIn(ledger.CutText(full.Item.Text, snippetWithin), wanted))
			}
		}
		return nil
	}
}

// formsIn returns which of the wanted forms stand in text.
func formsIn(text string, wanted map[string]bool) map[string]bool {
	there := map[string]bool{}
	analyse.Scan(text, func(c *analyse.Chain) {
		for i := range c.Parts {
			if form := c.Parts[i].Text; wanted[form] {
				there[form] = true
			}
		}
	})
	return there
}

// typedShare is how much of the words, by their weight, stands as it was typed in
// a post with these forms.
func typedShare(words []exactWord, inTitle, inText map[string]bool) float64 {
	var all, found float64
	for _, w := range words {
		all += w.weight
		if inTitle[w.form] || w.field == fieldText && inText[w.form] {
			found += w.weight
		}
	}
	return found / all
}
