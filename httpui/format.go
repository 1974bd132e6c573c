package httpui

import (
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"vesti.nixg.ru/httpui/i18n"
	"vesti.nixg.ru/projections/search"
)

// formats make values readable in a language.
type formats struct {
	said     sayings
	now      func() time.Time
	location *time.Location
	base     string
}

func (s *Server) formats() formats {
	return formats{said: s.said, now: s.Now, location: s.Location, base: s.base}
}

// funcs are the functions of templates. Texts come from the catalogue by their
// key: t for a plain one, tn for one with plural forms, label for the name of a
// value of a closed set.
func (f formats) funcs(lang *i18n.Language) template.FuncMap {
	return template.FuncMap{
		"t":     lang.Text,
		"tn":    lang.Plural,
		"label": func(set string, value any) (string, error) { return label(lang, set, value) },

		"said": func(message string) (string, error) { return f.said.in(lang, message) },

		"note": func(n search.Note) (string, error) { return NoteText(lang, n) },

		"num":     lang.Number,
		"percent": lang.Percent,
		"decimal": lang.Decimal,
		"iso":     func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"when":    func(t time.Time) (string, error) { return f.when(lang, t) },
		"ago":     func(t time.Time) (string, error) { return f.ago(lang, t) },
		"past":    func(t time.Time) bool { return !t.After(f.now()) },
		"took":    func(d time.Duration) (string, error) { return took(lang, d) },
		"span":    func(d time.Duration) (string, error) { return span(lang, d) },
		"day":     func(t time.Time) string { return t.In(f.location).Format(time.DateOnly) },

		"url":        f.url,
		"link":       safeLink,
		"host":       host,
		"cut":        cut,
		"paragraphs": paragraphs,
		"untitled":   untitled,
		"standin":    func(media []string, source string) (string, error) { return StandIn(lang, media, source) },
		"dict":       dict,
		"int":        func(n int64) int { return int(n) },
		"count":      func(n uint64) int { return int(n) },
	}
}

// label is the name of a value of a closed set: the text "set.value". A value
// that is in none of the lists, written by a newer version, stands for itself.
func label(lang *i18n.Language, set string, value any) (string, error) {
	v := fmt.Sprint(value)
	key := set + "." + v
	if v == "" {
		key = set + ".none"
	}
	if !lang.Has(key) {
		return v, nil
	}
	return lang.Text(key)
}

// NoteText says what of a query was not followed.
func NoteText(lang *i18n.Language, n search.Note) (string, error) {
	key := "note." + string(n.Reason)
	if !lang.Has(key) {
		key = "note.other"
	}
	return lang.Text(key, "part", n.Part)
}

// url joins a path of ours, and pairs of query parameters, to the base.
func (f formats) url(p string, pairs ...string) string {
	u := f.base + p
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) > 0 {
		u += "?" + q.Encode()
	}
	return u
}

func (f formats) when(lang *i18n.Language, t time.Time) (string, error) {
	t = t.In(f.location)
	month, err := lang.Text("month." + strconv.Itoa(int(t.Month())))
	if err != nil {
		return "", err
	}
	return lang.Text("time.full", "day", t.Day(), "month", month, "year", strconv.Itoa(t.Year()), "clock", t.Format("15:04"))
}

// ago is a time as people say it: minutes and hours while it is near, then the
// date. A time ahead is said likewise.
func (f formats) ago(lang *i18n.Language, t time.Time) (string, error) {
	now := f.now()
	d := now.Sub(t)
	set := "ago."
	if d < 0 {
		d, set = -d, "in."
	}
	switch {
	case d < time.Minute:
		return lang.Text(set + "now")
	case d < time.Hour:
		return lang.Plural(set+"minutes", int(d/time.Minute))
	case d < 24*time.Hour:
		return lang.Plural(set+"hours", int(d/time.Hour))
	case d < 7*24*time.Hour:
		return lang.Plural(set+"days", int(d/(24*time.Hour)))
	}
	t = t.In(f.location)
	month, err := lang.Text("month." + strconv.Itoa(int(t.Month())))
	if err != nil {
		return "", err
	}
	key := "time.day"
	if t.Year() != now.In(f.location).Year() {
		key = "time.day_year"
	}
	return lang.Text(key, "day", t.Day(), "month", month, "year", strconv.Itoa(t.Year()))
}

