package keyword

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"vesti.nixg.ru/ledger"
)

const (
	// MaxPhrase is the number of words that a phrase may have.
	MaxPhrase = 4

	maxWeight = 10.0
	// maxMessage bounds what the parser says is wrong, in bytes.
	maxMessage = 500
)

//go:embed starter.yaml
var starter []byte

// Starter returns the rules that vesti brings, for a user to write out and
// change. The caller owns the bytes.
func Starter() []byte { return bytes.Clone(starter) }

// file is the form of a rules file.
type file struct {
	Version      int                   `yaml:"version"`
	SourceWeight *float64              `yaml:"source_weight"`
	MinScore     *float64              `yaml:"min_score"`
	Directions   map[string][]fileRule `yaml:"directions"`
	Elsewhere    map[string][]fileRule `yaml:"elsewhere"`
	Interest     []fileRule            `yaml:"interest"`
}

type fileRule struct {
	Rule     located   `yaml:"rule"`
	Weight   *number   `yaml:"weight"`
	Keywords []located `yaml:"keywords"`
	Negative []located `yaml:"negative"`
	Sources  []located `yaml:"sources"`
}

// located is a scalar that knows where it stands.
type located struct {
	text string
	line int
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (l *located) UnmarshalYAML(n ast.Node) error {
	text, err := scalar(n)
	*l = located{text: text, line: lineOf(n)}
	return err
}

// number is a number that knows where it stands.
type number struct {
	value float64
	line  int
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (f *number) UnmarshalYAML(n ast.Node) error {
	text, err := scalar(n)
	if err != nil {
		return err
	}
	f.line = lineOf(n)
	if f.value, err = strconv.ParseFloat(text, 64); err != nil {
		return fileError{line: f.line, text: fmt.Sprintf("weight %q is no number", text)}
	}
	return nil
}

func scalar(n ast.Node) (string, error) {
	if _, ok := n.(ast.ScalarNode); !ok || n.GetToken() == nil {
		return "", fileError{line: lineOf(n), text: fmt.Sprintf("want a word or a phrase, not %s", strings.ToLower(n.Type().String()))}
	}
	return n.GetToken().Value, nil
}

func lineOf(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}

// fileError is what is wrong at a line.
type fileError struct {
	line int
	rule string
	text string
}

func (e fileError) Error() string {
	if e.rule == "" {
		return fmt.Sprintf("line %d: %s", e.line, e.text)
	}
	return fmt.Sprintf("line %d: rule %q: %s", e.line, e.rule, e.text)
}

// Parse reads and compiles a rules file. name is the file's name for messages.
// Rules for a direction that is not among directions are an error; with no
// directions given, those of the file are taken. An error matches
// ledger.ErrInvalid and names the file, the line and the rule; all that are
// found are in it.
func Parse(name string, data []byte, directions []ledger.Direction) (*Rules, error) {
	f, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("%w: rules file %s: %w", ledger.ErrInvalid, name, err)
	}
	r, errs := compile(f, directions)
	if len(errs) == 0 && f.Directions == nil && f.Elsewhere == nil && f.Interest == nil {
		errs = append(errs, fileError{line: 1, text: "there are no rules; to have none write directions: {}"})
	}
	if len(errs) > 0 {
		slices.SortStableFunc(errs, func(a, b fileError) int { return a.line - b.line })
		all := make([]error, len(errs))
		for i, e := range errs {
			all[i] = e
		}
		return nil, fmt.Errorf("%w: rules file %s: %w", ledger.ErrInvalid, name, errors.Join(all...))
	}
	return r, nil
}

// ParseStarter compiles the starter rules for the given directions. Those for a
// subject that is not among them are left out, or stay under elsewhere; those
// of a subject under elsewhere that is a direction here count as one.
func ParseStarter(directions []ledger.Direction) (*Rules, error) {
	f, err := decode(starter)
	if err != nil {
		return nil, fmt.Errorf("starter rules: %w", err)
	}
	for d := range f.Directions {
		if len(directions) > 0 && !slices.Contains(directions, ledger.Direction(d)) {
			delete(f.Directions, d)
		}
	}
	for subject, rules := range f.Elsewhere {
		if slices.Contains(directions, ledger.Direction(subject)) {
			f.Directions[subject] = rules
			delete(f.Elsewhere, subject)
		}
	}
	r, errs := compile(f, directions)
	if len(errs) > 0 {
		return nil, fmt.Errorf("starter rules: %w", errs[0])
	}
	return r, nil
}

func decode(data []byte) (f file, err error) {
	defer func() { // the parser is another's, the file is the user's
		if v := recover(); v != nil {
			err = fmt.Errorf("cannot be read as YAML: %v", v)
		}
	}()
	tree, err := parseTree(data)
	if err == nil {
		err = yaml.NewDecoder(bytes.NewReader(nil), yaml.Strict()).DecodeFromNode(tree, &f)
	}
	var at yaml.Error
	switch {
	case errors.As(err, &at) && at.GetToken() != nil:
		return file{}, fileError{line: at.GetToken().Position.Line, text: ledger.CutText(at.GetMessage(), maxMessage)}
	case err != nil:
		return file{}, err
	case f.Version != 1:
		return file{}, fmt.Errorf("version is %d: want \"version: 1\"", f.Version)
	}
	return f, nil
}
