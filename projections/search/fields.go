package search

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/projections/posts"
)

// fields are the filters that a query holds.
type fields struct {
	posts.Filter
	negated bool // what comes next is excluded
}

// Names of fields beside title.
const (
	fieldSource    = "source"
	fieldDirection = "direction"
	fieldLang      = "lang"
	fieldStatus    = "status"
	fieldVerdict   = "verdict"
	fieldAfter     = "after"
	fieldBefore    = "before"
)

// knownField returns the field that is called name in English or Russian, ""
// for none.
func knownField(name string) string {
	switch strings.ToLower(name) {
	case "title", "intitle", "заголовок":
		return fieldTitle
	case "source", "site", "источник":
		return fieldSource
	case "direction", "направление", "тема":
		return fieldDirection
	case "lang", "language", "язык":
		return fieldLang
	case "status", "статус":
		return fieldStatus
	case "verdict", "решение":
		return fieldVerdict
	case "after", "since", "с", "после":
		return fieldAfter
	case "before", "until", "до":
		return fieldBefore
	default:
		return ""
	}
}

// noDirection is what queries call having none.
const noDirection = "none"

// set takes a filter's value, in lower case, and returns why it was left out or
// "".
func (f *fields) set(name, value string, now time.Time) NoteReason {
	switch name {
	case fieldSource:
		appendTo(f.negated, &f.Sources, &f.NotSources, ledger.Slug(value))
	case fieldDirection:
		if value == noDirection {
			value = ""
		}
		appendTo(f.negated, &f.Directions, &f.NotDirections, ledger.Direction(value))
	case fieldLang:
		appendTo(f.negated, &f.Langs, &f.NotLangs, value)
	case fieldStatus:
		return f.setStatus(value)
	case fieldVerdict:
		return f.setVerdict(value)
	case fieldAfter, fieldBefore:
		at, ok := parseDate(value, now)
		if !ok {
			return NoteBadDate
		}
		// Not after a day is before it.
		if (name == fieldAfter) != f.negated {
			f.Since = later(f.Since, at)
		} else {
			f.Until = earlier(f.Until, at)
		}
	}
	return ""
}

func appendTo[T any](negated bool, only, not *[]T, value T) {
	if negated {
		only = not
	}
	*only = append(*only, value)
}

func (f *fields) setStatus(value string) NoteReason {
	all := []ledger.Status{ledger.StatusPending, ledger.StatusClassified, ledger.StatusParked}
	return choose(&f.Statuses, all, func(s ledger.Status) bool { return (s.String() == value) != f.negated })
}

func (f *fields) setVerdict(value string) NoteReason {
	all := []ledger.Verdict{ledger.VerdictNone, ledger.VerdictPicked, ledger.VerdictRejected}
	if value == "none" {
		value = ""
	}
	return choose(&f.Verdicts, all, func(v ledger.Verdict) bool { return (string(v) == value) != f.negated })
}

// choose appends the values that fit. All or none of them fit a value that
// there is not.
func choose[T any](to *[]T, all []T, fits func(T) bool) NoteReason {
	var chosen []T
	for _, v := range all {
		if fits(v) {
			chosen = append(chosen, v)
		}
	}
	if len(chosen) == 0 || len(chosen) == len(all) {
		return NoteBadValue
	}
	*to = append(*to, chosen...)
	return ""
}

// parseDate reads a day, a month, a year, "today", "yesterday" or so many hours,
// days or weeks back, in the zone of now. A day is its beginning.
func parseDate(s string, now time.Time) (time.Time, bool) {
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	switch s {
	case "today", "сегодня":
		return today, true
	case "yesterday", "вчера":
		return today.AddDate(0, 0, -1), true
	}
	for _, layout := range []string{time.DateOnly, "2006-01", "2006", "02.01.2006", "2.1.2006", "01.2006", "2006/01/02", "2006-01-02t15:04"} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return t, true
		}
	}
	return back(s, now, today)
}

// back reads "12h", "7d", "2w".
func back(s string, now, today time.Time) (time.Time, bool) {
	digits := strings.TrimRightFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	n, err := strconv.Atoi(digits)
	const most = 100_000
	if err != nil || n < 0 || n > most {
		return time.Time{}, false
	}
	switch s[len(digits):] {
	case "h", "ч":
		return now.Add(-time.Duration(n) * time.Hour), true
	case "d", "д":
		return today.AddDate(0, 0, -n), true
	case "w", "н":
		return today.AddDate(0, 0, -7*n), true
	default:
		return time.Time{}, false
	}
}

// within narrows a filter of a request by that of its query: both must hold.
func (f *fields) within(r posts.Filter) posts.Filter {
	narrow(&r, &r.Directions, f.Directions)
	narrow(&r, &r.Sources, f.Sources)
	narrow(&r, &r.Langs, f.Langs)
	narrow(&r, &r.Statuses, f.Statuses)
	narrow(&r, &r.Verdicts, f.Verdicts)
	r.NotDirections = slices.Concat(r.NotDirections, f.NotDirections)
	r.NotSources = slices.Concat(r.NotSources, f.NotSources)
	r.NotLangs = slices.Concat(r.NotLangs, f.NotLangs)
	r.Since = later(r.Since, f.Since)
	r.Until = earlier(r.Until, f.Until)
	return r
}

// narrow keeps of a list what is also in another; an empty one is everything.
func narrow[T comparable](of *posts.Filter, list *[]T, other []T) {
	switch {
	case len(other) == 0:
	case len(*list) == 0:
		*list = other
	default:
		*list = slices.DeleteFunc(slices.Clone(*list), func(v T) bool { return !slices.Contains(other, v) })
		of.None = of.None || len(*list) == 0
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// earlier treats the zero time as never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
