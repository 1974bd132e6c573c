package feed

import (
	"errors"
	"net/url"
	"slices"
	"strings"
)

// Marks say of a text what it is, on its way through gofeed, which would
// forget: one of them begins a text that somebody declared plain or HTML. They
// are private characters that repair drops wherever a document holds them.
const (
	markPlain = '\uE000'
	markHTML  = '\uE001'
)

// dialect is the family of a document.
type dialect uint8

const (
	dialectRSS dialect = iota // RSS of any version, RDF, CDF
	dialectAtom
)

// repaired is a document in the one form that gofeed cannot misread: well
// formed, flat, every reference resolved, every URL absolute where the document
// names a base, every text in CDATA with its mark.
type repaired struct {
	xml     []byte
	dialect dialect
	format  string // rss, rdf, atom, cdf
	lang    string // of the root
	entries int    // in the document
	left    int    // of them that are left out of xml, because there are too many
	wrapped bool   // stood inside an HTML page
	cut     bool   // the end of the document was missing; an entry that it cut is left out
}

// What a document may have, so that none takes much more time and memory than
// its length. Beyond that, entries in the middle are left out, and so are
// elements of one name in an entry; a vocabulary is not known, and what is
// nested deeper counts as its parent's.
const (
	maxEntries  = 4000
	maxOfAName  = 32
	maxBindings = 256 // of prefixes that are in force at one place
	maxDepth    = 64  // of elements whose children are looked at
)

var errNoRoot = errors.New("no element of a feed")

// repair reads doc, UTF-8 that means to be an XML feed, and writes what it
// holds of interest. It never fails on markup, only where no feed begins.
func repair(doc string) (repaired, error) {
	r := repairer{s: scanner{doc: dropIllegal(doc)}, body: make([]byte, 0, len(doc)+len(doc)/8)}
	if !r.findRoot() {
		return repaired{}, errNoRoot
	}
	r.run()
	return r.finish(), nil
}

type repairer struct {
	s        scanner
	entities entities
	dialect  dialect
	format   string
	lang     string
	rootURI  string // namespace of the root element
	ns       []binding
	frames   []frame

	body      []byte
	used      [vocabOther]bool // vocabularies that need a declaration
	begins    []int            // of the whole entries in body
	item      int              // where the open entry begins in body; -1 for none
	itemDepth int              // of frames when it was opened
	seen      map[string]int   // of names: how often they were written to the feed or to the open entry
	feedSeen  map[string]int
	itemSeen  map[string]int
	ended     bool // the root's end tag was there
	wrapped   bool
}

type binding struct {
	prefix, uri string
	vocab       vocabulary
}

// frame is an open element whose children are looked at.
type frame struct {
	name string // as written
	ns   int    // bindings before it
	base *url.URL
}

// findRoot reads up to the element that begins a feed, past whatever stands
// before it: a page around it, blank lines, junk.
func (r *repairer) findRoot() bool {
	r.item = -1
	for {
		switch r.s.next() {
		case tokenEnd:
			return false
		case tokenDoctype:
			r.entities.declare(r.s.text)
		case tokenOpen:
			prefix, local := splitName(r.s.name)
			switch local = strings.ToLower(local); local {
			case "rss":
				r.format = "rss"
			case "rdf":
				r.format = "rdf"
			case "feed":
				r.dialect, r.format = dialectAtom, "atom"
			case "channel":
				r.format = "cdf"
			case "html", "body":
				r.wrapped = true
				continue
			default:
				continue
			}
			r.feedSeen, r.itemSeen = map[string]int{}, map[string]int{}
			r.seen = r.feedSeen
			r.push()
			r.rootURI = r.uriOf(prefix)
			r.rootAttributes()
			return true
		case tokenText, tokenCDATA, tokenClose, tokenOther:
		}
	}
}

