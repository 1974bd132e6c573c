package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/blevesearch/bleve/v2/search"
	"github.com/blevesearch/bleve/v2/search/searcher"
	index "github.com/blevesearch/bleve_index_api"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/projections/posts"
)

// checkEvery is how many hits are taken between two looks at the context.
const checkEvery = 1024

// errCut: the search ran out of time. What was found until then counts.
var errCut = errors.New("search was cut short")

// found is what a search for text gives.
type found struct {
	matches []posts.Match
	rarity  map[string]float64 // of the terms that were scored
	cut     bool               // the time was over
	partial bool               // a prefix had more terms than were searched
}

// match evaluates root on the index as it is now, and scores what it finds
// where that is asked for.
func (f *fold) match(ctx context.Context, root node, scored bool) (found, error) {
	f.readers.RLock()
	defer f.readers.RUnlock()
	if f.closed {
		return found{}, nil
	}
	var out found
	err := f.health.guard(func() error {
		reader, err := f.index.Reader()
		if err != nil {
			return err
		}
		if err := f.look(reader); err != nil {
			return errors.Join(err, reader.Close())
		}
		e := &evaluator{ctx: ctx, reader: reader}
		hits, err := e.run(root)
		if err == nil && scored {
			err = e.score(hits, root, *f.lengths.Load())
			out.rarity = e.rarity
		}
		if errors.Is(err, errCut) {
			out.cut, err = true, nil
		}
		out.partial = e.partial
		for _, h := range hits {
			out.matches = append(out.matches, posts.Match{Num: h.num, Score: h.score})
		}
		return errors.Join(err, reader.Close())
	})
	if err != nil {
		return found{}, fmt.Errorf("search the index: %w", f.diagnose(ctx, err))
	}
	return out, nil
}

// hit is a document that was found.
type hit struct {
	id    uint64 // bleve's
	num   ledger.PostNum
	score float64
}

// evaluator turns nodes into bleve's searchers over one snapshot. They say which
// documents there are and nothing of their worth, which lets bleve merge lists
// as bitmaps; see score for the rest.
type evaluator struct {
	ctx     context.Context //nolint:containedctx // lives as long as one search
	reader  index.IndexReader
	partial bool
	rarity  map[string]float64 // of terms in the text, once they are scored
}

// run returns the documents that root finds, by bleve's number.
func (e *evaluator) run(root node) ([]hit, error) {
	s, err := e.searcher(root)
	if err != nil {
		return nil, err
	}
	hits, err := e.collect(s)
	return hits, errors.Join(err, s.Close())
}

// collect takes every hit, of which as many as there was time for come with
// errCut.
func (e *evaluator) collect(s search.Searcher) ([]hit, error) {
	sc := &search.SearchContext{
		DocumentMatchPool: search.NewDocumentMatchPool(s.DocumentMatchPoolSize()+1, 0),
		IndexReader:       e.reader,
	}
	var hits []hit
	for i := 0; ; i++ {
		if i%checkEvery == 0 && e.ctx.Err() != nil {
			return hits, errCut
		}
		match, err := s.Next(sc)
		if err != nil || match == nil {
			return hits, err
		}
		id, err := e.reader.ExternalID(match.IndexInternalID)
		if err != nil {
			return nil, err
		}
		if num, ok := postNum(id); ok {
			hits = append(hits, hit{id: match.IndexInternalID.Value(), num: num})
		}
		sc.DocumentMatchPool.Put(match)
	}
}

// walk calls f with every node that is not excluded.
func walk(n node, f func(node)) {
	f(n)
	switch n := n.(type) {
	case andNode:
		for _, k := range n.kids {
			walk(k, f)
		}
	case orNode:
		for _, k := range n.kids {
			walk(k, f)
		}
	}
}

// unscored asks for no scores.
var unscored = search.SearcherOptions{Score: "none"}

