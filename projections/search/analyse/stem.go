package analyse

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/russian"
)

// cacheSize bounds the stems that are remembered. Half of a text's words are
// among the most frequent few thousand.
const cacheSize = 1 << 16

// minStemmed is the length, in letters, from which words are stemmed: ии (the
// Russian for AI) must not become и (and).
const minStemmed = 3

// Stemmer reduces words to what their forms have in common, by the script that
// they are written in. It is safe for concurrent use; the zero Stemmer is not.
type Stemmer struct {
	mu    sync.RWMutex // guards known
	known map[string]string
}

// NewStemmer returns a stemmer.
func NewStemmer() *Stemmer { return &Stemmer{known: map[string]string{}} }

// Part returns the term of a part.
func (s *Stemmer) Part(p *Part) string {
	if p.whole || p.digits {
		return p.Text
	}
	return s.stem(p.script, p.Text)
}

// Joined returns the term of a chain's joined form.
func (s *Stemmer) Joined(c *Chain) string {
	for i := range c.Parts {
		if c.Parts[i].digits {
			return c.Joined
		}
	}
	return s.stem(c.Parts[0].script, c.Joined)
}

func (s *Stemmer) stem(script class, word string) string {
	if script != cyrillic && script != latin || utf8.RuneCountInString(word) < minStemmed {
		return word
	}
	s.mu.RLock()
	stem, ok := s.known[word]
	s.mu.RUnlock()
	if ok {
		return stem
	}
	if script == cyrillic {
		stem = stemRussian(word)
	} else {
		stem = stemEnglish(word)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= cacheSize {
		clear(s.known)
	}
	s.known[strings.Clone(word)] = stem
	return stem
}

func stemEnglish(word string) string {
	if stem, ok := englishStems[word]; ok {
		return stem
	}
	if lemma, ok := englishForms[word]; ok {
		word = lemma
	}
	env := snowballstem.NewEnv(word)
	english.Stem(env)
	return env.Current()
}

func stemRussian(word string) string {
	if stem, ok := russianStems[word]; ok {
		return stem
	}
	if lemma, ok := russianForms[word]; ok {
		word = lemma
	}
	env := snowballstem.NewEnv(word)
	russian.Stem(env)
	return dropFleeting(word, dropPossessive(env.Current()))
}

// dropPossessive takes ов or ев from the end of a stem. The stemmer takes it for the
// ending of a genitive and makes Иванов and Киев иван and ки, where Иванова is иванов;
// with this all of their forms meet. It is looked for where the stemmer looks, behind
// a word's first vowel.
func dropPossessive(stem string) string {
	first := strings.IndexAny(stem, vowels)
	for _, ending := range []string{"ов", "ев"} {
		if rest, ok := strings.CutSuffix(stem, ending); ok && first >= 0 && len(rest) > first {
			return rest
		}
	}
	return stem
}

const vowels = "аеиоуыэюя"

// adjectival are endings that only adjectives have: жестокий keeps its о and
// stays apart from жёсткий.
var adjectival = []string{"ий", "ая", "ое", "ие", "ого", "ому", "им", "их", "ими", "ую", "ой", "ою"}

// dropFleeting takes the vowel from the end of a stem that loses it in other
// forms: рынок, рынка; конец, конца; сборок, сборка; копеек, копейка. Where no
// form loses it, all are changed alike and still meet.
func dropFleeting(word, stem string) string {
	ending, ok := strings.CutPrefix(word, stem)
	if !ok || slices.Contains(adjectival, ending) {
		return stem
	}
	const width = 2 // bytes of a Cyrillic letter
	if utf8.RuneCountInString(stem) < 4 || len(stem) < 4*width {
		return stem
	}
	cut := len(stem) - 2*width
	switch stem[cut:] {
	case "ок", "ек", "ец":
	default:
		return stem
	}
	if before, _ := utf8.DecodeLastRuneInString(stem[:cut]); strings.ContainsRune(vowels, before) {
		if ending == "" && stem[cut:] == "ек" {
			return stem[:cut] + "йк"
		}
		return stem
	}
	return stem[:cut] + stem[cut+width:]
}
