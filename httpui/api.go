package httpui

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/mux"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/projections/sources"
)

const apiPrefix = "/api/v1/"

// apiRoutes are the JSON API: what the pages do, for programs. A request
// carries a token ("Authorization: Bearer …") or the cookie of a session.
func (s *Server) apiRoutes(r *mux.Router) {
	get := func(path string, h handler) {
		r.Handle(apiPrefix+path, s.page(routeAPI, s.api(h))).Methods(http.MethodGet, http.MethodHead)
	}
	post := func(path string, h handler) {
		r.Handle(apiPrefix+path, s.page(routeAPI, s.api(h))).Methods(http.MethodPost)
	}
	get("queue", s.apiQueue)
	get("sources", s.apiSources)
	get("sources/{slug}", s.apiSource)
	get("search", s.apiSearch)
	get("posts/{id}", s.apiPost)
	post("posts/{id}/review", s.apiReview)
	post("posts/{id}/requeue", s.apiRequeue)
	post("crawl", s.apiCrawl)
	post("work", s.apiWork)
	post("reset", s.apiReset)
}

type apiError struct {
	Error  string `json:"error"`
	Detail string `json:"detail,omitempty"`
	Status int    `json:"status"`
}

// api lets a handler run for who may.
func (s *Server) api(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		allowed, err := s.program(r)
		if err != nil {
			return err
		}
		if !allowed {
			w.Header().Set("WWW-Authenticate", `Bearer realm="vesti"`)
			return &httpError{status: http.StatusUnauthorized, key: "error.token"}
		}
		return h(w, r)
	}
}

func writeJSON(w http.ResponseWriter, status int, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // the client may be gone
	return nil
}

// readJSON reads a request's body, one JSON object, into v. No body, and null,
// say nothing and leave v as it was.
func readJSON(r *http.Request, v any) error {
	if r.ContentLength == 0 {
		return nil
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return &httpError{status: http.StatusUnsupportedMediaType, key: "error.want_json"}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return fmt.Errorf("read request: %w", err)
		}
		return badJSON("the body broke off")
	}
	if body = bytes.TrimSpace(body); len(body) == 0 || string(body) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return badJSON(strings.TrimPrefix(err.Error(), "json: "))
	}
	if int(d.InputOffset()) < len(body) {
		return badJSON("there is something after the object")
	}
	return nil
}

func badJSON(detail string) error {
	return &httpError{status: http.StatusBadRequest, key: "error.json", detail: detail}
}

// nothingToSay wants a request without a body, or with an empty object.
func nothingToSay(r *http.Request) error {
	return readJSON(r, &struct{}{})
}

func (s *Server) apiQueue(w http.ResponseWriter, _ *http.Request) error {
	c, now := s.queueNow()
	return writeJSON(w, http.StatusOK, map[string]any{
		"pending": c.Pending, "processing": c.Processing, "waiting": c.Waiting, "parked": c.Parked, "classified": c.Classified,
		"done_today": c.DoneToday, "oldest_pending_s": int(waited(c.OldestPending, now).Seconds()),
	})
}

// sourceJSON is a source as programs see it.
type sourceJSON struct {
	Slug          ledger.Slug      `json:"slug"`
	Name          string           `json:"name"`
	URL           string           `json:"url,omitempty"`
	Address       string           `json:"address,omitempty"`
	Crawler       ledger.Crawler   `json:"crawler,omitempty"`
	Direction     ledger.Direction `json:"direction,omitempty"`
	Lang          string           `json:"lang,omitempty"`
	Priority      string           `json:"priority,omitempty"`
	Enabled       bool             `json:"enabled"`
	Status        string           `json:"status"`
	LastFetch     *time.Time       `json:"last_fetch"`
	LastOK        *time.Time       `json:"last_ok"`
	LastNew       *time.Time       `json:"last_new"`
	Next          *time.Time       `json:"next"`
	Running       *time.Time       `json:"running_since,omitempty"`
	HTTPStatus    int              `json:"http_status,omitempty"`
	ErrorCount    int              `json:"error_count"`
	LastError     string           `json:"last_error,omitempty"`
	LastCause     ledger.Cause     `json:"last_cause,omitempty"`
	Throttled     *time.Time       `json:"throttled_until,omitempty"`
	Truncated     bool             `json:"truncated,omitempty"`
	ETag          string           `json:"etag,omitempty"`
	LastModified  string           `json:"last_modified,omitempty"`
	LastBuildDate string           `json:"last_build_date,omitempty"`
	Fetched       int              `json:"fetched"`
	New           int              `json:"new"`
	SeenAgain     int              `json:"seen_again"`
	Revised       int              `json:"revised"`
	Skipped       int              `json:"skipped"`
	Runs          []runJSON        `json:"runs,omitempty"`
}