// rootAttributes reads what formats put on their root.
func (r *repairer) rootAttributes() {
	attributes(r.s.attrs, func(a attribute) bool {
		switch strings.ToLower(a.name) {
		case "xml:lang":
			r.lang = a.value
		case "lang":
			if r.lang == "" {
				r.lang = a.value
			}
		case "href": // CDF
			if r.format == "cdf" {
				r.write("link", r.url(r.entities.decode(a.value)))
			}
		case "base":
			if u, err := url.Parse(r.entities.decode(a.value)); err == nil && r.format == "cdf" {
				r.frames[0].base = u
			}
		}
		return true
	})
}

func (r *repairer) run() {
	for !r.ended {
		switch r.s.next() {
		case tokenEnd:
			return
		case tokenOpen:
			r.open()
		case tokenClose:
			r.close(r.s.name)
		case tokenDoctype:
			r.entities.declare(r.s.text)
		case tokenText, tokenCDATA, tokenOther:
		}
	}
}

// open handles a start tag among the children of the feed or of an entry.
func (r *repairer) open() {
	r.push()
	el := r.resolve(r.s.name)
	rules := feedRules
	if r.item >= 0 {
		rules = itemRules
	}
	rule, known := r.lookup(rules, el)
	if !known && r.item >= 0 {
		if start, ok := r.lookup(feedRules, el); ok && start.handling == itemStart {
			// The entry before was never closed.
			f := r.frames[len(r.frames)-1]
			r.frames = append(r.frames[:r.itemDepth-1], f)
			r.closeItem(true)
			rule = start
		}
	}
	out := rule.rss
	if r.dialect == dialectAtom {
		out = rule.atom
	}
	switch {
	case rule.handling == container:
		if out != "" && r.seen[out] < rule.most() {
			r.writeAttributes(out)
		}
		if !r.s.empty && len(r.frames) < maxDepth {
			return // the frame stays open
		}
	case rule.handling == itemStart:
		r.openItem()
		if !r.s.empty {
			return
		}
		r.closeItem(true)
	case out == "" || r.seen[out] >= rule.most() && rule.handling != textField:
		r.skip()
	default:
		r.field(rule, out, el)
	}
	r.pop()
}

// lookup finds the rule of an element. In an Atom document the core names are
// Atom's where Atom has them.
func (r *repairer) lookup(rules map[element]rule, el element) (rule, bool) {
	if r.dialect == dialectAtom && el.vocab == vocabCore {
		if found, ok := rules[element{vocabAtom, el.local}]; ok {
			return found, true
		}
	}
	found, ok := rules[el]
	return found, ok
}

// close handles an end tag: it closes the innermost open element of that name
// with all that is open inside it. An end tag of nothing open means nothing.
func (r *repairer) close(name string) {
	for i, f := range slices.Backward(r.frames) {
		if !strings.EqualFold(f.name, name) {
			continue
		}
		for len(r.frames) > i {
			r.pop()
		}
		if r.item >= 0 && len(r.frames) < r.itemDepth {
			r.closeItem(true)
		}
		r.ended = len(r.frames) == 0
		return
	}
}

func (r *repairer) push() {
	f := frame{name: r.s.name, ns: len(r.ns), base: r.base()}
	if strings.Contains(r.s.attrs, "xmlns") || strings.Contains(r.s.attrs, ":base") {
		attributes(r.s.attrs, func(a attribute) bool {
			switch {
			case a.name == "xmlns" || strings.HasPrefix(a.name, "xmlns:"):
				if len(r.ns) == maxBindings {
					return true
				}
				_, prefix, _ := strings.Cut(a.name, ":")
				uri := strings.TrimSpace(r.entities.decode(a.value))
				r.ns = append(r.ns, binding{prefix: prefix, uri: uri, vocab: vocabularyOf(uri)})
			case a.name == "xml:base":
				f.base = rebase(f.base, r.entities.decode(a.value))
			}
			return true
		})
	}
	r.frames = append(r.frames, f)
}

func (r *repairer) pop() {
	f := r.frames[len(r.frames)-1]
	r.frames = r.frames[:len(r.frames)-1]
	r.ns = r.ns[:f.ns]
}

// base is the xml:base in force, nil for none.
func (r *repairer) base() *url.URL {
	if len(r.frames) == 0 {
		return nil
	}
	return r.frames[len(r.frames)-1].base
}

