package keyword

import (
	"encoding/binary"
	"slices"

	"vesti.nixg.ru/classify/words"
)

// The matcher walks once through the words of a text. Most of them begin like
// no keyword: a small bit set of beginnings lets them go for the price of a
// hash. The others are looked up by form and by stem. Where a word begins a
// keyword, the words after it decide.

// patternWord is one word of a keyword.
type patternWord struct {
	text  string
	exact bool // matches this form; else every form with this stem
}

// wordID numbers the words of all keywords; a form and a stem have IDs of their
// own. Zero is a word of no keyword.
type wordID = int32

type matcher struct {
	begins  prefixSet
	forms   map[string]wordID
	stems   map[string]wordID
	words   []ofWord               // by ID
	phrases map[[2]wordID][]phrase // by their first two words
}

// ofWord is what a word begins.
type ofWord struct {
	alone   []int32 // keywords that it is
	phrases bool    // there are keywords of which it is the first word
}

// phrase is a keyword whose first two words are known.
type phrase struct {
	rest    []wordID
	keyword int32
}

// token is a word of the text that is also one of a keyword.
type token struct {
	form, stem wordID
	start, end int32
	place      int32 // its number among the text's words
	brk        bool
}

// hit is a keyword found.
type hit struct {
	keyword    int32
	start, end int32 // in the title or the text
	place      int32 // of its first word
	title      bool
}

// scratch is the memory that one match needs. It grows with texts, not with
// rules.
type scratch struct {
	scanner words.Scanner
	stemmer words.Stemmer
	memo    stemMemo
	tokens  []token
	hits    []hit
}

// find appends the keywords in text to s.hits and returns the number of words.
func (m *matcher) find(s *scratch, text string, title bool) int {
	s.tokens = s.tokens[:0]
	place := int32(0)
	s.scanner.Reset(text)
	for s.scanner.Next() {
		place++
		word := s.scanner.Folded()
		if !m.begins.has(word) {
			continue
		}
		form, stem := m.forms[string(word)], m.stem(s, word)
		if form == 0 && stem == 0 {
			continue
		}
		start, end := s.scanner.Span()
		s.tokens = append(s.tokens, token{
			form: form, stem: stem, start: int32(start), end: int32(end), place: place, brk: s.scanner.Break(),
		})
	}
	for i := range s.tokens {
		t := &s.tokens[i]
		for _, id := range [2]wordID{t.form, t.stem} {
			if id == 0 {
				continue
			}
			for _, k := range m.words[id].alone {
				s.hits = append(s.hits, hit{keyword: k, start: t.start, end: t.end, place: t.place, title: title})
			}
			if m.words[id].phrases {
				m.findPhrases(s, i, id, title)
			}
		}
	}
	return int(place)
}

// findPhrases appends the phrases whose first word is token i, read as id.
func (m *matcher) findPhrases(s *scratch, i int, id wordID, title bool) {
	if !adjoins(s.tokens, i) {
		return
	}
	t, next := &s.tokens[i], &s.tokens[i+1]
	for _, second := range [2]wordID{next.form, next.stem} {
		if second == 0 {
			continue
		}
		for _, p := range m.phrases[[2]wordID{id, second}] {
			if last, ok := follow(s.tokens, i+1, p.rest); ok {
				s.hits = append(s.hits, hit{keyword: p.keyword, start: t.start, end: s.tokens[last].end, place: t.place, title: title})
			}
		}
	}
}

// adjoins reports whether the token after token i is the next word of the same
// sentence.
func adjoins(tokens []token, i int) bool {
	return i+1 < len(tokens) && tokens[i+1].place == tokens[i].place+1 && !tokens[i+1].brk
}

// follow reports whether the words rest stand right after token i, in the same
// sentence, and which token is the last of them.
func follow(tokens []token, i int, rest []wordID) (last int, ok bool) {
	for _, id := range rest {
		if !adjoins(tokens, i) {
			return 0, false
		}
		if i++; tokens[i].form != id && tokens[i].stem != id {
			return 0, false
		}
	}
	return i, true
}

