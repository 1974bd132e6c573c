package search

import (
	"strings"
	"unicode/utf8"

	"vesti.nixg.ru/projections/search/analyse"
)

// query is a query as it was understood.
type query struct {
	root   node // nil where no text is looked for
	fields fields
	notes  []Note
}

// node is a part of a query that looks for text.
type node interface{ isNode() }

type (
	// andNode wants all of its kids, orNode any of them. A notNode among the kids
	// of an andNode excludes.
	andNode struct{ kids []node }
	orNode  struct{ kids []node }
	notNode struct{ kid node }

	// allNode is every post.
	allNode struct{}
	// termNode is a word in any of its forms. form is the one that was typed, ""
	// for none.
	termNode struct{ field, term, form string }
	// phraseNode is words next to each other, and the forms that were typed.
	phraseNode struct {
		field        string
		terms, forms []string
	}
	// prefixNode is any word that begins so.
	prefixNode struct {
		field, text string
		prefix      analyse.Prefix
	}
)

func (andNode) isNode()    {}
func (orNode) isNode()     {}
func (notNode) isNode()    {}
func (allNode) isNode()    {}
func (termNode) isNode()   {}
func (phraseNode) isNode() {}
func (prefixNode) isNode() {}

const (
	maxQuery = 2000 // bytes; the rest is cut
	maxWords = 64   // words, phrases and prefixes; further ones are left out
	maxDepth = 8    // of parentheses
)

// compiler turns what was typed into nodes.
type compiler struct {
	stemmer *analyse.Stemmer
	words   int
	notes   []Note
}

// text returns the node of a word or, in quotes, of a phrase; nil where there is
// nothing to look for in it.
func (c *compiler) text(field, typed string, prefix bool) node {
	if strings.Trim(typed, "* \t") == "" && prefix {
		return allNode{}
	}
	var kids []node
	var chains []analyse.Chain
	analyse.Scan(typed, func(ch *analyse.Chain) {
		chains = append(chains, analyse.Chain{Parts: append([]analyse.Part(nil), ch.Parts...), Joined: ch.Joined})
	})
	if len(chains) == 0 {
		return nil
	}
	if c.words++; c.words > maxWords {
		c.note(NoteTooMany, typed)
		return nil
	}
	if prefix {
		last := &chains[len(chains)-1]
		if n := c.prefix(field, last); n != nil {
			kids = append(kids, n)
			last.Parts, last.Joined = last.Parts[:len(last.Parts)-1], ""
			if len(last.Parts) == 0 {
				chains = chains[:len(chains)-1]
			}
		}
	}
	if n := c.phrase(field, chains); n != nil {
		kids = append(kids, n)
	}
	if len(kids) == 1 {
		return kids[0]
	}
	return andNode{kids}
}

// phrase returns the node of chains that stand next to each other.
func (c *compiler) phrase(field string, chains []analyse.Chain) node {
	var terms, forms []string
	for i := range chains {
		for j := range chains[i].Parts {
			terms = append(terms, c.stemmer.Part(&chains[i].Parts[j]))
			forms = append(forms, chains[i].Parts[j].Text)
		}
	}
	switch {
	case len(terms) == 0:
		return nil
	case len(terms) == 1:
		return termNode{field, terms[0], forms[0]}
	case len(chains) == 1 && chains[0].Joined != "":
		return orNode{[]node{termNode{field, c.stemmer.Joined(&chains[0]), ""}, phraseNode{field, terms, forms}}}
	default:
		return phraseNode{field, terms, forms}
	}
}

// prefix returns the node of a chain's last part as the start of a word. Of
// "cat-dog*" it is dog; what stands before it is a word of its own.
func (c *compiler) prefix(field string, ch *analyse.Chain) node {
	p := &ch.Parts[len(ch.Parts)-1]
	if p.Whole() {
		return nil
	}
	return prefixNode{field: field, text: p.Text, prefix: c.stemmer.Prefix(p)}
}

func (c *compiler) note(reason NoteReason, part string) {
	const most = 20
	if len(c.notes) < most {
		c.notes = append(c.notes, Note{Reason: reason, Part: part})
	}
}

// expansion is how many of the terms that begin with the prefix are searched. A
// letter or two begin tens of thousands, of which the frequent ones are in nearly
// every post that has any.
func (p prefixNode) expansion() int {
	if utf8.RuneCountInString(p.text) <= 2 {
		return 1024
	}
	return 4096
}