type runJSON struct {
	Started    time.Time      `json:"started"`
	Trigger    ledger.Trigger `json:"trigger"`
	Result     sources.Result `json:"result"`
	DurationMS int64          `json:"duration_ms"`
	HTTPStatus int            `json:"http_status,omitempty"`
	Fetched    int            `json:"fetched"`
	New        int            `json:"new"`
	SeenAgain  int            `json:"seen_again"`
	Revised    int            `json:"revised"`
	Skipped    int            `json:"skipped"`
	Error      string         `json:"error,omitempty"`
}

// known is a time, nil for the zero one.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func (r sourceRow) json() sourceJSON {
	st := r.State
	j := sourceJSON{
		Slug: r.Slug, Name: r.Label(), URL: r.URL, Address: r.Address(), Crawler: r.Crawler, Direction: r.Direction, Lang: r.Lang,
		Enabled: r.Enabled, Status: r.Condition(), LastFetch: known(st.LastFetch), LastOK: known(st.LastOK), LastNew: known(st.LastNew),
		Next: known(r.Due), Running: known(r.Running), HTTPStatus: st.HTTPStatus, ErrorCount: st.ErrorCount, LastError: st.LastError, LastCause: st.LastCause,
		Throttled: known(st.ThrottledUntil), Truncated: r.Truncated, ETag: st.Validators.ETag, LastModified: st.Validators.LastModified,
		LastBuildDate: st.Validators.LastBuildDate, Fetched: st.Fetched, New: st.New, SeenAgain: st.SeenAgain, Revised: st.Revised,
		Skipped: st.Dropped,
	}
	if r.Configured {
		j.Priority = r.Priority.String()
	}
	return j
}

func (s *Server) apiSources(w http.ResponseWriter, _ *http.Request) error {
	all := []sourceJSON{}
	for _, row := range s.allSources() {
		all = append(all, row.json())
	}
	return writeJSON(w, http.StatusOK, map[string]any{"sources": all})
}

func (s *Server) apiSource(w http.ResponseWriter, r *http.Request) error {
	row, err := s.findSource(ledger.Slug(mux.Vars(r)["slug"]))
	if err != nil {
		return err
	}
	runs, err := s.Sources.Runs(r.Context(), row.Slug, shownRuns)
	if err != nil {
		return err
	}
	j := row.json()
	for _, run := range runs {
		j.Runs = append(j.Runs, runJSON{
			Started: run.Started.UTC(), Trigger: run.Trigger, Result: run.Result, DurationMS: run.Duration.Milliseconds(),
			HTTPStatus: run.HTTPStatus, Fetched: run.Fetched, New: run.New, SeenAgain: run.SeenAgain, Revised: run.Revised,
			Skipped: run.Dropped, Error: run.Error,
		})
	}
	return writeJSON(w, http.StatusOK, j)
}

func (s *Server) apiCrawl(w http.ResponseWriter, r *http.Request) error {
	return s.apiWithSlugs(w, r, func(slugs []ledger.Slug) (any, error) {
		return apiDone{OK: true}, s.Commands.CrawlNow(r.Context(), slugs...)
	})
}

func (s *Server) apiReset(w http.ResponseWriter, r *http.Request) error {
	return s.apiWithSlugs(w, r, func(slugs []ledger.Slug) (any, error) {
		n, err := s.Commands.ResetDead(r.Context(), slugs...)
		return map[string]int{"reset": n}, err
	})
}

// apiDone answers what has nothing else to say.
type apiDone struct {
	OK bool `json:"ok"`
}

// apiWithSlugs acts on the sources that the body names. That it names none is a
// mistake, not all of them: a program may have looked for some and found none.
func (s *Server) apiWithSlugs(w http.ResponseWriter, r *http.Request, act func([]ledger.Slug) (any, error)) error {
	var body struct {
		Sources []string `json:"sources"`
		All     bool     `json:"all"`
	}
	if err := readJSON(r, &body); err != nil {
		return err
	}
	if body.All == (len(body.Sources) > 0) {
		return badJSON(`say which sources: {"sources": ["SLUG"]}, or {"all": true}`)
	}
	slugs, err := s.knownSlugs(body.Sources)
	if err != nil {
		return err
	}
	answer, err := act(slugs)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, answer)
}

func (s *Server) apiWork(w http.ResponseWriter, r *http.Request) error {
	if err := nothingToSay(r); err != nil {
		return err
	}
	if err := s.Commands.WorkNow(r.Context()); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, apiDone{OK: true})
}
