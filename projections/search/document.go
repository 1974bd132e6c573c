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
)

const positioned = index.IndexField | index.IncludeTermVectors

// entry is a post on its way into the index.
type entry struct {
	num         ledger.PostNum
	title, text string

	inText, inTitle analysis.TokenStream
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
	e.inTitle = terms(stemmer, e.title)
	e.inText = terms(stemmer, e.title+analyse.Gap+e.text)
}

// terms returns the terms of text.
func terms(stemmer *analyse.Stemmer, text string) analysis.TokenStream {
	var tokens []analysis.Token
	add := func(term string, position int) {
		tokens = append(tokens, analysis.Token{Term: []byte(term), Position: position})
	}
	analyse.Scan(text, func(c *analyse.Chain) {
		for i := range c.Parts {
			add(stemmer.Part(&c.Parts[i]), c.Parts[i].Position)
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

// document is what bleve stores of the entry: terms, and no text.
func (e *entry) document() *document.Document {
	d := document.NewDocument(documentID(e.num))
	for _, f := range []struct {
		name   string
		tokens analysis.TokenStream
	}{{fieldText, e.inText}, {fieldTitle, e.inTitle}} {
		if len(f.tokens) > 0 {
			d.AddField(document.NewTextFieldCustom(f.name, nil, nil, positioned, prepared(f.tokens)))
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
