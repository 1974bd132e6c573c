package search

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/blevesearch/bleve/v2/search"
	"github.com/blevesearch/bleve/v2/search/scorer"
	"github.com/blevesearch/bleve/v2/search/searcher"
	index "github.com/blevesearch/bleve_index_api"

	"vesti.nixg.ru/projections/posts"
)

const (
	// titleWeight is what a word in the title adds to its score in the text.
	titleWeight = 0.5
	// maxExpansion is how many of the terms that begin with a prefix are searched.
	maxExpansion = 4096
	// checkEvery is how many hits are taken between two looks at the context.
	checkEvery = 1024
)

// errCut: the search ran out of time. What was found until then counts.
var errCut = errors.New("search was cut short")

// found is what a search for text gives.
type found struct {
	matches []posts.Match
	cut     bool // the time was over
	partial bool // a prefix had more terms than were searched
}

// match evaluates root on the index as it is now.
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
		e := &evaluator{reader: reader, scored: scored}
		if e.total, err = reader.DocCount(); err == nil {
			e.ctx = e.scoring(ctx, *f.lengths.Load())
			out, err = e.run(root)
		}
		return errors.Join(err, reader.Close())
	})
	if err != nil {
		return found{}, fmt.Errorf("search the index: %w", err)
	}
	return out, nil
}

// evaluator turns nodes into bleve's searchers over one snapshot.
type evaluator struct {
	ctx     context.Context //nolint:containedctx // lives as long as one search
	reader  index.IndexReader
	total   uint64
	scored  bool
	partial bool
}

// scoring makes bleve score by BM25 with the true lengths of documents: what it
// takes for their average otherwise is the number of distinct terms in each
// segment.
func (e *evaluator) scoring(ctx context.Context, l lengths) context.Context {
	mean := func(sum uint64) int {
		return int(float64(sum) / float64(max(l.documents, 1)) * float64(e.total))
	}
	stats := &search.BM25Stats{
		DocCount: float64(e.total),
		FieldCardinality: map[string]int{
			fieldText: mean(l.inText), fieldTitle: mean(l.inTitle), fieldEdge: int(e.total), unadorned: int(e.total),
		},
	}
	ctx = context.WithValue(ctx, search.BM25StatsKey, stats)
	return context.WithValue(ctx, search.GetScoringModelCallbackKey, search.GetScoringModelCallbackFn(func() string {
		return index.BM25Scoring
	}))
}

// unadorned is the field that bleve names where it has merged several terms'
// lists into one.
const unadorned = "*"

// rightScores corrects the table from which bleve takes the frequency of a term:
// it holds square roots, as TF-IDF wants them, and BM25 counts.
var rightScores sync.Once

func correctScores() {
	for i := range scorer.SqrtCache {
		scorer.SqrtCache[i] = float64(i)
	}
}

func (e *evaluator) run(root node) (found, error) {
	s, err := e.root(root)
	if err != nil {
		return found{}, err
	}
	out := found{}
	out.matches, err = e.collect(s)
	if errors.Is(err, errCut) {
		out.cut, err = true, nil
	}
	out.partial = e.partial
	return out, errors.Join(err, s.Close())
}

