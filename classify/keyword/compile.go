package keyword

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"vesti.nixg.ru/classify/words"
	"vesti.nixg.ru/ledger"
)

const (
	defaultSourceWeight = 1.0 // what a source's own direction counts
	defaultMinScore     = 0.0
)

// Rules is a compiled rule set. It does not change and is safe for concurrent
// use.
type Rules struct {
	hash         string
	directions   []ledger.Direction
	elsewhere    []string // subjects that are no directions
	sourceWeight float64
	minScore     float64
	rules        []rule
	keywords     []keyword
	matcher      matcher
}

// rule is one rule, for a direction or for interest.
type rule struct {
	name    string
	subject int // index of directions, then of elsewhere; interestRule for none
	weight  float64
	sources map[ledger.Slug]struct{} // nil for all
}

const interestRule = -1

// keyword is one keyword of a rule.
type keyword struct {
	rule     int
	negative bool
}

// subject names a rule's subject: a direction, one elsewhere, or interest.
func (r *Rules) subject(i int) string {
	switch {
	case i == interestRule:
		return "interest"
	case i < len(r.directions):
		return string(r.directions[i])
	default:
		return r.elsewhere[i-len(r.directions)]
	}
}

// Hash identifies the rules: equal for files that differ in layout and comments
// only.
func (r *Rules) Hash() string { return r.hash }

// Directions lists the directions that the rules choose from. The caller must
// not change it.
func (r *Rules) Directions() []ledger.Direction { return r.directions }

// Size returns the number of rules and of keywords.
func (r *Rules) Size() (rules, keywords int) { return len(r.rules), len(r.keywords) }

// compiler builds Rules and collects what is wrong.
type compiler struct {
	rules   *Rules
	build   builder
	canon   strings.Builder
	errs    []fileError
	seen    map[string]int // rule names and their lines
	stemmer words.Stemmer
}

func compile(f file, directions []ledger.Direction) (*Rules, []fileError) {
	c := compiler{rules: &Rules{directions: slices.Clone(directions)}, seen: make(map[string]int)}
	c.build.init()
	c.rules.sourceWeight = c.setting("source_weight", f.SourceWeight, defaultSourceWeight)
	c.rules.minScore = c.setting("min_score", f.MinScore, defaultMinScore)
	names := slices.Sorted(maps.Keys(f.Directions))
	if len(directions) == 0 {
		for _, n := range names {
			c.rules.directions = append(c.rules.directions, ledger.Direction(n))
		}
	}
	for _, n := range names {
		c.direction(n, f.Directions[n])
	}
	for _, n := range slices.Sorted(maps.Keys(f.Elsewhere)) {
		if slices.Contains(c.rules.directions, ledger.Direction(n)) {
			c.fail(firstLine(f.Elsewhere[n]), "", "%q is a direction: its rules belong under directions", n)
			continue
		}
		c.rules.elsewhere = append(c.rules.elsewhere, n)
		for _, r := range f.Elsewhere[n] {
			c.rule(r, len(c.rules.directions)+len(c.rules.elsewhere)-1, maxWeight)
		}
	}
	for _, r := range f.Interest {
		c.rule(r, interestRule, 1)
	}
	c.rules.matcher = c.build.matcher()
	c.rules.hash = ledger.HashOf(c.canon.String()).String()[:16]
	return c.rules, c.errs
}

// setting checks a setting of the whole file.
func (c *compiler) setting(name string, given *float64, standard float64) float64 {
	value := standard
	if given != nil {
		value = *given
	}
	if !(value >= 0 && value <= maxWeight) {
		c.fail(1, "", "%s %v: want 0 to %v", name, value, maxWeight)
	}
	fmt.Fprintf(&c.canon, "%s %v\n", name, value)
	return value
}

func firstLine(rules []fileRule) int {
	if len(rules) == 0 {
		return 0
	}
	return rules[0].Rule.line
}

func (c *compiler) fail(line int, rule, format string, args ...any) {
	c.errs = append(c.errs, fileError{line: line, rule: rule, text: fmt.Sprintf(format, args...)})
}

func (c *compiler) direction(name string, rules []fileRule) {
	i := slices.Index(c.rules.directions, ledger.Direction(name))
	if i < 0 {
		c.fail(firstLine(rules), "", "direction %q is not configured: want one of %s", name, join(c.rules.directions))
		return
	}
	for _, r := range rules {
		c.rule(r, i, maxWeight)
	}
}

func join(directions []ledger.Direction) string {
	var b strings.Builder
	for i, d := range directions {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(d))
	}
	return b.String()
}

