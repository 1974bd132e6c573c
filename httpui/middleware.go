package httpui

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"

	"vesti.nixg.ru/httpui/auth"
	"vesti.nixg.ru/ledger"
)

// handler answers one request. An error it returns is shown as a page, or as
// JSON where the client asked for that; the handler has then written nothing.
type handler func(w http.ResponseWriter, r *http.Request) error

// securityHeaders are those of every answer. No page has a script or a style
// of its own, so that the policy needs no exception.
func securityHeaders(next http.Handler) http.Handler {
	const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
		"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// limits bounds the time, the address and the body of each request.
func (s *Server) limits(next http.Handler) http.Handler {
	tooLong := s.page(routeOther, func(http.ResponseWriter, *http.Request) error {
		return &httpError{status: http.StatusRequestURITooLong, key: "error.long_address"}
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), handleTime)
		defer cancel()
		r = r.WithContext(ctx)
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		if len(r.RequestURI) > maxURI {
			short := url.URL{Path: "/"} // the error page repeats the address in its links
			if wantsJSON(r) {
				short.Path = apiPrefix
			}
			r.URL = &short
			tooLong.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// stripBase takes the external path off, where the proxy has left it on.
func (s *Server) stripBase(next http.Handler) http.Handler {
	if s.base == "" {
		return next
	}
	strip := http.StripPrefix(s.base, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch p := r.URL.EscapedPath(); {
		case p == s.base:
			http.Redirect(w, r, s.base+"/", http.StatusMovedPermanently)
		case strings.HasPrefix(p, s.base+"/"):
			strip.ServeHTTP(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// page makes a handler an http.Handler: it counts and times the answer, turns
// an error into one and survives a panic.
func (s *Server) page(name route, h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := &recorder{ResponseWriter: w}
		started := s.Now()
		if err := guarded(h, rec, r); err != nil {
			s.logError(r, err)
			if !rec.wrote {
				s.showError(rec, r, err)
			}
		}
		took := s.Now().Sub(started)
		s.metrics.observe(name, rec.status(), took)
		s.Logger.DebugContext(r.Context(), "request", slog.String("method", r.Method), slog.String("path", r.URL.Path),
			slog.Int("status", rec.status()), slog.Duration("took", took))
	})
}

// guarded turns a panic into an error, so that one request's defect stays that.
func guarded(h handler, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if e, ok := p.(error); ok && errors.Is(e, http.ErrAbortHandler) {
			panic(p)
		}
		err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
	}()
	return h(w, r)
}

func (s *Server) logError(r *http.Request, err error) {
	status, _ := statusOf(err)
	if status < http.StatusInternalServerError || r.Context().Err() != nil {
		return
	}
	s.Logger.ErrorContext(r.Context(), "request failed", slog.String("method", r.Method), slog.String("path", r.URL.Path),
		slog.Any("error", err))
}

// recorder notes what was answered.
type recorder struct {
	http.ResponseWriter
	code  int
	wrote bool
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(code int) {
	if !r.wrote {
		r.code, r.wrote = code, true
	}
	r.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(b []byte) (int, error) {
	r.wrote = true
	return r.ResponseWriter.Write(b)
}

// Unwrap serves http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *recorder) status() int {
	if r.code == 0 {
		return http.StatusOK
	}
	return r.code
}

// httpError is an error that the client is told of in so many words.
type httpError struct {
	status int
	key    string // of the catalogue
	detail string // what of the request is wrong, for a programmer; "" for nothing more
}

// Error names the status and the key.
func (e *httpError) Error() string { return fmt.Sprintf("%d %s", e.status, e.key) }

// statusOf is the one table from errors to HTTP. The key names the catalogue's
// explanation.
func statusOf(err error) (status int, key string) {
	var own *httpError
	var big *http.MaxBytesError
	var throttled *auth.ThrottledError
	switch {
	case errors.As(err, &own):
		return own.status, own.key
	case errors.As(err, &big):
		return http.StatusRequestEntityTooLarge, "error.too_large"
	case errors.As(err, &throttled):
		return http.StatusTooManyRequests, "error.throttled"
	case errors.Is(err, ledger.ErrNotFound):
		return http.StatusNotFound, "error.not_found"
	case errors.Is(err, ledger.ErrAmbiguous):
		return http.StatusNotFound, "error.ambiguous"
	case errors.Is(err, ledger.ErrInvalid), errors.Is(err, ledger.ErrTooLarge):
		return http.StatusBadRequest, "error.invalid"
	case errors.Is(err, ledger.ErrStale):
		return http.StatusConflict, "error.stale"
	case errors.Is(err, ledger.ErrUnreadable):
		return http.StatusInternalServerError, "error.unreadable"
	case errors.Is(err, ledger.ErrNoSpace), errors.Is(err, ledger.ErrReadOnly):
		return http.StatusServiceUnavailable, "error.no_space"
	case errors.Is(err, ledger.ErrClosed):
		return http.StatusServiceUnavailable, "error.stopping"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable, "error.timeout"
	default:
		return http.StatusInternalServerError, "error.internal"
	}
}

// clientAddress is who asks: the peer, or, where the peer is a trusted proxy,
// the last address in X-Forwarded-For that is none.
func (s *Server) clientAddress(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		if !s.trusts(host) {
			break
		}
		hop = strings.TrimSpace(hop)
		if _, err := netip.ParseAddr(hop); err != nil {
			break
		}
		host = hop
	}
	return host
}

func (s *Server) trusts(host string) bool {
	a, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(s.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(a.Unmap()) })
}
