package search

import (
	"encoding/binary"
	"runtime"
	"sync"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/document"
	index "github.com/blevesearch/bleve_index_api"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/projections/search/analyse"
)

// The fields of the index.
const (
	fieldText  = "text"  // the title and the text: terms with positions
	fieldTitle = "title" // the title alone
	fieldEdge  = "edge"  // the first one and two letters of every word, for short prefixes
)

const (
	positioned = index.IndexField | index.IncludeTermVectors
	presence   = index.IndexField | index.SkipFreqNorm
)

// entry is a post on its way into the index.
type entry struct {
	num         ledger.PostNum
	title, text string

	inText, inTitle, inEdge analysis.TokenStream
}

// prepared hands bleve the terms that were made beforehand, so that their
// number is known when the batch is written.
type prepared analysis.TokenStream

// Analyze implements analysis.Analyzer.
func (p prepared) Analyze([]byte) analysis.TokenStream { return analysis.TokenStream(p) }

// analyseAll makes the terms of the entries, on every processor.
func analyseAll(stemmer *analyse.Stemmer, entries []*entry) {
	work := make(chan *entry)
	var all sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(entries)) {
		all.Go(func() {
			for e := range work {
				e.analyse(stemmer)
			}
		})
	}
	for _, e := range entries {
		work <- e
	}
	close(work)
	all.Wait()
}

func (e *entry) analyse(stemmer *analyse.Stemmer) {
	edges := map[string]struct{}{}
	e.inTitle = terms(stemmer, e.title, nil)
	e.inText = terms(stemmer, e.title+analyse.Gap+e.text, edges)
	e.inEdge = make(analysis.TokenStream, 0, len(edges))
	for edge := range edges {
		e.inEdge = append(e.inEdge, &analysis.Token{Term: []byte(edge), Position: 1})
	}
}

// terms returns the terms of text and adds the edges of its words to edges,
// unless that is nil.
func terms(stemmer *analyse.Stemmer, text string, edges map[string]struct{}) analysis.TokenStream {
	var tokens []analysis.Token
	add := func(term string, position int) {
		tokens = append(tokens, analysis.Token{Term: []byte(term), Position: position})
	}
	analyse.Scan(text, func(c *analyse.Chain) {
		for i := range c.Parts {
			p := &c.Parts[i]
			term := stemmer.Part(p)
			add(term, p.Position)
			if edges != nil {
				addEdges(edges, p.Text)
				addEdges(edges, term)
			}
		}
		if c.Joined != "" {
			add(stemmer.Joined(c), c.Parts[0].Position)
		}
	})
	stream := make(analysis.TokenStream, len(tokens))
	for i := range tokens {
		stream[i] = &tokens[i]
	}
	return stream
}

func addEdges(edges map[string]struct{}, word string) {
	one, two := analyse.Edges(word)
	edges[one] = struct{}{}
	edges[two] = struct{}{}
}

// document is what bleve stores of the entry: terms, and no text.
func (e *entry) document() *document.Document {
	d := document.NewDocument(documentID(e.num))
	for _, f := range []struct {
		name    string
		tokens  analysis.TokenStream
		options index.FieldIndexingOptions
	}{
		{fieldText, e.inText, positioned}, {fieldTitle, e.inTitle, positioned}, {fieldEdge, e.inEdge, presence},
	} {
		if len(f.tokens) > 0 {
			d.AddField(document.NewTextFieldCustom(f.name, nil, nil, f.options, prepared(f.tokens)))
		}
	}
	return d
}

// documentID is the post's number, in an order that segments compress well.
func documentID(num ledger.PostNum) string {
	return string(binary.BigEndian.AppendUint64(nil, uint64(num)))
}

func postNum(id string) (ledger.PostNum, bool) {
	if len(id) != 8 {
		return 0, false
	}
	return ledger.PostNum(binary.BigEndian.Uint64([]byte(id))), true
}
