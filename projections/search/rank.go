package search

import (
	"errors"
	"math"
	"slices"

	index "github.com/blevesearch/bleve_index_api"
)

// The constants of BM25 as its authors give them, and what a word in the title
// is worth beside one in the text.
const (
	saturation  = 1.2  // k1: how soon a further occurrence counts for nothing
	lengthShare = 0.75 // b: how much a document's length counts
	titleWeight = 0.4
)

// score gives each hit the sum of BM25 over the terms that root wants, in the
// text and in the title. bleve has a BM25 too, but it takes the number of
// distinct terms in a segment for the length of a document, the square root of
// a frequency for the frequency, squares the rarity of a term, and multiplies
// by the share of the terms that were found.
func (e *evaluator) score(hits []hit, root node, l lengths) error {
	if len(hits) == 0 {
		return nil
	}
	total, err := e.reader.DocCount()
	if err != nil {
		return err
	}
	terms := wantedTerms(root)
	e.rarity = make(map[string]float64, len(terms))
	for _, f := range []struct {
		name   string
		sum    uint64
		weight float64
	}{{fieldText, l.inText, 1}, {fieldTitle, l.inTitle, titleWeight}} {
		mean := float64(max(f.sum, 1)) / float64(max(l.documents, 1))
		for _, term := range terms {
			if e.ctx.Err() != nil {
				return errCut
			}
			if err := e.addTerm(hits, f.name, term, f.weight, float64(total), mean); err != nil {
				return err
			}
		}
	}
	return nil
}

// addTerm adds a term's worth to the hits that have it. Both are in the order of
// bleve's numbers.
func (e *evaluator) addTerm(hits []hit, field, term string, weight, total, mean float64) (err error) {
	list, err := e.reader.TermFieldReader(e.ctx, []byte(term), field, true, true, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, list.Close()) }()
	with := float64(list.Count())
	rarity := math.Log(1 + max(0, total-with+0.5)/(with+0.5))
	if field == fieldText {
		e.rarity[term] = rarity
	}
	var (
		space  index.TermFieldDoc
		target index.IndexInternalID
	)
	doc, err := list.Next(&space)
	for i := 0; i < len(hits) && doc != nil && err == nil; {
		switch id := doc.ID.Value(); {
		case id == hits[i].id:
			hits[i].score += weight * rarity * bm25(float64(doc.Freq), doc.Norm, mean)
			i++
			doc, err = list.Next(space.Reset())
		case id > hits[i].id:
			i++
		default:
			target = index.NewIndexInternalID(target, hits[i].id)
			doc, err = list.Advance(target, space.Reset())
		}
	}
	return err
}

// bm25 is the part of the formula that depends on the document: Robertson and
// Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009. norm
// is one over the square root of the document's length, as bleve stores it.
func bm25(frequency, norm, mean float64) float64 {
	length := mean
	if norm > 0 {
		length = 1 / (norm * norm)
	}
	return frequency * (saturation + 1) / (frequency + saturation*(1-lengthShare+lengthShare*length/mean))
}

// wantedTerms lists the terms that a query wants, each once.
func wantedTerms(n node) []string {
	var terms []string
	walk(n, func(n node) {
		switch n := n.(type) {
		case termNode:
			terms = append(terms, n.term)
		case phraseNode:
			terms = append(terms, n.terms...)
		}
	})
	slices.Sort(terms)
	return slices.Compact(terms)
}