// root adds to the score of what is found where its words are in the title.
func (e *evaluator) root(n node) (search.Searcher, error) {
	must, err := e.searcher(n, e.options())
	if err != nil || !e.scored {
		return must, err
	}
	var titles []search.Searcher
	for _, term := range wantedTerms(n) {
		t, err := e.term(fieldTitle, term, titleWeight, e.options())
		if err != nil {
			return nil, errors.Join(err, must.Close())
		}
		titles = append(titles, t)
	}
	if len(titles) == 0 {
		return must, nil
	}
	should, err := searcher.NewDisjunctionSearcher(e.ctx, e.reader, titles, 0, e.options())
	if err != nil {
		return nil, errors.Join(err, must.Close())
	}
	return searcher.NewBooleanSearcher(e.ctx, e.reader, must, should, nil, e.options())
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

// collect takes the number and the score of every hit.
func (e *evaluator) collect(s search.Searcher) ([]posts.Match, error) {
	sc := &search.SearchContext{
		DocumentMatchPool: search.NewDocumentMatchPool(s.DocumentMatchPoolSize()+1, 0),
		IndexReader:       e.reader,
	}
	var matches []posts.Match
	for i := 0; ; i++ {
		if i%checkEvery == 0 && e.ctx.Err() != nil {
			return matches, errCut
		}
		hit, err := s.Next(sc)
		if err != nil || hit == nil {
			return matches, err
		}
		id, err := e.reader.ExternalID(hit.IndexInternalID)
		if err != nil {
			return nil, err
		}
		if num, ok := postNum(id); ok {
			matches = append(matches, posts.Match{Num: num, Score: hit.Score})
		}
		sc.DocumentMatchPool.Put(hit)
	}
}

func (e *evaluator) options() search.SearcherOptions {
	if e.scored {
		return search.SearcherOptions{}
	}
	return unscored
}

// unscored lets bleve merge lists of posts as bitmaps.
var unscored = search.SearcherOptions{Score: "none"}

// searcher returns the searcher of a node.
func (e *evaluator) searcher(n node, o search.SearcherOptions) (search.Searcher, error) {
	if e.ctx.Err() != nil {
		return searcher.NewMatchNoneSearcher(e.reader)
	}
	switch n := n.(type) {
	case termNode:
		return e.term(n.field, n.term, 1, o)
	case phraseNode:
		return searcher.NewPhraseSearcher(e.ctx, e.reader, n.terms, 0, false, n.field, 1, o)
	case prefixNode:
		return e.prefix(n)
	case andNode:
		return e.all(n, o)
	case orNode:
		return e.any(n, o)
	case notNode:
		return e.all(andNode{[]node{n}}, o)
	case allNode:
		return searcher.NewMatchAllSearcher(e.ctx, e.reader, 0, o)
	default:
		return nil, fmt.Errorf("unknown node %T", n)
	}
}

// term scores a term with its weight times BM25. bleve multiplies by the
// inverse document frequency a second time, which is taken out here.
func (e *evaluator) term(field, term string, weight float64, o search.SearcherOptions) (search.Searcher, error) {
	boost := weight
	if o.Score != unscored.Score {
		counter, err := e.reader.TermFieldReader(e.ctx, []byte(term), field, false, false, false)
		if err != nil {
			return nil, err
		}
		boost /= inverseFrequency(e.total, counter.Count())
		if err := counter.Close(); err != nil {
			return nil, err
		}
	}
	return searcher.NewTermSearcher(e.ctx, e.reader, term, field, boost, o)
}

// inverseFrequency is BM25's, as Robertson and Spärck Jones give it, kept above
// zero by adding one inside the logarithm.
func inverseFrequency(total, with uint64) float64 {
	return math.Log(1 + (float64(total)-float64(with)+0.5)/(float64(with)+0.5))
}

func (e *evaluator) all(n andNode, o search.SearcherOptions) (search.Searcher, error) {
	var must, mustNot []search.Searcher
	drop := func(err error) (search.Searcher, error) {
		for _, s := range slices.Concat(must, mustNot) {
			err = errors.Join(err, s.Close())
		}
		return nil, err
	}
	for _, kid := range n.kids {
		not, excluded := kid.(notNode)
		if excluded {
			s, err := e.searcher(not.kid, unscored)
			if err != nil {
				return drop(err)
			}
			mustNot = append(mustNot, s)
			continue
		}
		s, err := e.searcher(kid, o)
		if err != nil {
			return drop(err)
		}
		must = append(must, s)
	}
	if len(must) == 0 {
		all, err := searcher.NewMatchAllSearcher(e.ctx, e.reader, 0, o)
		if err != nil {
			return drop(err)
		}
		must = append(must, all)
	}
	wanted := must[0]
	if len(must) > 1 {
		var err error
		if wanted, err = searcher.NewConjunctionSearcher(e.ctx, e.reader, must, o); err != nil {
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
	return searcher.NewBooleanSearcher(e.ctx, e.reader, wanted, nil, unwanted, o)
}

func (e *evaluator) any(n orNode, o search.SearcherOptions) (search.Searcher, error) {
	if len(n.kids) == 0 {
		return searcher.NewMatchNoneSearcher(e.reader)
	}
	var kids []search.Searcher
	for _, kid := range n.kids {
		s, err := e.searcher(kid, o)
		if err != nil {
			for _, k := range kids {
				err = errors.Join(err, k.Close())
			}
			return nil, err
		}
		kids = append(kids, s)
	}
	return searcher.NewDisjunctionSearcher(e.ctx, e.reader, kids, 1, o)
}

// prefix finds the posts with any word that begins so. It does not score: how
// rare a word is that happens to begin so says nothing.
func (e *evaluator) prefix(n prefixNode) (search.Searcher, error) {
	if n.short() && n.field == fieldText {
		return searcher.NewTermSearcher(e.ctx, e.reader, n.text, fieldEdge, 1, unscored)
	}
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
		counts[term] += e.total // a word that was meant comes before one that begins like it
	}
	terms := make([]string, 0, len(counts))
	for term := range counts {
		terms = append(terms, term)
	}
	if len(terms) <= maxExpansion {
		slices.Sort(terms)
		return terms, nil
	}
	e.partial = true
	slices.SortFunc(terms, func(a, b string) int {
		if counts[a] != counts[b] {
			return int(min(counts[b], math.MaxInt32)) - int(min(counts[a], math.MaxInt32))
		}
		if a < b {
			return -1
		}
		return 1
	})
	return terms[:maxExpansion], nil
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
