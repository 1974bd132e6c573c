package crawl

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/ownfile"
)

// RegistryError is one thing that is wrong in sources.yaml. It matches
// ledger.ErrInvalid. ParseSources joins all of a file's.
type RegistryError struct {
	File    string
	Line    int    // from 1
	Field   string // "" where it is about the file or a whole source
	Message string
}

// Error returns file, line, field and message.
func (e *RegistryError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
	}
	return fmt.Sprintf("%s:%d: %s: %s", e.File, e.Line, e.Field, e.Message)
}

// Unwrap returns ledger.ErrInvalid.
func (e *RegistryError) Unwrap() error { return ledger.ErrInvalid }

// LoadSources reads sources.yaml; see ParseSources.
func LoadSources(path string, directions []ledger.Direction) ([]Source, error) {
	data, err := ownfile.Read(path)
	if err != nil {
		return nil, fmt.Errorf("read sources: %w", err)
	}
	return ParseSources(data, filepath.Base(path), directions)
}

// ParseSources reads a registry of sources: a document with the list "sources",
// or a bare list; a file of nothing but comments, and a list of which nothing is there
// yet, are mistakes: one that is being written would take every source away. directions is the configured set, none for the default one.
// Of a file with errors nothing is returned but all of its errors, joined, each
// a *RegistryError; name stands for the file in them.
func ParseSources(data []byte, name string, directions []ledger.Direction) ([]Source, error) {
	if len(directions) == 0 {
		directions = ledger.DefaultDirections()
	}
	p := &registryParser{file: name, directions: directions, anchors: map[string]ast.Node{}}
	doc, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, syntaxError(name, err)
	}
	if !slices.ContainsFunc(doc.Docs, func(d *ast.DocumentNode) bool { return hasContent(d.Body) }) {
		return nil, &RegistryError{File: name, Line: 1, Message: "the file is empty; to have no sources write sources: []"}
	}
	var sources []Source
	for _, d := range doc.Docs {
		if d.Body != nil {
			ast.Walk(p, d.Body) // collects the anchors
			sources = append(sources, p.document(d.Body)...)
		}
	}
	p.duplicates(sources)
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	return sources, nil
}

// hasContent tells a document from one of nothing but comments.
func hasContent(body ast.Node) bool {
	_, comments := body.(*ast.CommentGroupNode)
	return body != nil && !comments
}

func syntaxError(name string, err error) error {
	var positioned yaml.Error
	if errors.As(err, &positioned) && positioned.GetToken() != nil {
		return &RegistryError{File: name, Line: positioned.GetToken().Position.Line, Message: positioned.GetMessage()}
	}
	return &RegistryError{File: name, Line: 1, Message: err.Error()}
}

// registryParser walks a document's nodes, so that each error knows its line.
type registryParser struct {
	file       string
	directions []ledger.Direction
	anchors    map[string]ast.Node
	lines      []int // of the sources read, in their order
	errs       []error
}

// Visit implements ast.Visitor.
func (p *registryParser) Visit(n ast.Node) ast.Visitor {
	if a, ok := n.(*ast.AnchorNode); ok {
		p.anchors[a.Name.GetToken().Value] = a.Value
	}
	return p
}

func (p *registryParser) fail(n ast.Node, field, format string, args ...any) {
	p.failAt(lineOf(n), field, format, args...)
}

func (p *registryParser) failAt(line int, field, format string, args ...any) {
	p.errs = append(p.errs, &RegistryError{File: p.file, Line: line, Field: field, Message: fmt.Sprintf(format, args...)})
}

func lineOf(n ast.Node) int {
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 {
		n = m.Values[0].Key
	}
	if t := n.GetToken(); t != nil {
		return t.Position.Line
	}
	return 1
}

// resolve follows aliases and drops anchors and tags.
func (p *registryParser) resolve(n ast.Node) ast.Node {
	for range 16 {
		switch v := n.(type) {
		case *ast.AliasNode:
			target, ok := p.anchors[v.Value.GetToken().Value]
			if !ok {
				p.fail(n, "", "the alias *%s has no anchor", v.Value.GetToken().Value)
				return nil
			}
			n = target
		case *ast.AnchorNode:
			n = v.Value
		case *ast.TagNode:
			n = v.Value
		default:
			return n
		}
	}
	p.fail(n, "", "aliases lead to each other")
	return nil
}

func (p *registryParser) document(body ast.Node) []Source {
	body = p.resolve(body)
	switch v := body.(type) {
	case nil, *ast.CommentGroupNode:
		return nil
	case *ast.NullNode:
		p.fail(body, "", "there is nothing here; to have no sources write sources: []")
		return nil
	case *ast.SequenceNode:
		return p.list(v)
	case *ast.MappingNode:
		var sources []Source
		for _, kv := range v.Values {
			if key := keyOf(kv); key != "sources" {
				p.fail(kv.Key, key, "unknown key: the document has one, sources")
				continue
			}
			switch list := p.resolve(kv.Value).(type) {
			case *ast.SequenceNode:
				sources = append(sources, p.list(list)...)
			case nil:
			case *ast.NullNode:
				p.fail(kv.Key, "sources", "there is nothing below it; to have no sources write sources: []")
			default:
				p.fail(kv.Value, "sources", "want a list")
			}
		}
		return sources
	default:
		p.fail(body, "", "want a list of sources, or a document with the list sources")
		return nil
	}
}

func (p *registryParser) list(seq *ast.SequenceNode) []Source {
	var sources []Source
	for _, n := range seq.Values {
		m, ok := p.resolve(n).(*ast.MappingNode)
		if !ok {
			p.fail(n, "", "want a source: a mapping with slug, crawler, direction and feed_url or channel")
			continue
		}
		sources = append(sources, p.source(m))
		p.lines = append(p.lines, lineOf(n))
	}
	return sources
}

// source reads one source. Keys that a merge (<<) brings stand below its own.
func (p *registryParser) source(m *ast.MappingNode) Source {
	r := &sourceReader{registryParser: p, src: Source{Enabled: true, Priority: ledger.P1}, set: map[string]int{}}
	before := len(p.errs)
	r.mapping(m, 0)
	if len(p.errs) == before {
		r.finish(lineOf(m))
	}
	return r.src
}

func keyOf(kv *ast.MappingValueNode) string { return kv.Key.GetToken().Value }

// duplicates reports sources that are the same under two slugs, or two under
// the same.
func (p *registryParser) duplicates(sources []Source) {
	first := map[string]int{}
	for i, s := range sources {
		for _, id := range []struct{ field, value string }{
			{"slug", string(s.Slug)}, {"feed_url", s.FeedURL}, {"channel", s.Channel},
		} {
			if id.value == "" {
				continue
			}
			key := id.field + " " + id.value
			if at, seen := first[key]; seen {
				p.failAt(p.lines[i], id.field, "%q is in line %d already", id.value, p.lines[at])
				continue
			}
			first[key] = i
		}
	}
}

// known reports whether d is one of the configured directions.
func (p *registryParser) known(d ledger.Direction) bool { return slices.Contains(p.directions, d) }

func (p *registryParser) directionNames() string {
	names := make([]string, len(p.directions))
	for i, d := range p.directions {
		names[i] = string(d)
	}
	return strings.Join(names, ", ")
}