// searcher returns the searcher of a node.
func (e *evaluator) searcher(n node) (search.Searcher, error) {
	if e.ctx.Err() != nil {
		return searcher.NewMatchNoneSearcher(e.reader)
	}
	switch n := n.(type) {
	case termNode:
		return searcher.NewTermSearcher(e.ctx, e.reader, n.term, n.field, 1, unscored)
	case phraseNode:
		return searcher.NewPhraseSearcher(e.ctx, e.reader, n.terms, 0, false, n.field, 1, unscored)
	case prefixNode:
		return e.prefix(n)
	case andNode:
		return e.all(n)
	case orNode:
		return e.any(n)
	case notNode:
		return e.all(andNode{[]node{n}})
	case allNode:
		return searcher.NewMatchAllSearcher(e.ctx, e.reader, 0, unscored)
	default:
		return nil, fmt.Errorf("unknown node %T", n)
	}
}

func (e *evaluator) all(n andNode) (search.Searcher, error) {
	var must, mustNot []search.Searcher
	drop := func(err error) (search.Searcher, error) {
		for _, s := range slices.Concat(must, mustNot) {
			err = errors.Join(err, s.Close())
		}
		return nil, err
	}
	for _, kid := range n.kids {
		list := &must
		if not, excluded := kid.(notNode); excluded {
			list, kid = &mustNot, not.kid
		}
		s, err := e.searcher(kid)
		if err != nil {
			return drop(err)
		}
		*list = append(*list, s)
	}
	if len(must) == 0 {
		all, err := searcher.NewMatchAllSearcher(e.ctx, e.reader, 0, unscored)
		if err != nil {
			return drop(err)
		}
		must = append(must, all)
	}
	wanted := must[0]
	if len(must) > 1 {
		var err error
		if wanted, err = searcher.NewConjunctionSearcher(e.ctx, e.reader, must, unscored); err != nil {
			return drop(err)
		}
	}
	if len(mustNot) == 0 {
		return wanted, nil
	}
	unwanted, err := searcher.NewDisjunctionSearcher(e.ctx, e.reader, mustNot, 0, unscored)
	if err != nil {
		return drop(err)
	}
	return searcher.NewBooleanSearcher(e.ctx, e.reader, wanted, nil, unwanted, unscored)
}

func (e *evaluator) any(n orNode) (search.Searcher, error) {
	if len(n.kids) == 0 {
		return searcher.NewMatchNoneSearcher(e.reader)
	}
	var kids []search.Searcher
	for _, kid := range n.kids {
		s, err := e.searcher(kid)
		if err != nil {
			for _, k := range kids {
				err = errors.Join(err, k.Close())
			}
			return nil, err
		}
		kids = append(kids, s)
	}
	return searcher.NewDisjunctionSearcher(e.ctx, e.reader, kids, 1, unscored)
}

// prefix finds the posts with any word that begins so.
func (e *evaluator) prefix(n prefixNode) (search.Searcher, error) {
	terms, err := e.expand(n)
	if err != nil {
		return nil, err
	}
	if len(terms) == 0 {
		return searcher.NewMatchNoneSearcher(e.reader)
	}
	return searcher.NewMultiTermSearcher(e.ctx, e.reader, terms, n.field, 1, unscored, false)
}

// expand lists the terms of the index that a prefix stands for, the most
// frequent ones where there are too many.
func (e *evaluator) expand(n prefixNode) ([]string, error) {
	counts := map[string]uint64{}
	for _, start := range n.prefix.Starts {
		if err := e.dictionary(n.field, start, counts); err != nil {
			return nil, err
		}
	}
	for _, term := range n.prefix.Terms {
		counts[term] += math.MaxUint32 // a word that was meant comes before one that begins like it
	}
	terms := make([]string, 0, len(counts))
	for term := range counts {
		terms = append(terms, term)
	}
	most := n.expansion()
	if len(terms) <= most {
		slices.Sort(terms)
		return terms, nil
	}
	e.partial = true
	slices.SortFunc(terms, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	return terms[:most], nil
}

// dictionary adds the terms that begin with start, and in how many documents
// each is.
func (e *evaluator) dictionary(field, start string, counts map[string]uint64) error {
	dict, err := e.reader.FieldDictPrefix(field, []byte(start))
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		if i%checkEvery == 0 && e.ctx.Err() != nil {
			break
		}
		entry, err := dict.Next()
		if err != nil {
			return errors.Join(err, dict.Close())
		}
		if entry == nil {
			break
		}
		counts[entry.Term] += entry.Count
	}
	return dict.Close()
}
