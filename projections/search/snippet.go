package search

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/projections/search/analyse"
)

const (
	snippetRunes  = 240
	snippetLead   = 60       // runes before the first thing found
	snippetWithin = 64 << 10 // bytes of a text that are looked through
	ellipsis      = "…"
)

// marker finds in a text what a query looks for.
type marker struct {
	stemmer *analyse.Stemmer
	terms   map[string]bool
	starts  []string
	phrases [][]string
}

// newMarker marks what root wants, and nothing where root is nil.
func newMarker(stemmer *analyse.Stemmer, root node) *marker {
	m := &marker{stemmer: stemmer, terms: map[string]bool{}}
	if root == nil {
		return m
	}
	walk(root, func(n node) {
		switch n := n.(type) {
		case termNode:
			m.terms[n.term] = true
		case phraseNode:
			m.phrases = append(m.phrases, n.terms)
		case prefixNode:
			m.starts = append(m.starts, n.text)
			m.starts = append(m.starts, n.prefix.Starts...)
			for _, t := range n.prefix.Terms {
				m.terms[t] = true
			}
		}
	})
	return m
}

// span is a piece of text that was found, in bytes.
type span struct {
	start, end int
	what       string // the term, so that different ones can be counted
}

// spans returns what is found in text, in order and without overlaps.
func (m *marker) spans(text string) []span {
	if len(m.terms)+len(m.starts)+len(m.phrases) == 0 {
		return nil
	}
	var parts []span
	var marked []bool
	analyse.Scan(text, func(c *analyse.Chain) {
		first := len(parts)
		for i := range c.Parts {
			p := &c.Parts[i]
			term := m.stemmer.Part(p)
			parts = append(parts, span{p.Start, p.End, term})
			marked = append(marked, m.terms[term] || m.startsLike(p.Text, term))
		}
		if c.Joined != "" && m.terms[m.stemmer.Joined(c)] {
			for i := first; i < len(parts); i++ {
				marked[i] = true
			}
		}
	})
	for _, phrase := range m.phrases {
		markPhrase(parts, marked, phrase)
	}
	var found []span
	for i, p := range parts {
		if marked[i] {
			found = append(found, p)
		}
	}
	return found
}

func (m *marker) startsLike(word, term string) bool {
	for _, s := range m.starts {
		if strings.HasPrefix(word, s) || strings.HasPrefix(term, s) {
			return true
		}
	}
	return false
}

func markPhrase(parts []span, marked []bool, phrase []string) {
	for i := 0; i+len(phrase) <= len(parts); i++ {
		same := true
		for j, term := range phrase {
			same = same && parts[i+j].what == term
		}
		if same {
			for j := range phrase {
				marked[i+j] = true
			}
		}
	}
}

// whole returns all of text with marks.
func (m *marker) whole(text string) []Segment {
	text = oneLine(text)
	return segments(text, m.spans(text), 0, len(text))
}

// excerpt returns the part of text with the most different things found, the
// beginning where nothing is.
func (m *marker) excerpt(text string) []Segment {
	text = oneLine(ledger.CutText(text, snippetWithin))
	found := m.spans(text)
	start, end := bestWindow(text, found)
	out := segments(text, found, start, end)
	if start > 0 {
		out = append([]Segment{{Text: ellipsis}}, out...)
	}
	if end < len(text) {
		out = append(out, Segment{Text: ellipsis})
	}
	return joined(out)
}

// bestWindow tries a window from each thing found.
func bestWindow(text string, found []span) (start, end int) {
	if len(found) == 0 {
		return 0, forward(text, 0, snippetRunes)
	}
	bestScore := -1
	for i := range found {
		from := backward(text, found[i].start, snippetLead)
		to := forward(text, from, snippetRunes)
		score := 0
		different := map[string]bool{}
		for j := i; j < len(found) && found[j].end <= to; j++ {
			if !different[found[j].what] {
				different[found[j].what] = true
				score += 100
			}
			score++
		}
		if score > bestScore {
			bestScore, start, end = score, from, to
		}
		const enough = 400 // windows: a text full of one word needs no more
		if i >= enough {
			break
		}
	}
	return start, end
}

// backward returns a place some runes before at, where a word begins.
func backward(text string, at, runes int) int {
	from := at
	for range runes {
		_, size := utf8.DecodeLastRuneInString(text[:from])
		from -= size
	}
	if from == 0 {
		return 0
	}
	if space := strings.IndexByte(text[from:at], ' '); space >= 0 {
		return from + space + 1
	}
	return at
}

// forward returns a place at most some runes after at, where a word ends.
func forward(text string, at, runes int) int {
	to := at
	for range runes {
		if to >= len(text) {
			return len(text)
		}
		_, size := utf8.DecodeRuneInString(text[to:])
		to += size
	}
	if to >= len(text) {
		return len(text)
	}
	if space := strings.LastIndexByte(text[at:to], ' '); space > 0 {
		return at + space
	}
	return to
}

// segments cuts text[start:end] at what was found.
func segments(text string, found []span, start, end int) []Segment {
	var out []Segment
	at := start
	for _, s := range found {
		if s.start < at || s.end > end {
			continue
		}
		if s.start > at {
			out = append(out, Segment{Text: text[at:s.start]})
		}
		out = append(out, Segment{Text: text[s.start:s.end], Mark: true})
		at = s.end
	}
	if at < end {
		out = append(out, Segment{Text: text[at:end]})
	}
	return out
}

// joined makes one of neighbours that are marked alike.
func joined(in []Segment) []Segment {
	var out []Segment
	for _, s := range in {
		if n := len(out); n > 0 && out[n-1].Mark == s.Mark {
			out[n-1].Text += s.Text
			continue
		}
		out = append(out, s)
	}
	return out
}

// oneLine writes each run of white space as one space.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, unicode.IsSpace), " ")
}
