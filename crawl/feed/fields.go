package feed

import (
	"encoding/base64"
	"html"
	"strings"
	"unicode/utf8"

	"vesti.nixg.ru/crawl/plain"
	"vesti.nixg.ru/ledger"
)

// content is what stands between the tags of an element.
type content struct {
	text   string // decoded, without markup inside
	markup string // as HTML, where there are elements inside; else ""
	closed bool   // its end was there
}

// maxPlainField is the longest date, language or id that is kept, in bytes.
const maxPlainField = 2 << 10

// field reads the element whose start tag was just read and writes it as out.
func (r *repairer) field(ru rule, out string, el element) {
	attrs := r.s.attrs
	switch ru.handling {
	case textField:
		kind := r.declaredKind(el, attrs)
		value := r.text(kind)
		if r.seen[out] == 0 && strings.TrimLeft(value, "\uE000\uE001 \t\r\n") != "" {
			r.write(out, value)
		}
	case plainField:
		r.write(out, ledger.CutText(strings.TrimSpace(r.content(el).text), maxPlainField))
	case urlField:
		value := r.content(el).text
		if strings.TrimSpace(value) == "" {
			value = r.attribute(attrs, "href")
		}
		r.write(out, r.url(value))
	case guidField:
		r.writeGUID(r.content(el).text, r.attribute(attrs, "ispermalink"))
	case atomLink:
		r.link(out, attrs, r.content(el).text)
	case person:
		r.person(out)
	case categoryField:
		r.category(out, attrs, r.content(el).text)
	case attrField:
		r.writeAttributes(out)
		r.content(el)
	case dropped, container, itemStart: // not fields
	}
}

// textKind is what an element's attributes declare its text to be.
type textKind uint8

const (
	kindUnknown textKind = iota
	kindPlain
	kindHTML
	kindInline // markup as elements
	kindBase64Plain
	kindBase64HTML
	kindBinary
)

func (r *repairer) declaredKind(el element, attrs string) textKind {
	typ := strings.ToLower(strings.TrimSpace(r.attribute(attrs, "type")))
	mode := strings.ToLower(r.attribute(attrs, "mode"))
	atom := el.vocab == vocabAtom || el.vocab == vocabCore && r.dialect == dialectAtom
	isHTML := typ == "html" || strings.HasPrefix(typ, "text/html") || strings.Contains(typ, "xhtml")
	switch {
	case el.vocab == vocabXHTML:
		return kindInline
	case el.vocab == vocabMedia:
		if isHTML {
			return kindHTML
		}
		return kindPlain
	case !atom:
		return kindUnknown
	case mode == "base64" && isHTML:
		return kindBase64HTML
	case mode == "base64":
		return kindBase64Plain
	case isHTML && (typ == "xhtml" || mode == "xml" || mode == "" && strings.Contains(typ, "xhtml")):
		return kindInline
	case isHTML:
		return kindHTML
	case typ == "text" || strings.HasPrefix(typ, "text/plain"):
		if mode == "xml" {
			return kindInline
		}
		return kindPlain
	case typ == "":
		if mode == "escaped" || el.local == "content" || el.local == "summary" {
			return kindUnknown
		}
		return kindPlain
	case strings.HasPrefix(typ, "text/") || strings.HasSuffix(typ, "xml"):
		return kindUnknown
	default:
		return kindBinary
	}
}

// text reads an element's content and returns it with its mark.
func (r *repairer) text(kind textKind) string {
	c := r.content(element{})
	switch {
	case kind == kindBase64HTML || kind == kindBase64Plain || kind == kindBinary:
		decoded, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(c.text), ""))
		if err != nil || !utf8.Valid(decoded) {
			return "" // a picture, say
		}
		mark := map[textKind]string{kindBase64HTML: string(markHTML), kindBase64Plain: string(markPlain)}[kind]
		return mark + dropIllegal(string(decoded))
	case c.markup != "" && (kind == kindInline || !plain.HasTag(c.text)):
		return string(markHTML) + c.markup
	case kind == kindInline:
		return string(markPlain) + c.text
	case kind == kindPlain:
		return string(markPlain) + c.text
	case kind == kindHTML:
		return string(markHTML) + c.text
	default:
		return c.text
	}
}

// content reads up to the end tag of the element whose start tag was just
// read. The end of what it stands in ends it as well, so that a missing end tag
// costs no more than the entry; el, where given, is an element that holds no
// markup, so that the start of another field ends it too.
func (r *repairer) content(el element) content {
	if r.s.empty {
		return content{closed: true}
	}
	name := r.s.name
	from := r.s.pos
	depth, inside := 1, false
	var first string
	var b *strings.Builder // where there is more than one piece
	add := func(piece string) {
		switch {
		case b != nil:
			b.WriteString(piece)
		case first == "":
			first = piece
		case piece != "":
			b = &strings.Builder{}
			b.WriteString(first)
			b.WriteString(piece)
		}
	}
	done := func(closed bool) content {
		c := content{text: first, closed: closed}
		if b != nil {
			c.text = b.String()
		}
		if inside {
			c.markup = r.markup(r.s.doc[from:r.s.start])
		}
		return c
	}
	for {
		switch r.s.next() {
		case tokenEnd:
			return done(false)
		case tokenText:
			add(r.entities.decode(r.s.text))
		case tokenCDATA:
			add(r.s.text)
		case tokenOpen:
			if r.interrupts(el) {
				r.s.pos = r.s.start
				return done(false)
			}
			inside = true
			if !r.s.empty && strings.EqualFold(r.s.name, name) {
				depth++
			}
		case tokenClose:
			if strings.EqualFold(r.s.name, name) {
				if depth--; depth == 0 {
					return done(true)
				}
				continue
			}
			if r.closesParent() {
				r.s.pos = r.s.start
				return done(false)
			}
		case tokenDoctype, tokenOther:
		}
	}
}

