package search

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/projections/search/analyse"
)

// parse reads a query. There is no wrong one: what cannot be followed becomes a
// note, and signs that make no sense where they stand are text. known reports
// whether a field has a value, in lower case.
//
//	query  = group { group }                 all of them
//	group  = part { "OR" part }              any of them
//	part   = "-" part | "(" query ")" | [field ":"] ( word | word* | "phrase" )
func parse(typed string, stemmer *analyse.Stemmer, now time.Time, known func(field, value string) bool) query {
	p := &parser{compiler: compiler{stemmer: stemmer}, now: now, known: known}
	typed = strings.ToValidUTF8(typed, " ")
	if len(typed) > maxQuery {
		p.note(NoteTooLong, "")
		typed = ledger.CutText(typed, maxQuery)
	}
	p.rest = typed
	root := p.all(0)
	for p.peek() == ')' { // one that nothing opened
		p.rest = p.rest[1:]
		root = both(root, p.all(0))
	}
	q := query{root: root, fields: p.fields, notes: p.notes}
	if root == nil && p.nothing {
		q.root = orNode{}
		q.notes = append(q.notes, Note{Reason: NoteNothing})
	}
	return q
}

// parser goes over a query from left to right.
type parser struct {
	compiler

	rest    string
	now     time.Time
	known   func(field, value string) bool
	fields  fields
	nothing bool // something was typed that there is nothing to look for in
}

// all reads groups until the end or a closing parenthesis.
func (p *parser) all(depth int) node {
	var kids []node
	for p.more() {
		if n := p.any(depth); n != nil {
			kids = append(kids, n)
		}
	}
	switch len(kids) {
	case 0:
		return nil
	case 1:
		return kids[0]
	default:
		return andNode{kids}
	}
}

// any reads one group.
func (p *parser) any(depth int) node {
	first := p.part(depth)
	kids := []node{first}
	for p.operator() == opOr {
		p.skipOperator()
		if !p.more() {
			break
		}
		kids = append(kids, p.part(depth))
	}
	var found []node
	for _, k := range kids {
		if k != nil {
			found = append(found, k)
		}
	}
	switch len(found) {
	case 0:
		return nil
	case 1:
		return found[0]
	default:
		return orNode{found}
	}
}

// part reads one part and always something of the rest.
func (p *parser) part(depth int) node {
	switch p.operator() {
	case opNot:
		p.skipOperator()
		if p.more() {
			return p.except(depth)
		}
		return nil
	case opAnd, opOr: // where no word stands before or after it
		p.skipOperator()
		return nil
	case opNone:
	}
	r, size := utf8.DecodeRuneInString(p.rest)
	after, _ := utf8.DecodeRuneInString(p.rest[size:])
	switch {
	case (r == '-' || r == '−') && size < len(p.rest) && !unicode.IsSpace(after):
		p.rest = p.rest[size:]
		return p.except(depth)
	case r == '(':
		p.rest = p.rest[size:]
		if depth >= maxDepth {
			return nil
		}
		n := p.all(depth + 1)
		if p.peek() == ')' {
			p.rest = p.rest[1:]
		}
		return n
	}
	return p.leaf()
}

// except reads a part and excludes it. A field is excluded as such.
func (p *parser) except(depth int) node {
	p.fields.negated = !p.fields.negated
	n := p.part(depth)
	p.fields.negated = !p.fields.negated
	switch n := n.(type) {
	case nil:
		return nil
	case notNode:
		return n.kid
	default:
		return notNode{n}
	}
}

// leaf reads a word, a phrase or a field.
func (p *parser) leaf() node {
	if phrase, ok := p.quoted(); ok {
		return p.look(fieldText, phrase, false)
	}
	word := p.word()
	if name, value, ok := strings.Cut(word, ":"); ok {
		if known := knownField(name); known != "" {
			if value == "" {
				value, _ = p.quoted()
			}
			return p.field(known, word, strings.TrimSpace(value))
		}
	}
	bare := strings.TrimRight(word, "*")
	return p.look(fieldText, bare, bare != word)
}

// look makes the node of a text and notes where there is nothing to look for.
func (p *parser) look(field, text string, prefix bool) node {
	n := p.text(field, text, prefix)
	if n == nil && strings.TrimSpace(text) != "" {
		p.nothing = true
	}
	return n
}

// field takes a field's value: of a title it is text, else a filter.
func (p *parser) field(name, typed, value string) node {
	if value == "" {
		return p.look(fieldText, typed, false)
	}
	if name == fieldTitle {
		bare := strings.TrimRight(value, "*")
		return p.look(fieldTitle, bare, bare != value)
	}
	value = strings.ToLower(value)
	if !p.known(name, value) {
		p.note(NoteBadValue, typed)
		return nil
	}
	if reason := p.fields.set(name, value, p.now); reason != "" {
		p.note(reason, typed)
	}
	return nil
}

// Quotes that phrases are written in, and what ends them.
const (
	opening = "\"«“„"
	closing = "\"»”“"
)

// quoted reads a phrase, where one begins here. One that does not end goes to
// the end of the query.
func (p *parser) quoted() (string, bool) {
	r, size := utf8.DecodeRuneInString(p.rest)
	if size == 0 || !strings.ContainsRune(opening, r) {
		return "", false
	}
	rest := p.rest[size:]
	ends := closing
	if r == '"' {
		ends = "\""
	}
	end := strings.IndexAny(rest, ends)
	if end < 0 {
		p.rest = ""
		return rest, true
	}
	_, width := utf8.DecodeRuneInString(rest[end:])
	p.rest = rest[end+width:]
	return rest[:end], true
}

// word reads up to a space, a quote or a closing parenthesis, at least one
// character.
func (p *parser) word() string {
	open := 0
	end := strings.IndexFunc(p.rest, func(r rune) bool {
		switch r {
		case '(':
			open++
		case ')':
			open--
		}
		return unicode.IsSpace(r) || strings.ContainsRune(opening, r) || open < 0
	})
	if end < 0 {
		end = len(p.rest)
	}
	if end == 0 {
		_, end = utf8.DecodeRuneInString(p.rest)
	}
	word := p.rest[:end]
	p.rest = p.rest[end:]
	return word
}

// more skips spaces and reports whether this level goes on.
func (p *parser) more() bool {
	p.rest = strings.TrimLeftFunc(p.rest, unicode.IsSpace)
	return p.rest != "" && p.rest[0] != ')'
}

func (p *parser) peek() byte {
	p.rest = strings.TrimLeftFunc(p.rest, unicode.IsSpace)
	if p.rest == "" {
		return 0
	}
	return p.rest[0]
}

// operators are words in capitals.
type operator uint8

const (
	opNone operator = iota
	opAnd
	opOr
	opNot
)

// operator returns the operator that comes next.
func (p *parser) operator() operator {
	p.rest = strings.TrimLeftFunc(p.rest, unicode.IsSpace)
	return operatorOf(firstField(p.rest))
}

func (p *parser) skipOperator() { p.rest = p.rest[len(firstField(p.rest)):] }

func firstField(s string) string {
	if end := strings.IndexFunc(s, unicode.IsSpace); end >= 0 {
		return s[:end]
	}
	return s
}

func operatorOf(word string) operator {
	switch word {
	case "AND", "&&":
		return opAnd
	case "OR", "ИЛИ", "|", "||":
		return opOr
	case "NOT", "НЕ":
		return opNot
	default:
		return opNone
	}
}

// both joins two queries that a stray parenthesis parts.
func both(a, b node) node {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	default:
		return andNode{[]node{a, b}}
	}
}