func (m *matcher) stem(s *scratch, word []byte) wordID {
	script := s.scanner.Script()
	if script == words.Other || len(m.stems) == 0 {
		return 0
	}
	if id, ok := s.memo.get(word); ok {
		return id
	}
	seen := string(word)
	id := m.stems[s.stemmer.Stem(seen, script)]
	s.memo.put(seen, id)
	return id
}

// builder gathers keywords.
type builder struct {
	m     matcher
	next  wordID
	alone map[wordID][]int32
}

func (b *builder) init() {
	b.m.forms, b.m.stems = make(map[string]wordID), make(map[string]wordID)
	b.m.phrases = make(map[[2]wordID][]phrase)
	b.alone = make(map[wordID][]int32)
}

// add adds every way to read the words that are left after those in ids.
func (b *builder) add(left [][]patternWord, ids []wordID, keyword int32) {
	switch {
	case len(left) > 0:
		for _, w := range left[0] {
			b.add(left[1:], append(ids, b.id(w)), keyword)
		}
	case len(ids) == 1:
		b.alone[ids[0]] = append(b.alone[ids[0]], keyword)
	default:
		first := [2]wordID{ids[0], ids[1]}
		b.m.phrases[first] = append(b.m.phrases[first], phrase{rest: slices.Clone(ids[2:]), keyword: keyword})
	}
}

func (b *builder) id(w patternWord) wordID {
	table := b.m.stems
	if w.exact {
		table = b.m.forms
	}
	if id, ok := table[w.text]; ok {
		return id
	}
	b.next++
	table[w.text] = b.next
	return b.next
}

func (b *builder) matcher() matcher {
	b.m.words = make([]ofWord, b.next+1)
	for id, keywords := range b.alone {
		b.m.words[id].alone = keywords
	}
	for first := range b.m.phrases {
		b.m.words[first[0]].phrases = true
	}
	for form := range b.m.forms {
		b.m.begins.add(form)
	}
	for stem := range b.m.stems {
		b.m.begins.add(stem)
		// The English stemmer makes a final y an i, which counts where the stem is
		// no longer than the prefix that is looked at.
		if n := len(stem) - 1; n >= 0 && n < latinPrefix && stem[n] == 'i' {
			b.m.begins.add(stem[:n] + "y")
		}
	}
	words.Exceptions(func(word, stem string) {
		if _, ok := b.m.stems[stem]; ok {
			b.m.begins.add(word)
		}
	})
	return b.m
}

// prefixSet is a bit set of the hashes of the words' first three letters. A
// stemmer changes none of them: it takes letters from the end, and what is left
// has three at least.
type prefixSet [1 << (prefixBits - 6)]uint64

const (
	prefixBits     = 15
	latinPrefix    = 3 // bytes
	cyrillicPrefix = 6
)

func (s *prefixSet) add(word string) {
	h := prefixHash([]byte(word))
	s[h>>6] |= 1 << (h & 63)
}

func (s *prefixSet) has(word []byte) bool {
	h := prefixHash(word)
	return s[h>>6]&(1<<(h&63)) != 0
}

func prefixHash(word []byte) uint64 {
	n := latinPrefix
	if len(word) > 0 && word[0] >= 0x80 {
		n = cyrillicPrefix
	}
	var b [8]byte
	copy(b[:], word[:min(n, len(word))])
	return binary.LittleEndian.Uint64(b[:]) * 0x9E3779B97F4A7C15 >> (64 - prefixBits)
}

// stemMemo remembers the stems of words seen lately: a few hundred make up most
// of all texts. Each word has two places, so that two frequent ones which fall
// together do not drive each other out.
type stemMemo [1 << memoBits]struct {
	word string
	id   wordID
}

const memoBits = 12

func (m *stemMemo) get(word []byte) (wordID, bool) {
	h := memoHash(word)
	for _, i := range [2]uint64{h, h ^ 1} {
		if e := &m[i]; e.word == string(word) && e.word != "" {
			return e.id, true
		}
	}
	return 0, false
}

// put moves what is in the word's first place to the second.
func (m *stemMemo) put(word string, id wordID) {
	h := memoHash(word)
	m[h^1] = m[h]
	m[h].word, m[h].id = word, id
}

func memoHash[T string | []byte](word T) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(word) {
		h = (h ^ uint64(word[i])) * 1099511628211
	}
	return (h ^ h>>32) & (1<<memoBits - 1)
}
