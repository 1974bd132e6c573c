package learned

import (
	"cmp"
	"math"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"vesti.nixg.ru/classify/words"
	"vesti.nixg.ru/ledger"
)

const (
	// bits is the logarithm of the number of buckets that features are hashed to.
	bits    = 17
	buckets = 1 << bits

	prefixLetters = 4
)

// kind is a kind of features. Each kind's features are brought to one length by
// themselves, so that the many of one do not drown the few of another.
type kind uint8

const (
	kindStem    kind = iota // stems of words
	kindPair                // pairs of stems that stand together
	kindPrefix              // first letters of long words
	kindLink                // hosts that the text links to
	kindMark                // hash tags, pictograms
	kindRule                // keyword rules that fired
	kindSubject             // and what they speak for
	kinds
)

// share is the length that the features of a kind have in a text's vector.
func (k kind) share() float32 {
	if k == kindPair || k == kindPrefix {
		return 0.5
	}
	return 1
}

// feature is a feature of one text.
type feature struct {
	bucket uint32
	kind   kind
	count  float32
}

// extractor takes features from texts. It is not safe for concurrent use.
type extractor struct {
	scanner words.Scanner
	stemmer words.Stemmer
	list    []feature
	names   map[uint32]string   // of the features, for a person; nil keeps none
	masked  map[string]struct{} // stems to leave out
}

// features returns the features of an item, in the order of their buckets. They
// are valid until the next call. reasons are those of the keyword rules; nil
// leaves them out.
func (x *extractor) features(item *ledger.Item, reasons []ledger.Reason) []feature {
	x.list = x.list[:0]
	text := item.Text
	if !strings.HasPrefix(text, item.Title) {
		x.words(item.Title)
	}
	x.words(text)
	for field := range strings.FieldsSeq(text) {
		x.mark(field)
	}
	for _, r := range reasons {
		if r.Stage == "keyword" && r.Weight > 0 {
			x.add(kindRule, r.Rule, float32(r.Weight))
			x.add(kindSubject, r.Note, float32(r.Weight))
		}
	}
	return x.merged()
}

func (x *extractor) words(text string) {
	before := ""
	x.scanner.Reset(text)
	for x.scanner.Next() {
		word := string(x.scanner.Folded())
		stem := x.stemmer.Stem(word, x.scanner.Script())
		if _, masked := x.masked[stem]; masked {
			before = ""
			continue
		}
		x.add(kindStem, stem, 1)
		if before != "" && !x.scanner.Break() {
			x.add(kindPair, before+" "+stem, 1)
		}
		if utf8.RuneCountInString(word) > prefixLetters {
			x.add(kindPrefix, prefix(word), 1)
		}
		before = stem
	}
}

func prefix(word string) string {
	n := 0
	for i := range word {
		if n == prefixLetters {
			return word[:i]
		}
		n++
	}
	return word
}

// mark looks at what the scanner leaves out: links, tags, pictograms.
func (x *extractor) mark(field string) {
	if i := strings.Index(field, "://"); i >= 0 {
		begin := strings.LastIndexFunc(field[:i], func(r rune) bool { return !unicode.IsLetter(r) }) + 1
		end := strings.IndexAny(field[i:], ")]>\"»")
		if end < 0 {
			end = len(field) - i
		}
		if u, err := url.Parse(field[begin : i+end]); err == nil && u.Host != "" {
			host := strings.TrimPrefix(strings.ToLower(u.Host), "www.")
			x.add(kindLink, host, 1)
			if host == "t.me" { // the channel says more than the host
				x.add(kindLink, host+"/"+firstSegment(u.Path), 1)
			}
		}
	}
	if len(field) > 1 && field[0] == '#' {
		x.add(kindMark, strings.ToLower(field), 1)
	}
	for _, r := range field {
		if r >= 0x2190 && unicode.IsSymbol(r) {
			x.add(kindMark, string(r), 1)
		}
	}
}

func firstSegment(path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return strings.ToLower(first)
}

func (x *extractor) add(k kind, name string, count float32) {
	f := feature{bucket: bucket(k, name), kind: k, count: count}
	if x.names != nil {
		x.names[f.bucket] = name
	}
	x.list = append(x.list, f)
}

// merged brings features of one bucket together.
func (x *extractor) merged() []feature {
	slices.SortFunc(x.list, func(a, b feature) int { return cmp.Compare(a.bucket, b.bucket) })
	n := 0
	for i, f := range x.list {
		if i > 0 && f.bucket == x.list[n-1].bucket {
			x.list[n-1].count += f.count
			continue
		}
		x.list[n] = f
		n++
	}
	x.list = x.list[:n]
	return x.list
}

// bucket hashes a feature's name with FNV-1a.
func bucket(k kind, name string) uint32 {
	h := (uint64(14695981039346656037) ^ uint64(k)) * 1099511628211
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return uint32((h ^ h>>32) & (buckets - 1))
}

// weight is what a count is worth before the model's scale: repetitions add
// less and less.
func (f feature) weight() float32 {
	if f.kind == kindRule || f.kind == kindSubject {
		return float32(math.Sqrt(float64(f.count)))
	}
	return 1 + float32(math.Log(float64(f.count)))
}
