//go:build !notelegram

package mtproto

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gotd/td/session"

	"vesti.nixg.ru/ledger"
)

// vault keeps what must survive a restart, in the ledger's store: each change
// is one transaction, all or nothing. Its keys:
//
//	session/current             the session in use, as gotd writes it
//	session/previous            the one before it
//	session/self                whose it is
//	session/refused             when and why Telegram refused it
//	pause/<account>/<method>    until when a method is left alone
//	peer/<account>/<name>       the channel that a name leads to
//	peer/<account>/<id>         the same by its id
//
// Access hashes are an account's own, so another login begins with none.
type vault struct{ store ledger.Store }

const (
	keyCurrent  = "session/current"
	keyPrevious = "session/previous"
	keySelf     = "session/self"
	keyRefused  = "session/refused"
)

// refusal is that Telegram does not take the session any more.
type refusal struct {
	At     time.Time `json:"at"`
	Reason string    `json:"reason"` // for a person
}

// peer is a channel as one account can ask for it.
type peer struct {
	ID    int64  `json:"id"`
	Hash  int64  `json:"hash"`
	Asked string `json:"asked"` // the name that was looked up
	Name  string `json:"name"`
	Title string `json:"title"`
}

// state is what the vault says of the session.
type state struct {
	raw     []byte // nil for none
	data    session.Data
	broken  error // the session cannot be read
	self    Identity
	refused *refusal
}

