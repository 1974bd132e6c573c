package httpui

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"vesti.nixg.ru/httpui/auth"
	"vesti.nixg.ru/ledger"
)

type errorPage struct {
	Status int
	Key    string
	Detail string // see detailOf
}

// showError answers with the page, or the JSON, of an error.
func (s *Server) showError(w http.ResponseWriter, r *http.Request, err error) {
	status, key := statusOf(err)
	if throttled, ok := errors.AsType[*auth.ThrottledError](err); ok {
		retryAfter(w, throttled.After)
	}
	w.Header().Set("Cache-Control", "no-store")
	if wantsJSON(r) {
		if err := writeJSON(w, status, apiError{Error: s.errorText(r, status, key), Detail: detailOf(err), Status: status}); err != nil {
			s.Logger.ErrorContext(r.Context(), "error answer failed", "error", err)
		}
		return
	}
	if session, err := s.session(r); err == nil { // the menu stays
		r = withSession(r, session)
	}
	page := errorPage{Status: status, Key: key, Detail: detailOf(err)}
	if err := s.render(w, r, status, "error.html", "title.error", page); err != nil {
		s.Logger.ErrorContext(r.Context(), "error page failed", "error", err)
		http.Error(w, http.StatusText(status), status)
	}
}

// retryAfter tells a client how long to wait, and returns it, in whole seconds.
func retryAfter(w http.ResponseWriter, wait time.Duration) int {
	seconds := int(math.Ceil(wait.Seconds()))
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	return seconds
}

// detailOf is what the ledger says of a client's mistake: it names the thing.
// Other errors may tell of the inside and stay in the log.
func detailOf(err error) string {
	if own, ok := errors.AsType[*httpError](err); ok {
		return own.detail
	}
	for _, ours := range []error{ledger.ErrNotFound, ledger.ErrAmbiguous, ledger.ErrInvalid, ledger.ErrStale} {
		if errors.Is(err, ours) {
			return cut(maxDetail, err.Error())
		}
	}
	return ""
}

const maxDetail = 300

func (s *Server) errorText(r *http.Request, status int, key string) string {
	text, err := s.language(r).Text(key)
	if err != nil {
		return http.StatusText(status)
	}
	return text
}

func (s *Server) notFound(http.ResponseWriter, *http.Request) error {
	return &httpError{status: http.StatusNotFound, key: "error.not_found"}
}

func (s *Server) methodNotAllowed(http.ResponseWriter, *http.Request) error {
	return &httpError{status: http.StatusMethodNotAllowed, key: "error.method"}
}

func (s *Server) crossOrigin(http.ResponseWriter, *http.Request) error {
	return &httpError{status: http.StatusForbidden, key: "error.cross_origin"}
}
