package ledgertest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"vesti.nixg.ru/ledger"
)

// Prose makes up texts for benchmarks, of Cyrillic and Latin words that repeat
// about as words of news do, so that compression finds in them what it finds
// there. It is not safe for concurrent use.
type Prose struct {
	src      *rand.PCG
	rng      *rand.Rand
	zipf     *rand.Zipf
	seed     uint64
	cyrillic []string
	latin    []string
}

// NewProse returns a Prose. The same seed gives the same texts.
func NewProse(seed uint64) *Prose {
	const words = 8000
	src := rand.NewPCG(seed, 1)
	rng := rand.New(src) //nolint:gosec // the same posts in every run
	return &Prose{
		src: src, rng: rng, seed: seed,
		zipf:     rand.NewZipf(rng, 1.1, 8, words-1),
		cyrillic: lexicon(rng, words, strings.Fields("а е и о у я ов ер ст пр на ко ни ра во то не ла ре ли мо ви ка по де ми за ть ный ого ение ция")),
		latin:    lexicon(rng, words, strings.Fields("a e i o u er st pr na co ni ra vo to ne la re li mo vi ca po de mi ing ed tion ment able")),
	}
}

func lexicon(rng *rand.Rand, n int, syllables []string) []string {
	words := make([]string, n)
	for i := range words {
		var b strings.Builder
		for range 2 + rng.IntN(4) {
			b.WriteString(syllables[rng.IntN(len(syllables))])
		}
		words[i] = b.String()
	}
	return words
}

// Post returns the n'th item of a source: a title of 70 bytes and a text of
// size/2 to 3*size/2 bytes, three in four of them mostly Cyrillic. The same
// arguments give the same item, in any order of the calls.
func (p *Prose) Post(source ledger.Slug, n, size int) ledger.Item {
	p.src.Seed(p.seed, uint64(n)+2)
	i := Item(source, fmt.Sprint(n))
	words := p.cyrillic
	if p.rng.IntN(4) == 0 {
		i.Lang, words = "en", p.latin
	}
	i.Title = p.sentence(words, 70)
	i.Text = fmt.Sprintf("№ %d. %s", n, p.sentence(words, size/2+p.rng.IntN(size)))
	return i
}

// sentence returns running text of about size bytes, one word in eight of it Latin.
func (p *Prose) sentence(words []string, size int) string {
	var b strings.Builder
	b.Grow(size + 32)
	for b.Len() < size {
		from := words
		if p.rng.IntN(8) == 0 {
			from = p.latin
		}
		b.WriteString(from[p.zipf.Uint64()])
		if p.rng.IntN(9) == 0 {
			b.WriteString(".")
		}
		b.WriteString(" ")
	}
	return strings.TrimSpace(b.String())
}