func (v vault) load(ctx context.Context) (state, error) {
	var s state
	err := v.store.View(ctx, func(tx ledger.Tx) error {
		s = state{}
		raw, err := tx.Get([]byte(keyCurrent))
		if errors.Is(err, ledger.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		s.raw = raw
		s.data, s.broken = decodeSession(raw)
		if err := get(tx, keySelf, &s.self); err != nil {
			return err
		}
		var r refusal
		if err := get(tx, keyRefused, &r); err != nil {
			return err
		}
		if !r.At.IsZero() {
			s.refused = &r
		}
		return nil
	})
	if err != nil {
		return state{}, fmt.Errorf("read the Telegram session: %w", err)
	}
	return s, nil
}

// replace puts a session that is authorised in place of the current one, of
// which a copy is kept.
func (v vault) replace(ctx context.Context, raw []byte, self Identity) error {
	who, err := json.Marshal(self)
	if err != nil {
		return fmt.Errorf("encode the Telegram account: %w", err)
	}
	err = v.store.Update(ctx, func(tx ledger.Tx) error {
		old, err := tx.Get([]byte(keyCurrent))
		if err == nil {
			err = tx.Set([]byte(keyPrevious), old)
		}
		if err != nil && !errors.Is(err, ledger.ErrNotFound) {
			return err
		}
		if err := tx.Delete([]byte(keyRefused)); err != nil {
			return err
		}
		if err := tx.Set([]byte(keySelf), who); err != nil {
			return err
		}
		return tx.Set([]byte(keyCurrent), raw)
	})
	if err != nil {
		return fmt.Errorf("store the Telegram session: %w", err)
	}
	return nil
}

// renew stores the current session's new salt and addresses.
func (v vault) renew(ctx context.Context, raw []byte) error {
	return v.store.Update(ctx, func(tx ledger.Tx) error { return tx.Set([]byte(keyCurrent), raw) })
}

func (v vault) refuse(ctx context.Context, r refusal) error {
	return v.put(ctx, keyRefused, r)
}

func (v vault) forgive(ctx context.Context) error {
	return v.store.Update(ctx, func(tx ledger.Tx) error { return tx.Delete([]byte(keyRefused)) })
}

// clear removes the session and its copy.
func (v vault) clear(ctx context.Context) error {
	err := v.store.Update(ctx, func(tx ledger.Tx) error {
		for _, key := range []string{keyCurrent, keyPrevious, keySelf, keyRefused} {
			if err := tx.Delete([]byte(key)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("remove the Telegram session: %w", err)
	}
	return nil
}

func (v vault) pause(ctx context.Context, account int64, method string, until time.Time) error {
	return v.put(ctx, pauseKey(account, method), until)
}

// pauses are the account's, those that are over left out.
func (v vault) pauses(ctx context.Context, account int64, now time.Time) ([]Pause, error) {
	var out []Pause
	prefix := []byte(pauseKey(account, ""))
	err := v.store.View(ctx, func(tx ledger.Tx) error {
		out = nil
		return tx.Scan(prefix, nil, func(key, value []byte) (bool, error) {
			var until time.Time
			if err := json.Unmarshal(value, &until); err != nil {
				return false, fmt.Errorf("%s: %w", key, err)
			}
			if until.After(now) {
				out = append(out, Pause{Method: string(bytes.TrimPrefix(key, prefix)), Until: until})
			}
			return true, nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read pauses of the Telegram account: %w", err)
	}
	return out, nil
}

func (v vault) pausedUntil(ctx context.Context, account int64, method string) (time.Time, error) {
	var until time.Time
	err := v.view(ctx, pauseKey(account, method), &until)
	return until, err
}

func (v vault) peerByName(ctx context.Context, account int64, name string) (peer, error) {
	var p peer
	err := v.view(ctx, peerKey(account, strings.ToLower(name)), &p)
	return p, err
}

func (v vault) peerByID(ctx context.Context, account, id int64) (peer, error) {
	var p peer
	err := v.view(ctx, peerKey(account, strconv.FormatInt(id, 10)), &p)
	return p, err
}

func (v vault) setPeer(ctx context.Context, account int64, p peer) error {
	raw, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode channel %s: %w", p.Asked, err)
	}
	err = v.store.Update(ctx, func(tx ledger.Tx) error {
		if err := tx.Set([]byte(peerKey(account, strconv.FormatInt(p.ID, 10))), raw); err != nil {
			return err
		}
		return tx.Set([]byte(peerKey(account, strings.ToLower(p.Asked))), raw)
	})
	if err != nil {
		return fmt.Errorf("store channel %s: %w", p.Asked, err)
	}
	return nil
}

func (v vault) view(ctx context.Context, key string, out any) error {
	if err := v.store.View(ctx, func(tx ledger.Tx) error { return get(tx, key, out) }); err != nil {
		return fmt.Errorf("read Telegram's %s: %w", key, err)
	}
	return nil
}

func (v vault) put(ctx context.Context, key string, value any) error {
	raw, err := json.Marshal(value)
	if err == nil {
		err = v.store.Update(ctx, func(tx ledger.Tx) error { return tx.Set([]byte(key), raw) })
	}
	if err != nil {
		return fmt.Errorf("store Telegram's %s: %w", key, err)
	}
	return nil
}

func pauseKey(account int64, method string) string {
	return "pause/" + strconv.FormatInt(account, 10) + "/" + method
}

func peerKey(account int64, of string) string {
	return "peer/" + strconv.FormatInt(account, 10) + "/" + of
}

// get reads key into out and leaves out alone where there is no such key.
func get(tx ledger.Tx, key string, out any) error {
	raw, err := tx.Get([]byte(key))
	if errors.Is(err, ledger.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// decodeSession reads what gotd wrote. gotd takes an empty one for a fresh
// start; here it is a damaged one.
func decodeSession(raw []byte) (session.Data, error) {
	mem := &session.StorageMemory{}
	if err := mem.StoreSession(context.Background(), raw); err != nil {
		return session.Data{}, err
	}
	data, err := (&session.Loader{Storage: mem}).Load(context.Background())
	if err != nil {
		return session.Data{}, err
	}
	if len(data.AuthKey) == 0 || len(data.AuthKeyID) == 0 {
		return session.Data{}, errors.New("it has no key")
	}
	return *data, nil
}

// guarded is the session.Storage of a connection that reads channels. When a
// server has forgotten the session's key, gotd makes a new one, which nobody
// has logged in with, and stores it: that one stays in memory, and the stored
// session is kept.
type guarded struct {
	vault vault
	keyID []byte

	mu       sync.Mutex
	raw      []byte
	replaced bool
}

// LoadSession implements session.Storage.
func (g *guarded) LoadSession(context.Context) ([]byte, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.raw), nil
}

// StoreSession implements session.Storage.
func (g *guarded) StoreSession(ctx context.Context, raw []byte) error {
	data, err := decodeSession(raw)
	if err != nil {
		return fmt.Errorf("session to store: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	same, changed := bytes.Equal(data.AuthKeyID, g.keyID), !bytes.Equal(raw, g.raw)
	g.raw, g.replaced = slices.Clone(raw), !same
	if !same || !changed {
		return nil
	}
	return g.vault.renew(ctx, raw)
}

// lost reports whether the server made the connection take a new key.
func (g *guarded) lost() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.replaced
}
