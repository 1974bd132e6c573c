package httpui

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/language"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/projections/posts"
	"vesti.nixg.ru/projections/search"
)

// maxOffset bounds how far a program pages, for the reason that maxPages gives.
const maxOffset = pageSize * maxPages

// searchParameters reads the address of a program's search. Where a page shows
// more than it was asked for, a program would take the answer for the right one:
// what means nothing is an error that names the parameter.
func (s *Server) searchParameters(v url.Values) (search.Request, error) {
	q := parseQuery(v)
	if q.Tab == "" {
		q.Tab = tabAll
	}
	limit, offset := search.DefaultLimit, 0
	checks := map[string]func(value string) (want string, err error){
		"q":         nil,
		"tab":       oneOf(tabOpen, tabPicked, tabRejected, tabAll),
		"direction": oneOf(append(namesOf(s.Directions), none)...),
		"source":    s.wantSource,
		"lang":      wantLanguage,
		"status":    oneOf(statusNames()...),
		"since":     s.wantDay,
		"until":     s.wantDay,
		"sort":      oneOf(string(posts.ByDate), string(posts.ByInterest), string(posts.ByRelevance)),
		"limit":     wantNumber(&limit, search.MaxLimit),
		"offset":    wantNumber(&offset, maxOffset),
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		check, known := checks[name]
		switch {
		case !known:
			return search.Request{}, badParameter(name, "there is none of that name; there are "+strings.Join(slices.Sorted(maps.Keys(checks)), ", "))
		case len(v[name]) > 1:
			return search.Request{}, badParameter(name, "it is there more than once")
		case check == nil, v.Get(name) == "":
			continue
		}
		want, err := check(v.Get(name))
		if errors.Is(err, errNotThat) {
			return search.Request{}, badParameter(name, fmt.Sprintf("want %s, not %q", want, cut(maxDetail/3, v.Get(name))))
		}
		if err != nil {
			return search.Request{}, err
		}
	}
	req := q.request(s.Location)
	req.Facets, req.Limit, req.Offset = false, limit, offset
	return req, nil
}

// errNotThat says that a value is not one of those that a parameter takes.
var errNotThat = errors.New("not what is wanted")

func badParameter(name, detail string) error {
	return &httpError{status: http.StatusBadRequest, key: "error.parameter", detail: name + ": " + detail}
}

func oneOf(values ...string) func(string) (string, error) {
	return func(value string) (string, error) {
		if slices.Contains(values, value) {
			return "", nil
		}
		return "one of " + strings.Join(values, ", "), errNotThat
	}
}

func wantNumber(n *int, most int) func(string) (string, error) {
	return func(value string) (string, error) {
		got, err := strconv.Atoi(value)
		if err != nil || got < 0 || got > most {
			return fmt.Sprintf("a whole number from 0 to %d", most), errNotThat
		}
		*n = got
		return "", nil
	}
}

func wantLanguage(value string) (string, error) {
	if base, err := language.ParseBase(value); value == none || err == nil && base.String() == value {
		return "", nil
	}
	return "a language by its two letters, such as ru or en, or -", errNotThat
}

func (s *Server) wantDay(value string) (string, error) {
	if _, err := time.ParseInLocation(time.DateOnly, value, s.Location); err != nil {
		return "a day such as 2026-11-30", errNotThat
	}
	return "", nil
}

// wantSource wants a source that there is, or was.
func (s *Server) wantSource(value string) (string, error) {
	_, err := s.findSource(ledger.Slug(value))
	if errors.Is(err, ledger.ErrNotFound) {
		err = errNotThat
	}
	return "the slug of a source", err
}

func namesOf[T ~string](list []T) []string {
	names := make([]string, len(list))
	for i, v := range list {
		names[i] = string(v)
	}
	return names
}

func statusNames() []string {
	var names []string
	for _, st := range statuses() {
		names = append(names, st.String())
	}
	return names
}