// interrupts reports whether the start tag just read begins another field of
// the feed, where el, the one being read, cannot hold it.
func (r *repairer) interrupts(el element) bool {
	next := r.resolve(r.s.name)
	switch next.local {
	case "item", "entry":
		return r.dialect == dialectRSS == (next.local == "item") && next.vocab <= vocabAtom
	case "pubdate", "guid", "enclosure":
		return next.vocab == vocabCore && r.dialect == dialectRSS
	}
	if el.local == "" {
		return false
	}
	rules := feedRules
	if r.item >= 0 {
		rules = itemRules
	}
	_, known := r.lookup(rules, next)
	return known
}

// closesParent reports whether the end tag just read closes the entry or the
// feed that is open.
func (r *repairer) closesParent() bool {
	_, local := splitName(r.s.name)
	switch strings.ToLower(local) {
	case "item", "entry", "channel", "rss", "feed", "rdf":
	default:
		return false
	}
	for _, f := range r.frames[:len(r.frames)-1] {
		if strings.EqualFold(f.name, r.s.name) {
			return true
		}
	}
	return false
}

// skip passes over the element whose start tag was just read.
func (r *repairer) skip() {
	if !r.s.empty {
		r.content(element{})
	}
}

// markup turns the inside of an element, markup as elements, into HTML: without
// prefixes, its CDATA escaped.
func (r *repairer) markup(inner string) string {
	if !strings.Contains(inner, ":") && !strings.Contains(inner, "<![") && len(r.entities.values) == 0 {
		return inner
	}
	var b strings.Builder
	s := scanner{doc: inner}
	for {
		switch s.next() {
		case tokenEnd:
			return b.String()
		case tokenText:
			if len(r.entities.values) == 0 {
				b.WriteString(s.text)
			} else {
				b.WriteString(html.EscapeString(r.entities.decode(s.text)))
			}
		case tokenCDATA:
			b.WriteString(html.EscapeString(s.text))
		case tokenOpen:
			_, local := splitName(s.name)
			b.WriteString("<" + local + s.attrs)
			if s.empty {
				b.WriteByte('/')
			}
			b.WriteByte('>')
		case tokenClose:
			_, local := splitName(s.name)
			b.WriteString("</" + local + ">")
		case tokenDoctype, tokenOther:
		}
	}
}

// maxPerson bounds what is read of a person's name, in bytes.
const maxPerson = 4 << 10

// person reads an author, given as text or as elements of its own.
func (r *repairer) person(out string) {
	if r.s.empty {
		return
	}
	name := r.s.name
	child := ""
	parts := map[string]string{} // by child element; "" for the text beside them
	for {
		switch r.s.next() {
		case tokenEnd:
			return
		case tokenText:
			addPart(parts, child, r.entities.decode(r.s.text))
		case tokenCDATA:
			addPart(parts, child, r.s.text)
		case tokenOpen:
			if r.interrupts(element{}) {
				r.s.pos = r.s.start
				r.writePerson(out, parts)
				return
			}
			if !r.s.empty {
				child = r.resolve(r.s.name).local
			}
		case tokenClose:
			if strings.EqualFold(r.s.name, name) || r.closesParent() {
				if !strings.EqualFold(r.s.name, name) {
					r.s.pos = r.s.start
				}
				r.writePerson(out, parts)
				return
			}
			child = ""
		case tokenDoctype, tokenOther:
		}
	}
}

func addPart(parts map[string]string, child, text string) {
	switch child {
	case "", "name", "email":
		if len(parts[child]) < maxPerson {
			parts[child] += text
		}
	}
}

func (r *repairer) writePerson(out string, parts map[string]string) {
	name := strings.TrimSpace(parts["name"])
	email := strings.TrimSpace(parts["email"])
	if name == "" {
		name = strings.TrimSpace(parts[""])
	}
	switch {
	case r.dialect == dialectAtom && out == "author":
		if name+email != "" {
			r.body = append(r.body, "<author>"...)
			r.writeChild("name", name)
			r.writeChild("email", email)
			r.body = append(r.body, "</author>"...)
			r.seen[out]++
		}
	case email != "" && name != "":
		r.write(out, name+" ("+email+")")
	default:
		r.write(out, name+email)
	}
}

// attribute returns the decoded value of an attribute, "" for none; name is in
// lower case.
func (r *repairer) attribute(attrs, name string) string {
	if attrs == "" {
		return ""
	}
	value := ""
	attributes(attrs, func(a attribute) bool {
		if strings.EqualFold(a.name, name) {
			value = r.entities.decode(a.value)
			return false
		}
		return true
	})
	return value
}
