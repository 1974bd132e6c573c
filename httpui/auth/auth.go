// Package auth keeps what lets a person or a program in: the editor's
// password, the sessions of browsers and the tokens of programs.
//
// There is one account. Secrets are stored hashed: the password by argon2id,
// sessions and tokens, being random, by SHA-256. All of it lives in a
// ledger.Store, so that backup and restore carry it along.
package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"vesti.nixg.ru/ledger"
)

// The errors that callers tell apart.
var (
	// ErrWrongPassword: the password is not the editor's.
	ErrWrongPassword = errors.New("wrong password")
	// ErrWeakPassword: a new password that is too short or too long.
	ErrWeakPassword = errors.New("password too weak")
	// ErrNoSession: no session or token of that secret, or it has ended.
	ErrNoSession = errors.New("no session")
)

// ThrottledError says that there were too many attempts. Nothing was checked;
// After is how long it takes until the next one is.
type ThrottledError struct{ After time.Duration }

// Error says how long to wait.
func (e *ThrottledError) Error() string {
	return fmt.Sprintf("too many attempts, next one in %s", e.After.Round(time.Second))
}

// Accounts is the account, its sessions and its tokens. It is safe for
// concurrent use.
type Accounts struct {
	store    ledger.Store
	now      func() time.Time
	throttle *throttle
	cost     Cost
	hashing  chan struct{} // bounds the memory that argon2id takes at once
}

// New returns the accounts kept in store, a namespace of their own. cost is
// that of passwords to come; those that are stored keep theirs.
func New(store ledger.Store, now func() time.Time, cost Cost) *Accounts {
	return &Accounts{store: store, now: now, throttle: newThrottle(), cost: cost, hashing: make(chan struct{}, maxHashing)}
}

// EnsurePassword sets a random password where there is none and returns it, to
// be shown once. It returns "" where there is a password already.
func (a *Accounts) EnsurePassword(ctx context.Context) (string, error) {
	var found bool
	err := a.store.View(ctx, func(tx ledger.Tx) error {
		_, err := tx.Get([]byte(keyPassword))
		if errors.Is(err, ledger.ErrNotFound) {
			return nil
		}
		found = err == nil
		return err
	})
	if err != nil {
		return "", fmt.Errorf("look for the password: %w", err)
	}
	if found {
		return "", nil
	}
	return a.ResetPassword(ctx)
}

// ResetPassword sets a random password, ends every session and returns the
// password, to be shown once. Tokens stay.
func (a *Accounts) ResetPassword(ctx context.Context) (string, error) {
	password := randomPassword()
	if err := a.setPassword(ctx, password, ""); err != nil {
		return "", err
	}
	return password, nil
}

// ChangePassword replaces old by next and ends every session but the one of
// keep, a session's secret. address is the client's, for throttling.
func (a *Accounts) ChangePassword(ctx context.Context, address, old, next, keep string) error {
	if err := checkStrength(next); err != nil {
		return err
	}
	if err := a.verify(ctx, address, old); err != nil {
		return err
	}
	return a.setPassword(ctx, next, keep)
}

func (a *Accounts) setPassword(ctx context.Context, password, keep string) error {
	hash, err := a.hash(ctx, password)
	if err != nil {
		return err
	}
	stored, err := json.Marshal(storedPassword{Hash: hash, Changed: a.now().UTC()})
	if err != nil {
		return fmt.Errorf("encode the password: %w", err)
	}
	err = a.store.Update(ctx, func(tx ledger.Tx) error {
		if err := tx.Set([]byte(keyPassword), stored); err != nil {
			return err
		}
		return deleteSessions(tx, keep)
	})
	if err != nil {
		return fmt.Errorf("store the password: %w", err)
	}
	return nil
}

// verify checks the password under the throttle.
func (a *Accounts) verify(ctx context.Context, address, password string) error {
	if after := a.throttle.take(address, a.now()); after > 0 {
		return &ThrottledError{After: after}
	}
	var stored storedPassword
	err := a.store.View(ctx, func(tx ledger.Tx) error { return getJSON(tx, keyPassword, &stored) })
	if err != nil {
		return fmt.Errorf("read the password: %w", err)
	}
	if err := a.compare(ctx, stored.Hash, password); err != nil {
		return err
	}
	a.throttle.forgive(address)
	return nil
}

// The keys of the store. Secrets are in them by their hash.
const (
	keyPassword   = "password"
	prefixSession = "session/"
	prefixToken   = "token/"
)

type storedPassword struct {
	Hash    string    `json:"hash"` // in the PHC form
	Changed time.Time `json:"changed"`
}

// newSecret returns a random secret of 256 bits and the hash it is stored by.
func newSecret() (secret, hash string) {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	secret = hex.EncodeToString(b[:])
	return secret, hashSecret(secret)
}

func hashSecret(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// randomPassword returns 100 random bits in four groups that can be typed.
func randomPassword() string {
	s := strings.ToLower(rand.Text())
	return strings.Join([]string{s[0:5], s[5:10], s[10:15], s[15:20]}, "-")
}

func getJSON(tx ledger.Tx, key string, v any) error {
	b, err := tx.Get([]byte(key))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("decode %q: %w", key, err)
	}
	return nil
}

func setJSON(tx ledger.Tx, key string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %q: %w", key, err)
	}
	return tx.Set([]byte(key), b)
}
