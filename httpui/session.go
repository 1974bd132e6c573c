package httpui

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"vesti.nixg.ru/httpui/auth"
	"vesti.nixg.ru/httpui/i18n"
)

// The cookies.
const (
	cookieSession = "vesti_session"
	cookieLang    = "vesti_lang"
	cookieTheme   = "vesti_theme"
	cookieFlash   = "vesti_flash"

	themeLight = "light"
	themeDark  = "dark"

	yearSeconds  = 365 * 24 * 3600
	flashSeconds = 60
)

type sessionKey struct{}

// editor lets a handler run for who is logged in. Others are sent to the login
// and back again afterwards.
func (s *Server) editor(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		session, err := s.session(r)
		if errors.Is(err, auth.ErrNoSession) {
			if wantsJSON(r) {
				return &httpError{status: http.StatusUnauthorized, key: "error.login"}
			}
			target := s.base + "/login"
			if r.Method == http.MethodGet && r.URL.RequestURI() != "/" {
				target += "?next=" + url.QueryEscape(s.base+r.URL.RequestURI())
			}
			http.Redirect(w, r, target, http.StatusSeeOther)
			return nil
		}
		if err != nil {
			return err
		}
		return h(w, withSession(r, session))
	}
}

func withSession(r *http.Request, session auth.Session) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), sessionKey{}, session))
}

func (s *Server) session(r *http.Request) (auth.Session, error) {
	c, err := r.Cookie(cookieSession)
	if err != nil {
		return auth.Session{}, auth.ErrNoSession
	}
	return s.accounts.Session(r.Context(), c.Value)
}

// program reports whether a request carries a token or a session.
func (s *Server) program(r *http.Request) (bool, error) {
	var err error
	if secret, ok := bearer(r); ok {
		_, err = s.accounts.CheckToken(r.Context(), secret)
	} else {
		_, err = s.session(r)
	}
	if errors.Is(err, auth.ErrNoSession) {
		return false, nil
	}
	return err == nil, err
}

func bearer(r *http.Request) (string, bool) {
	scheme, secret, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	return secret, ok && strings.EqualFold(scheme, "Bearer")
}

func currentSession(r *http.Request) auth.Session {
	session, _ := r.Context().Value(sessionKey{}).(auth.Session)
	return session
}

func loggedIn(r *http.Request) bool { return currentSession(r).ID != "" }

// wantsJSON reports whether the client is a script rather than a page.
func wantsJSON(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, apiPrefix) || strings.HasPrefix(r.Header.Get("Accept"), "application/json")
}

func (s *Server) setCookie(w http.ResponseWriter, r *http.Request, name, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure wherever the browser comes by https
		Name: name, Value: value, Path: s.base + "/", MaxAge: maxAge, HttpOnly: true,
		Secure: s.secure || r.TLS != nil, SameSite: http.SameSiteLaxMode,
	})
}

func (s *Server) startSession(w http.ResponseWriter, r *http.Request, secret string) {
	s.setCookie(w, r, cookieSession, secret, int(auth.LifeTime/time.Second))
}

func (s *Server) endSession(w http.ResponseWriter, r *http.Request) {
	s.setCookie(w, r, cookieSession, "", -1)
}

// language is the chosen one, else the best of those that the browser asks for.
func (s *Server) language(r *http.Request) *i18n.Language {
	chosen := ""
	if c, err := r.Cookie(cookieLang); err == nil {
		chosen = c.Value
	}
	return s.words.Match(chosen, r.Header.Get("Accept-Language"))
}

func themeOf(r *http.Request) string {
	if c, err := r.Cookie(cookieTheme); err == nil && (c.Value == themeLight || c.Value == themeDark) {
		return c.Value
	}
	return ""
}

func themeName(theme string) string {
	if theme == "" {
		return "auto"
	}
	return theme
}

// preferences stores the language and the theme in cookies.
func (s *Server) preferences(w http.ResponseWriter, r *http.Request) error {
	if err := parseForm(r); err != nil {
		return err
	}
	if lang := r.PostForm.Get("lang"); lang != "" {
		s.setCookie(w, r, cookieLang, s.words.Match(lang, "").Tag.String(), yearSeconds)
	}
	if r.PostForm.Has("theme") {
		switch theme := r.PostForm.Get("theme"); theme {
		case themeLight, themeDark:
			s.setCookie(w, r, cookieTheme, theme, yearSeconds)
		default:
			s.setCookie(w, r, cookieTheme, "", -1)
		}
	}
	s.redirectBack(w, r)
	return nil
}

// redirectBack leads to the form's "next".
func (s *Server) redirectBack(w http.ResponseWriter, r *http.Request) {
	s.redirect(w, r, r.PostForm.Get("next"))
}

// redirect leads to next, if that is a page of ours, else to the first page.
func (s *Server) redirect(w http.ResponseWriter, r *http.Request, next string) {
	http.Redirect(w, r, s.safeNext(next), http.StatusSeeOther)
}

// safeNext returns next where it is a path on this host below the base, else
// the first page. A path that browsers could take for another host ("//host",
// "/\host", one with control characters) is none.
func (s *Server) safeNext(next string) string {
	home := s.base + "/"
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" {
		return home
	}
	if !strings.HasPrefix(next, home) || strings.HasPrefix(next, "//") || strings.ContainsFunc(next, func(c rune) bool {
		return c < ' ' || c == '\\' || c == 0x7f
	}) {
		return home
	}
	if target := strings.TrimPrefix(u.Path, s.base); target == "/login" || target == "/logout" {
		return home
	}
	return next
}

// flash leaves a text of the catalogue for the next page to show once.
func (s *Server) flash(w http.ResponseWriter, r *http.Request, key string) {
	s.setCookie(w, r, cookieFlash, strings.TrimPrefix(key, "flash."), flashSeconds)
}

func (s *Server) takeFlash(w http.ResponseWriter, r *http.Request, lang *i18n.Language) string {
	c, err := r.Cookie(cookieFlash)
	if err != nil {
		return ""
	}
	s.setCookie(w, r, cookieFlash, "", -1)
	key := "flash." + c.Value
	if !lang.Has(key) {
		return ""
	}
	text, err := lang.Text(key)
	if err != nil {
		return ""
	}
	return text
}

// parseForm reads a form; one that is broken or too large is the client's error.
func parseForm(r *http.Request) error {
	err := r.ParseForm()
	var big *http.MaxBytesError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &big):
		return err
	default:
		return &httpError{status: http.StatusBadRequest, key: "error.invalid"}
	}
}
