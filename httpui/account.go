package httpui

import (
	"errors"
	"net/http"
	"strings"

	"vesti.nixg.ru/httpui/auth"
	"vesti.nixg.ru/ledger"
)

type loginPage struct {
	Next  string
	Error string // key of the catalogue
	Wait  int    // seconds until the next attempt, for error.throttled
}

func (s *Server) loginForm(w http.ResponseWriter, r *http.Request) error {
	next := r.URL.Query().Get("next")
	if _, err := s.session(r); err == nil {
		s.redirect(w, r, next)
		return nil
	}
	return s.render(w, r, http.StatusOK, "login.html", "title.login", loginPage{Next: s.safeNext(next)})
}

func (s *Server) login(w http.ResponseWriter, r *http.Request) error {
	if err := parseForm(r); err != nil {
		return err
	}
	address := s.clientAddress(r)
	secret, err := s.accounts.Login(r.Context(), address, r.UserAgent(), r.PostForm.Get("password"))
	if err == nil {
		s.startSession(w, r, secret)
		s.redirectBack(w, r)
		return nil
	}
	page := loginPage{Next: s.safeNext(r.PostForm.Get("next"))}
	status, key, wait := passwordError(w, err)
	if key == "" {
		return err
	}
	page.Error, page.Wait = key, wait
	s.Logger.WarnContext(r.Context(), "login refused", "address", address, "reason", err)
	return s.render(w, r, status, "login.html", "title.login", page)
}

// passwordError sorts out the errors that a form shows; key is "" for others. One
// that the client is to wait after is told in the header too.
func passwordError(w http.ResponseWriter, err error) (status int, key string, wait int) {
	var throttled *auth.ThrottledError
	switch {
	case errors.Is(err, auth.ErrWrongPassword):
		return http.StatusForbidden, "login.wrong", 0
	case errors.Is(err, auth.ErrWeakPassword):
		return http.StatusBadRequest, "account.weak", 0
	case errors.As(err, &throttled):
		return http.StatusTooManyRequests, "login.throttled", retryAfter(w, throttled.After)
	default:
		return 0, "", 0
	}
}

func (s *Server) logout(w http.ResponseWriter, r *http.Request) error {
	if c, err := r.Cookie(cookieSession); err == nil {
		if err := s.accounts.Logout(r.Context(), c.Value); err != nil {
			return err
		}
	}
	s.endSession(w, r)
	http.Redirect(w, r, s.base+"/login", http.StatusSeeOther)
	return nil
}

func (s *Server) logoutAll(w http.ResponseWriter, r *http.Request) error {
	if err := s.accounts.LogoutAll(r.Context()); err != nil {
		return err
	}
	s.endSession(w, r)
	http.Redirect(w, r, s.base+"/login", http.StatusSeeOther)
	return nil
}

type accountPage struct {
	Sessions []auth.Session
	Current  string // ID of the session that asks
	Tokens   []auth.Token
	NewToken string // shown once
	Error    string
	Wait     int
	Minimum  int
}

func (s *Server) account(w http.ResponseWriter, r *http.Request) error {
	return s.showAccount(w, r, http.StatusOK, accountPage{})
}

func (s *Server) showAccount(w http.ResponseWriter, r *http.Request, status int, page accountPage) error {
	var err error
	if page.Sessions, err = s.accounts.Sessions(r.Context()); err != nil {
		return err
	}
	if page.Tokens, err = s.accounts.Tokens(r.Context()); err != nil {
		return err
	}
	page.Current, page.Minimum = currentSession(r).ID, auth.MinPassword
	return s.render(w, r, status, "account.html", "title.account", page)
}

func (s *Server) changePassword(w http.ResponseWriter, r *http.Request) error {
	if err := parseForm(r); err != nil {
		return err
	}
	next := r.PostForm.Get("new")
	if next != r.PostForm.Get("again") {
		return s.showAccount(w, r, http.StatusBadRequest, accountPage{Error: "account.differ"})
	}
	c, err := r.Cookie(cookieSession)
	if err != nil {
		return auth.ErrNoSession
	}
	err = s.accounts.ChangePassword(r.Context(), s.clientAddress(r), r.PostForm.Get("old"), next, c.Value)
	if err != nil {
		status, key, wait := passwordError(w, err)
		if key == "" {
			return err
		}
		return s.showAccount(w, r, status, accountPage{Error: key, Wait: wait})
	}
	s.flash(w, r, "flash.password")
	http.Redirect(w, r, s.base+"/account", http.StatusSeeOther)
	return nil
}

const maxTokenName = 4 * 60 // bytes of the 60 letters that the form takes

func (s *Server) createToken(w http.ResponseWriter, r *http.Request) error {
	if err := parseForm(r); err != nil {
		return err
	}
	name := ledger.CutText(strings.TrimSpace(r.PostForm.Get("name")), maxTokenName)
	if name == "" {
		return s.showAccount(w, r, http.StatusBadRequest, accountPage{Error: "account.token_name"})
	}
	secret, err := s.accounts.CreateToken(r.Context(), name)
	if err != nil {
		return err
	}
	return s.showAccount(w, r, http.StatusOK, accountPage{NewToken: secret})
}

func (s *Server) revokeToken(w http.ResponseWriter, r *http.Request) error {
	if err := parseForm(r); err != nil {
		return err
	}
	if err := s.accounts.RevokeToken(r.Context(), r.PostForm.Get("id")); err != nil {
		return err
	}
	s.flash(w, r, "flash.token_revoked")
	http.Redirect(w, r, s.base+"/account", http.StatusSeeOther)
	return nil
}

func (s *Server) help(w http.ResponseWriter, r *http.Request) error {
	return s.render(w, r, http.StatusOK, "help.html", "title.help", nil)
}
