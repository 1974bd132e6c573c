package httpui

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"vesti.nixg.ru/httpui/i18n"
)

// sayings put what vesti says in English, to its log and into its ledger, into
// the language of a page. Their English is in the catalogue as well, under
// "said.", with places for what differs each time. What is not there is somebody
// else's, a server's or a library's, and stays as it came.
type sayings []saying

type saying struct {
	key    string
	shape  *regexp.Regexp // of the message, up to the colon before what another has said
	places []string
}

// place is one of a catalogue's text.
var place = regexp.MustCompile(`\\\{([a-z]+)\\\}`)

func newSayings(words *i18n.Catalogue) (sayings, error) {
	var all sayings
	english := words.Match("en", "")
	for _, key := range english.Keys() {
		if !strings.HasPrefix(key, "said.") {
			continue
		}
		text, err := english.Text(key)
		if err != nil {
			return nil, err
		}
		quoted := regexp.QuoteMeta(text)
		one := saying{key: key}
		for _, m := range place.FindAllStringSubmatch(quoted, -1) {
			one.places = append(one.places, m[1])
		}
		shape := place.ReplaceAllString(quoted, `(.+?)`)
		if strings.HasPrefix(text, "{") { // reaches over no other error's text
			shape = strings.Replace(shape, `(.+?)`, `((?:[^:]|:[^ ])+?)`, 1)
		}
		if one.shape, err = regexp.Compile(`^(?s:` + shape + `)(?:: |$)`); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		all = append(all, one)
	}
	// The most definite first: "the server is busy" before "the {name} is {state}".
	slices.SortStableFunc(all, func(a, b saying) int { return cmp.Compare(len(b.shape.String()), len(a.shape.String())) })
	return all, nil
}

// in returns the message in the language. Errors that wrap one another stand
// behind colons, and each is put into words by itself.
func (s sayings) in(lang *i18n.Language, message string) (string, error) {
	var parts []string
	for rest := message; rest != ""; {
		text, used, err := s.first(lang, rest)
		if err != nil {
			return "", err
		}
		if used == 0 {
			before, after, _ := strings.Cut(rest, ": ")
			text, used = before, len(rest)-len(after)
		}
		parts = append(parts, text)
		rest = rest[used:]
	}
	return strings.Join(parts, ": "), nil
}

// first puts the beginning of a message into words and returns how much of it,
// 0 for a beginning that is not known.
func (s sayings) first(lang *i18n.Language, message string) (text string, used int, err error) {
	for _, one := range s {
		m := one.shape.FindStringSubmatch(message)
		if m == nil {
			continue
		}
		var pairs []any
		for i, name := range one.places {
			pairs = append(pairs, name, m[i+1])
		}
		text, err = lang.Text(one.key, pairs...)
		return text, len(m[0]), err
	}
	return "", 0, nil
}
