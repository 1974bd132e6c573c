package auth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"vesti.nixg.ru/ledger"
)

// How long a session lasts: IdleTime after its last use, LifeTime at most.
const (
	IdleTime = 14 * 24 * time.Hour
	LifeTime = 90 * 24 * time.Hour

	touchEvery = 10 * time.Minute // how stale LastSeen may get, to save writes
)

// Session is one browser's login.
type Session struct {
	ID       string    `json:"-"` // its hash: names it, opens nothing
	Created  time.Time `json:"created"`
	LastSeen time.Time `json:"last_seen"`
	Address  string    `json:"address"` // of the login
	Agent    string    `json:"agent"`   // the browser, as it called itself
}

// ended reports whether the session is over at now.
func (s Session) ended(now time.Time) bool {
	return now.Sub(s.LastSeen) > IdleTime || now.Sub(s.Created) > LifeTime
}

const maxAgent = 200 // bytes of a browser's name that are kept

// Login checks the password and returns the secret of a new session. It
// returns ErrWrongPassword, or a *ThrottledError when address, or everybody
// together, has tried too often.
func (a *Accounts) Login(ctx context.Context, address, agent, password string) (string, error) {
	if err := a.verify(ctx, address, password); err != nil {
		return "", err
	}
	now := a.now().UTC()
	secret, hash := newSecret()
	session := Session{Created: now, LastSeen: now, Address: address, Agent: ledger.CutText(agent, maxAgent)}
	err := a.store.Update(ctx, func(tx ledger.Tx) error {
		if err := deleteEnded(tx, now); err != nil {
			return err
		}
		return setJSON(tx, prefixSession+hash, session)
	})
	if err != nil {
		return "", fmt.Errorf("store the session: %w", err)
	}
	return secret, nil
}

// Session returns the session of a secret, and ErrNoSession where there is
// none or it has ended. It notes the use.
func (a *Accounts) Session(ctx context.Context, secret string) (Session, error) {
	key := prefixSession + hashSecret(secret)
	var s Session
	err := a.store.View(ctx, func(tx ledger.Tx) error { return getJSON(tx, key, &s) })
	if errors.Is(err, ledger.ErrNotFound) {
		return Session{}, ErrNoSession
	}
	if err != nil {
		return Session{}, fmt.Errorf("read the session: %w", err)
	}
	now := a.now().UTC()
	if s.ended(now) {
		return Session{}, ErrNoSession
	}
	s.ID = strings.TrimPrefix(key, prefixSession)
	if now.Sub(s.LastSeen) < touchEvery {
		return s, nil
	}
	err = a.store.Update(ctx, func(tx ledger.Tx) error {
		// A logout between the two transactions must stay one.
		if err := getJSON(tx, key, &s); err != nil {
			return err
		}
		s.LastSeen = now
		return setJSON(tx, key, s)
	})
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return Session{}, ErrNoSession
	case err != nil:
		return Session{}, fmt.Errorf("note the session's use: %w", err)
	}
	return s, nil
}

// Sessions lists the sessions that have not ended, the last used first.
func (a *Accounts) Sessions(ctx context.Context) ([]Session, error) {
	now := a.now()
	list, err := scan[Session](ctx, a.store, prefixSession, func(s *Session, id string) bool {
		s.ID = id
		return !s.ended(now)
	})
	slices.SortFunc(list, func(x, y Session) int { return y.LastSeen.Compare(x.LastSeen) })
	return list, err
}

// Logout ends the session of a secret. A session that is none is no error.
func (a *Accounts) Logout(ctx context.Context, secret string) error {
	err := a.store.Update(ctx, func(tx ledger.Tx) error { return tx.Delete([]byte(prefixSession + hashSecret(secret))) })
	if err != nil {
		return fmt.Errorf("end the session: %w", err)
	}
	return nil
}

// LogoutAll ends every session.
func (a *Accounts) LogoutAll(ctx context.Context) error {
	err := a.store.Update(ctx, func(tx ledger.Tx) error { return deleteSessions(tx, "") })
	if err != nil {
		return fmt.Errorf("end all sessions: %w", err)
	}
	return nil
}

// Token is a program's key to the JSON API and to /metrics.
type Token struct {
	ID      string    `json:"-"` // its hash: names it, opens nothing
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
}

// CreateToken makes a token and returns its secret, to be shown once.
func (a *Accounts) CreateToken(ctx context.Context, name string) (string, error) {
	secret, hash := newSecret()
	token := Token{Name: name, Created: a.now().UTC()}
	err := a.store.Update(ctx, func(tx ledger.Tx) error { return setJSON(tx, prefixToken+hash, token) })
	if err != nil {
		return "", fmt.Errorf("store the token: %w", err)
	}
	return secret, nil
}

// Tokens lists the tokens by name.
func (a *Accounts) Tokens(ctx context.Context) ([]Token, error) {
	list, err := scan[Token](ctx, a.store, prefixToken, func(t *Token, id string) bool {
		t.ID = id
		return true
	})
	slices.SortFunc(list, func(x, y Token) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name), x.Created.Compare(y.Created))
	})
	return list, err
}

// CheckToken returns the token of a secret, or ErrNoSession.
func (a *Accounts) CheckToken(ctx context.Context, secret string) (Token, error) {
	var t Token
	hash := hashSecret(secret)
	err := a.store.View(ctx, func(tx ledger.Tx) error { return getJSON(tx, prefixToken+hash, &t) })
	if errors.Is(err, ledger.ErrNotFound) {
		return Token{}, ErrNoSession
	}
	if err != nil {
		return Token{}, fmt.Errorf("read the token: %w", err)
	}
	t.ID = hash
	return t, nil
}

// RevokeToken removes the token with an ID. One that is none is no error.
func (a *Accounts) RevokeToken(ctx context.Context, id string) error {
	err := a.store.Update(ctx, func(tx ledger.Tx) error { return tx.Delete([]byte(prefixToken + id)) })
	if err != nil {
		return fmt.Errorf("revoke the token: %w", err)
	}
	return nil
}

// deleteSessions removes every session but the one of keep, a secret or "".
func deleteSessions(tx ledger.Tx, keep string) error {
	spared := prefixSession + hashSecret(keep)
	return deleteWhere(tx, func(key string, _ []byte) bool { return key != spared })
}

func deleteEnded(tx ledger.Tx, now time.Time) error {
	return deleteWhere(tx, func(_ string, value []byte) bool {
		var s Session
		return json.Unmarshal(value, &s) != nil || s.ended(now)
	})
}

func deleteWhere(tx ledger.Tx, gone func(key string, value []byte) bool) error {
	var keys []string
	err := tx.Scan([]byte(prefixSession), nil, func(key, value []byte) (bool, error) {
		if k := string(key); gone(k, value) {
			keys = append(keys, k)
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	for _, k := range keys {
		if err := tx.Delete([]byte(k)); err != nil {
			return err
		}
	}
	return nil
}

// scan decodes every value below prefix and returns those that keep wants.
func scan[T any](ctx context.Context, store ledger.Store, prefix string, keep func(v *T, id string) bool) ([]T, error) {
	var list []T
	err := store.View(ctx, func(tx ledger.Tx) error {
		list = nil
		return tx.Scan([]byte(prefix), nil, func(key, value []byte) (bool, error) {
			var v T
			if err := json.Unmarshal(value, &v); err != nil {
				return false, fmt.Errorf("decode %q: %w", key, err)
			}
			if keep(&v, strings.TrimPrefix(string(key), prefix)) {
				list = append(list, v)
			}
			return true, nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", strings.TrimSuffix(prefix, "/"), err)
	}
	return list, nil
}