func (c *compiler) rule(r fileRule, subject int, limit float64) {
	name, line := r.Rule.text, r.Rule.line
	if name == "" {
		if len(r.Keywords) > 0 {
			line = r.Keywords[0].line
		}
		c.fail(line, "", "a rule has no name: give it one with \"rule:\"")
		return
	}
	if first, dup := c.seen[name]; dup {
		c.fail(line, name, "the name is taken by the rule at line %d", first)
		return
	}
	c.seen[name] = line
	compiled := rule{name: name, subject: subject, weight: 1}
	if r.Weight != nil {
		compiled.weight = r.Weight.value
		if w := r.Weight.value; w == 0 || w != w || w < -limit || w > limit {
			c.fail(r.Weight.line, name, "weight %v: want a number from %v to %v, not 0", w, -limit, limit)
		}
	}
	if len(r.Keywords) == 0 {
		c.fail(line, name, "it has no keywords")
	}
	for _, s := range r.Sources {
		if err := ledger.Slug(s.text).Validate(); err != nil {
			c.fail(s.line, name, "source: %v", err)
			continue
		}
		if compiled.sources == nil {
			compiled.sources = make(map[ledger.Slug]struct{})
		}
		compiled.sources[ledger.Slug(s.text)] = struct{}{}
	}
	index := len(c.rules.rules)
	c.rules.rules = append(c.rules.rules, compiled)
	fmt.Fprintf(&c.canon, "rule %q of %q weight %v sources %q\n", name, c.rules.subject(subject), compiled.weight, slices.Sorted(maps.Keys(compiled.sources)))
	c.keywords(r.Keywords, name, keyword{rule: index})
	c.keywords(r.Negative, name, keyword{rule: index, negative: true})
}

func (c *compiler) keywords(list []located, rule string, k keyword) {
	seen := make(map[string]struct{}, len(list))
	for _, l := range list {
		p, err := c.pattern(l.text)
		if err != nil {
			c.fail(l.line, rule, "keyword %q: %v", l.text, err)
			continue
		}
		key := patternKey(p)
		if _, dup := seen[key]; dup {
			continue // another form of the same words
		}
		seen[key] = struct{}{}
		c.build.add(p, nil, int32(len(c.rules.keywords)))
		c.rules.keywords = append(c.rules.keywords, k)
	}
	fmt.Fprintf(&c.canon, "negative %v %q\n", k.negative, slices.Sorted(maps.Keys(seen)))
}

// pattern reads a keyword: words that match by their stem, or in quotes by
// their form. Each word of it is given by what it may match.
func (c *compiler) pattern(text string) ([][]patternWord, error) {
	bare := strings.Trim(text, `"`)
	exact := len(text) == len(bare)+2 && text[0] == '"'
	var s words.Scanner
	s.Reset(bare)
	var p [][]patternWord
	for s.Next() {
		start, end := s.Span()
		folded := string(s.Folded())
		if exact || s.Script() == words.Other || isAcronym(bare[start:end]) {
			p = append(p, []patternWord{{text: folded, exact: true}})
			continue
		}
		p = append(p, c.inflected(folded, s.Script()))
	}
	switch {
	case strings.ContainsAny(text, `*|\^`):
		return nil, fmt.Errorf("has one of the signs * | \\ ^: keywords are words and match in all their forms, or just so in quotes")
	case len(p) == 0:
		return nil, fmt.Errorf("has no letter and no digit")
	case len(p) > MaxPhrase:
		return nil, fmt.Errorf("has %d words, at most %d", len(p), MaxPhrase)
	}
	return p, nil
}

// inflected is what a word matches by its stem. A stem of one or two letters
// ("атом" has "ат") tells no words apart: then it is the word itself, and what
// has the word as its stem ("атома"). A name like "Лавров" has the stem of a
// genitive, "лавр", its other forms ("Лаврова") have the name for theirs: it is both.
func (c *compiler) inflected(folded string, script words.Script) []patternWord {
	stem := c.stemmer.Stem(folded, script)
	if utf8.RuneCountInString(stem) >= 3 {
		if script == words.Cyrillic && (folded == stem+"ов" || folded == stem+"ев") {
			return []patternWord{{text: stem}, {text: folded}}
		}
		return []patternWord{{text: stem}}
	}
	if utf8.RuneCountInString(folded) < 3 {
		return []patternWord{{text: folded, exact: true}}
	}
	return []patternWord{{text: folded, exact: true}, {text: folded}}
}

// isAcronym reports whether a word is in capitals throughout and has at least
// two, "МЧС".
func isAcronym(raw string) bool {
	return strings.ToUpper(raw) == raw && strings.ToLower(raw) != raw && utf8.RuneCountInString(raw) > 1
}

func patternKey(p [][]patternWord) string {
	parts := make([]string, len(p))
	for i, w := range p {
		parts[i] = strconv.FormatBool(w[0].exact && len(w) == 1)[:1] + w[0].text
	}
	return strings.Join(parts, " ")
}
