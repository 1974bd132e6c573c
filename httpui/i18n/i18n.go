// Package i18n is the catalogue of the pages' words: one YAML file for each
// language, embedded, with plural forms where a number decides.
package i18n

import (
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/number"
)

//go:embed *.yaml
var files embed.FS

// Languages lists the languages of the catalogue, the default first.
func Languages() []language.Tag { return []language.Tag{language.English, language.Russian} }

// Catalogue is the words of all languages. It is safe for concurrent use.
type Catalogue struct {
	matcher   language.Matcher
	languages []*Language
}

// Language is the words of one language.
type Language struct {
	Tag     language.Tag
	texts   map[string]text
	printer *message.Printer
}

// text is one entry: either one form, or one for each plural category.
type text struct {
	one  string
	form map[plural.Form]string
}

// Load reads the catalogue. It fails where a file is broken or an entry lacks a
// plural form of its language.
func Load() (*Catalogue, error) {
	c := &Catalogue{matcher: language.NewMatcher(Languages())}
	for _, tag := range Languages() {
		l, err := load(tag)
		if err != nil {
			return nil, fmt.Errorf("catalogue %s: %w", tag, err)
		}
		c.languages = append(c.languages, l)
	}
	return c, nil
}

func load(tag language.Tag) (*Language, error) {
	b, err := files.ReadFile(tag.String() + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	var raw map[string]any
	if err := yaml.Unmarshal(b, &raw); err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	l := &Language{Tag: tag, texts: make(map[string]text, len(raw)), printer: message.NewPrinter(tag)}
	for key, value := range raw {
		t, err := newText(tag, value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		l.texts[key] = t
	}
	return l, nil
}

func newText(tag language.Tag, value any) (text, error) {
	switch v := value.(type) {
	case string:
		return text{one: v}, nil
	case map[string]any:
		t := text{form: map[plural.Form]string{}}
		for _, f := range forms(tag) {
			s, ok := v[f.name].(string)
			if !ok {
				return text{}, fmt.Errorf("no plural form %q", f.name)
			}
			t.form[f.form] = s
		}
		if len(v) != len(t.form) {
			return text{}, fmt.Errorf("plural forms %v: want exactly those of the language", slices.Sorted(maps.Keys(v)))
		}
		return t, nil
	default:
		return text{}, fmt.Errorf("%T is neither a text nor plural forms", value)
	}
}

type namedForm struct {
	name string
	form plural.Form
}

// forms lists the plural categories that whole numbers of a language fall into.
func forms(tag language.Tag) []namedForm {
	if tag == language.Russian {
		return []namedForm{{"one", plural.One}, {"few", plural.Few}, {"many", plural.Many}}
	}
	return []namedForm{{"one", plural.One}, {"other", plural.Other}}
}

// Match returns the language that fits best: the chosen one where the
// catalogue has it, else the best of an Accept-Language header.
func (c *Catalogue) Match(chosen, acceptLanguage string) *Language {
	for _, l := range c.languages {
		if l.Tag.String() == chosen {
			return l
		}
	}
	tags, _, err := language.ParseAcceptLanguage(acceptLanguage)
	if err != nil {
		return c.languages[0]
	}
	_, i, _ := c.matcher.Match(tags...)
	return c.languages[i]
}

// All lists the languages, the default first.
func (c *Catalogue) All() []*Language { return c.languages }

// Keys lists the keys of a language in order.
func (l *Language) Keys() []string { return slices.Sorted(maps.Keys(l.texts)) }

// Has reports whether the language has the key.
func (l *Language) Has(key string) bool {
	_, ok := l.texts[key]
	return ok
}

// Text returns the entry of key with its places filled: "{name}" by the value
// after "name" in pairs.
func (l *Language) Text(key string, pairs ...any) (string, error) {
	t, ok := l.texts[key]
	if !ok || t.form != nil {
		return "", fmt.Errorf("catalogue %s: no text %q", l.Tag, key)
	}
	return l.fill(t.one, pairs)
}

// Plural returns the entry of key in the form that n takes, with "{n}" and the
// places of pairs filled.
func (l *Language) Plural(key string, n int, pairs ...any) (string, error) {
	t, ok := l.texts[key]
	if !ok || t.form == nil {
		return "", fmt.Errorf("catalogue %s: no plural text %q", l.Tag, key)
	}
	form := plural.Cardinal.MatchPlural(l.Tag, n, 0, 0, 0, 0)
	return l.fill(t.form[form], append([]any{"n", n}, pairs...))
}

// Number returns n with the language's separators.
func (l *Language) Number(n int) string { return l.printer.Sprint(number.Decimal(n)) }

// Percent returns a share, 0 to 1, as a whole percentage.
func (l *Language) Percent(share float64) string {
	return l.printer.Sprint(number.Percent(share, number.MaxFractionDigits(0)))
}

// Decimal returns f with the given number of digits after the separator.
func (l *Language) Decimal(f float64, digits int) string {
	return l.printer.Sprint(number.Decimal(f, number.MinFractionDigits(digits), number.MaxFractionDigits(digits)))
}

func (l *Language) fill(s string, pairs []any) (string, error) {
	if len(pairs)%2 != 0 {
		return "", fmt.Errorf("catalogue %s: %q: places and values do not pair", l.Tag, s)
	}
	places := make([]string, 0, len(pairs))
	for i := 0; i < len(pairs); i += 2 {
		value := fmt.Sprint(pairs[i+1])
		if n, ok := pairs[i+1].(int); ok {
			value = l.Number(n)
		}
		places = append(places, fmt.Sprintf("{%v}", pairs[i]), value)
	}
	return strings.NewReplacer(places...).Replace(s), nil
}
