package words

import (
	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/russian"
)

// Stemmer cuts inflection off folded words: Snowball's Russian and English
// stemmers by script, after a table of words that they get wrong. It is not
// safe for concurrent use. The zero Stemmer is ready.
type Stemmer struct{ env snowballstem.Env }

// Stem returns the stem of a folded word. A word of script Other is its own.
func (s *Stemmer) Stem(word string, script Script) string {
	if script == Other {
		return word
	}
	if stem, ok := exceptions[word]; ok {
		return stem
	}
	s.env.SetCurrent(word)
	if script == Cyrillic {
		russian.Stem(&s.env)
	} else {
		english.Stem(&s.env)
	}
	if s.env.Current() == "" {
		return word
	}
	return s.env.Current()
}

// Exceptions calls f with each word that has a stem of its own.
func Exceptions(f func(word, stem string)) {
	for w, s := range exceptions {
		f(w, s)
	}
}
