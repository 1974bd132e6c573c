package keyword

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/ownfile"
)

const (
	// maxNodes bounds what a file unfolds to when its aliases are followed.
	maxNodes = 2_000_000
	// maxDepth bounds how deep brackets stand in each other: the parser calls itself
	// for each.
	maxDepth = 100
)

// parseTree parses a file of one document. It refuses what would take the parser
// or the decoder for ever: depth without end, and aliases of aliases.
func parseTree(data []byte) (ast.Node, error) {
	if len(data) > ownfile.Max {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ledger.ErrTooLarge, len(data), ownfile.Max)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if err := readable(data); err != nil {
		return nil, err
	}
	tree, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, err
	}
	var body ast.Node
	for _, doc := range tree.Docs {
		switch {
		case doc.Body == nil:
		case body != nil:
			return nil, fileError{line: lineOf(doc.Body), text: "a second document begins: want one"}
		default:
			body = doc.Body
		}
	}
	if body == nil {
		return nil, errors.New("is empty")
	}
	if err := nothingLeftOpen(body); err != nil {
		return nil, err
	}
	u := unfolding{anchors: make(map[string]int)}
	u.size(body)
	return body, u.err
}

// nothingLeftOpen refuses a key with nothing after it: a file that is being
// written would take away the rules that are not there yet.
func nothingLeftOpen(n ast.Node) error {
	switch n := n.(type) {
	case *ast.AnchorNode:
		return nothingLeftOpen(n.Value)
	case *ast.MappingNode:
		for _, v := range n.Values {
			if err := nothingLeftOpen(v); err != nil {
				return err
			}
		}
	case *ast.MappingValueNode:
		if _, open := n.Value.(*ast.NullNode); open {
			key := n.Key.GetToken().Value
			none := "[]"
			if key == "directions" || key == "elsewhere" {
				none = "{}"
			}
			return fileError{line: lineOf(n.Key), text: fmt.Sprintf("there is nothing below %s; to have none write %s: %s", key, key, none)}
		}
		return nothingLeftOpen(n.Value)
	case *ast.SequenceNode:
		for _, v := range n.Values {
			if err := nothingLeftOpen(v); err != nil {
				return err
			}
		}
	}
	return nil
}

// readable wants UTF-8 text whose brackets are not nested without end. Brackets
// within quotes count as well: that costs nothing and needs no parser.
func readable(data []byte) error {
	depth := 0
	for line, text := 1, data; len(text) > 0; line++ {
		var l []byte
		l, text, _ = bytes.Cut(text, []byte("\n"))
		if !utf8.Valid(l) || bytes.IndexByte(l, 0) >= 0 {
			return fileError{line: line, text: "is no UTF-8 text: save the file as UTF-8"}
		}
		for _, b := range l {
			switch b {
			case '[', '{':
				depth++
			case ']', '}':
				depth = max(depth-1, 0)
			}
		}
		if depth > maxDepth {
			return fileError{line: line, text: fmt.Sprintf("%d brackets are open", depth)}
		}
	}
	return nil
}

// unfolding counts the nodes of a tree as if each alias were what it stands for.
type unfolding struct {
	anchors map[string]int // sizes of those that are complete
	err     error
}

func (u *unfolding) size(n ast.Node) int {
	total := 1
	add := func(nodes ...ast.Node) {
		for _, n := range nodes {
			total = min(total+u.size(n), 2*maxNodes)
		}
	}
	switch n := n.(type) {
	case *ast.AnchorNode:
		add(n.Value)
		u.anchors[n.Name.GetToken().Value] = total
	case *ast.AliasNode:
		size, ok := u.anchors[n.Value.GetToken().Value]
		if !ok {
			u.fail(n, fmt.Sprintf("alias *%s has no anchor before it", n.Value.GetToken().Value))
		}
		total += size
	case *ast.MappingNode:
		for _, v := range n.Values {
			add(v)
		}
	case *ast.MappingValueNode:
		add(n.Key, n.Value)
	case *ast.SequenceNode:
		add(n.Values...)
	case *ast.TagNode:
		add(n.Value)
	}
	if total > maxNodes {
		u.fail(n, fmt.Sprintf("unfolds to more than %d words: use fewer aliases", maxNodes))
	}
	return total
}

func (u *unfolding) fail(n ast.Node, text string) {
	if u.err == nil {
		u.err = fileError{line: lineOf(n), text: text}
	}
}