// took is a duration to the precision that says something.
func took(lang *i18n.Language, d time.Duration) (string, error) {
	switch {
	case d < time.Millisecond:
		return lang.Text("duration.us", "n", int(d.Microseconds()))
	case d < time.Second:
		return lang.Text("duration.ms", "n", int(d.Milliseconds()))
	case d < time.Minute:
		return lang.Text("duration.s", "n", lang.Decimal(d.Seconds(), 1))
	default:
		return lang.Text("duration.min", "m", int(d/time.Minute), "s", int(d%time.Minute/time.Second))
	}
}

// span is how long something has lasted, in its largest unit.
func span(lang *i18n.Language, d time.Duration) (string, error) {
	switch {
	case d < time.Minute:
		return lang.Plural("lasting.seconds", int(d/time.Second))
	case d < time.Hour:
		return lang.Plural("lasting.minutes", int(d/time.Minute))
	case d < 48*time.Hour:
		return lang.Plural("lasting.hours", int(d/time.Hour))
	default:
		return lang.Plural("lasting.days", int(d/(24*time.Hour)))
	}
}

// safeLink returns an address that may be opened, "" for any other: http and
// https with a host, written anew so that nothing in it can end an attribute.
func safeLink(raw string) string {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return ""
	}
	u.User = nil
	if ascii, err := idna.Lookup.ToASCII(u.Hostname()); err == nil && ascii != u.Hostname() {
		u.Host = strings.Replace(u.Host, u.Hostname(), ascii, 1)
	}
	return u.String()
}

func host(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(u.Hostname(), "www.")
}

// cut shortens s to at most limit characters.
func cut(limit int, s string) string {
	count := 0
	for i := range s {
		if count == limit {
			return strings.TrimRight(s[:i], " ") + "…"
		}
		count++
	}
	return s
}

// paragraphs splits a text where a line is empty. A first one that only repeats
// the title is left out.
func paragraphs(title, text string) []string {
	var out []string
	for p := range strings.SplitSeq(text, "\n\n") {
		if p = strings.Trim(p, "\n"); strings.TrimSpace(p) != "" {
			out = append(out, p)
		}
	}
	if len(out) > 1 && strings.TrimSpace(out[0]) == strings.TrimSpace(title) {
		out = out[1:]
	}
	return out
}

// minRepeated is the length, in bytes, from which a title at the beginning of a
// text is taken for a heading and not for the first words of a sentence.
const minRepeated = 20

// untitled takes the title off the beginning of an excerpt, which stands below
// it, where a new sentence follows.
func untitled(heading, excerpt []search.Segment) []search.Segment {
	title, whole := plainText(heading), plainText(excerpt)
	after, ok := strings.CutPrefix(whole, title)
	text := strings.TrimLeft(after, " \n")
	if !ok || len(title) < minRepeated || len(text) == len(after) {
		return excerpt
	}
	if first, _ := utf8.DecodeRuneInString(text); !unicode.IsUpper(first) && !unicode.IsDigit(first) {
		return excerpt
	}
	skip := len(whole) - len(text)
	for i, s := range excerpt {
		if skip < len(s.Text) {
			return append([]search.Segment{{Text: s.Text[skip:], Mark: s.Mark}}, excerpt[i+1:]...)
		}
		skip -= len(s.Text)
	}
	return excerpt
}

// dict makes the argument of a sub-template from pairs.
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("dict: %d values do not pair", len(pairs))
	}
	m := make(map[string]any, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		k, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("dict: key %v is no text", pairs[i])
		}
		m[k] = pairs[i+1]
	}
	return m, nil
}
