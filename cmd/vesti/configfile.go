package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"vesti.nixg.ru/ledger/ownfile"
)

func (c *Config) readFile(l configLayers) error {
	path, explicit := l.file, l.file != ""
	if !explicit {
		path = filepath.Join(c.Data, "vesti.yaml")
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(l.cwd, path)
	}
	c.File = path
	b, err := ownfile.Read(path)
	if errors.Is(err, fs.ErrNotExist) && !explicit {
		return nil
	}
	if err != nil {
		return usagef("configuration: %v", err)
	}
	return c.parse(path, b)
}

// parse walks the file's syntax tree, so that each error can name its line.
func (c *Config) parse(path string, b []byte) error {
	file, err := parser.ParseBytes(b, 0)
	if err != nil {
		return usagef("configuration %s: %s", path, yaml.FormatError(err, false, false))
	}
	byKey := map[string]setting{}
	for _, s := range c.settings() {
		byKey[s.key] = s
	}
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if err := parseNode(byKey, "", doc.Body); err != nil {
			return usagef("configuration %s: %v", path, err)
		}
	}
	return nil
}

func parseNode(byKey map[string]setting, prefix string, n ast.Node) error {
	m, ok := n.(ast.MapNode)
	if !ok {
		return fmt.Errorf("line %d: want settings as \"key: value\"", n.GetToken().Position.Line)
	}
	for it := m.MapRange(); it.Next(); {
		key := prefix + it.Key().GetToken().Value
		line := it.Key().GetToken().Position.Line
		s, known := byKey[key]
		_, nested := it.Value().(ast.MapNode)
		switch {
		case known:
			v, err := scalar(it.Value())
			if err == nil {
				err = s.set(v)
			}
			if err != nil {
				return fmt.Errorf("line %d: %s: %w", line, key, err)
			}
		case nested && len(below(byKey, key)) > 0:
			if err := parseNode(byKey, key+".", it.Value()); err != nil {
				return err
			}
		case len(below(byKey, key)) > 0:
			return fmt.Errorf("line %d: %s: want a mapping with keys of %s", line, key, strings.Join(below(byKey, key), ", "))
		default:
			return fmt.Errorf("line %d: unknown setting %q%s", line, key, suggest(key, slices.Collect(maps.Keys(byKey))))
		}
	}
	return nil
}

// below lists what a section of the file may hold.
func below(byKey map[string]setting, section string) []string {
	var names []string
	for k := range byKey {
		if name, ok := strings.CutPrefix(k, section+"."); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// scalar returns a value as it would stand in the environment.
func scalar(n ast.Node) (string, error) {
	switch n := n.(type) {
	case *ast.SequenceNode:
		var parts []string
		for _, v := range n.Values {
			p, err := scalar(v)
			if err != nil {
				return "", err
			}
			parts = append(parts, p)
		}
		return strings.Join(parts, ","), nil
	case *ast.NullNode:
		return "", nil
	case *ast.StringNode:
		return n.Value, nil
	case ast.ScalarNode:
		return n.GetToken().Value, nil
	default:
		return "", errors.New("want a single value")
	}
}