// rebase returns the base that ref makes of outer, which stays where ref is
// none.
func rebase(outer *url.URL, ref string) *url.URL {
	u, err := url.Parse(strings.TrimSpace(ref))
	if err != nil || ref == "" {
		return outer
	}
	if outer != nil {
		return outer.ResolveReference(u)
	}
	return u
}

func splitName(name string) (prefix, local string) {
	if p, l, ok := strings.Cut(name, ":"); ok && l != "" {
		return p, l
	}
	return "", name
}

func (r *repairer) uriOf(prefix string) string {
	for _, b := range slices.Backward(r.ns) {
		if b.prefix == prefix {
			return b.uri
		}
	}
	return ""
}

// resolve finds out what an element's name means. The namespace of the root,
// whatever it is, is the document's own.
func (r *repairer) resolve(name string) element {
	prefix, local := splitName(name)
	el := element{vocab: vocabCore, local: strings.ToLower(local)}
	for _, b := range slices.Backward(r.ns) {
		if b.prefix != prefix {
			continue
		}
		el.vocab = b.vocab
		if b.uri == r.rootURI && (prefix == "" || el.vocab == vocabOther) {
			el.vocab = vocabCore
		}
		return el
	}
	if prefix != "" {
		el.vocab = wellKnown(prefix)
	}
	return el
}

func (r *repairer) openItem() {
	r.item, r.itemDepth = len(r.body), len(r.frames)
	clear(r.itemSeen)
	r.seen = r.itemSeen
	if r.dialect == dialectAtom {
		r.body = append(r.body, "<entry>"...)
	} else {
		r.body = append(r.body, "<item>"...)
	}
	attributes(r.s.attrs, func(a attribute) bool {
		switch strings.ToLower(a.name) {
		case "rdf:about", "rdf:resource":
			r.writeGUID(r.entities.decode(a.value), "true")
		case "href": // CDF
			r.write("link", r.url(r.entities.decode(a.value)))
		case "lastmod": // CDF
			r.write("atom:updated", r.entities.decode(a.value))
		}
		return true
	})
}

// closeItem ends the open entry, or takes it back where it is not whole.
func (r *repairer) closeItem(whole bool) {
	if whole {
		if r.dialect == dialectAtom {
			r.body = append(r.body, "</entry>"...)
		} else {
			r.body = append(r.body, "</item>"...)
		}
		r.begins = append(r.begins, r.item)
	} else {
		r.body = r.body[:r.item]
	}
	r.item, r.seen = -1, r.feedSeen
}

func (r *repairer) finish() repaired {
	cut := r.s.cut || !r.ended
	if r.item >= 0 {
		r.closeItem(false)
	}
	var b strings.Builder
	open, end := `<rss version="2.0"`, "</channel></rss>"
	if r.dialect == dialectAtom {
		open, end = `<feed xmlns="http://www.w3.org/2005/Atom"`, "</feed>"
	}
	b.WriteString(open)
	for v, p := range prefixes {
		if r.used[v] {
			b.WriteString(" xmlns:" + p.prefix + `="` + p.uri + `"`)
		}
	}
	b.WriteByte('>')
	if r.dialect == dialectRSS {
		b.WriteString("<channel>")
	}
	head, tail, left := r.newEntries()
	out := make([]byte, 0, b.Len()+len(head)+len(tail)+len(end))
	out = append(out, b.String()...)
	out = append(out, head...)
	out = append(out, tail...)
	out = append(out, end...)
	return repaired{
		xml: out, dialect: r.dialect, format: r.format, lang: r.lang, entries: len(r.begins), left: left, wrapped: r.wrapped, cut: cut,
	}
}

// newEntries returns the two parts of body to read: all of it, or, of a document
// with too many entries, its beginning and its end, since the newest stand at
// one of them. left is how many entries lie between the two.
func (r *repairer) newEntries() (head, tail []byte, left int) {
	if left = len(r.begins) - maxEntries; left <= 0 {
		return r.body, nil, 0
	}
	return r.body[:r.begins[maxEntries/2]], r.body[r.begins[maxEntries/2+left]:], left
}
