package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"vesti.nixg.ru/ledger"
)

// The window of posts that are looked at again for edits, deletions and
// counts: the newest ones, while they are young.
const (
	windowAge  = 72 * time.Hour
	windowSize = 200
)

// Namespace is the store's namespace that a Kind expects.
const Namespace = "telegram"

// book is what is remembered of channels between runs. Its keys:
//
//	name/<lower-case name>  the id of the channel that the name leads to
//	channel/<id>            how far the channel was read, and its newest posts
//
// Progress is written after the posts are durable, never before: a crash
// between the two reads some messages again, which the ledger knows by their
// keys, and loses none.
type book struct{ store ledger.Store }

// progress is how far a channel was read, by either way.
type progress struct {
	Channel int64     `json:"channel,omitempty"` // 0: the preview has not told the id yet
	Last    int       `json:"last"`              // every message up to it was handed over
	Name    string    `json:"name,omitempty"`    // the channel's username now
	Title   string    `json:"title,omitempty"`
	Recent  []recent  `json:"recent,omitempty"` // ascending
	Deep    time.Time `json:"deep,omitzero"`    // when the whole window was last looked at on preview pages
	Checked time.Time `json:"checked,omitzero"` // when the configured name was last looked up after a rename
}

// recent is a post in the window.
type recent struct {
	ID        int            `json:"id"`
	Members   []int          `json:"members,omitempty"`
	Post      ledger.PostNum `json:"post"`
	Hash      string         `json:"hash"`
	Date      time.Time      `json:"date"`
	Views     *int64         `json:"views,omitempty"`
	Reactions *int64         `json:"reactions,omitempty"`
	Missing   int            `json:"missing,omitempty"` // preview pages in a row without it
}

// ids are all ids that the post takes.
func (r recent) ids() []int {
	if len(r.Members) > 0 {
		return r.Members
	}
	return []int{r.ID}
}

// channelKey names a channel in keys. A channel whose id is not known goes by
// its name until it is.
func channelKey(id int64, name string) string {
	if id == 0 {
		return "@" + strings.ToLower(name)
	}
	return strconv.FormatInt(id, 10)
}

// load returns the progress of the channel that name was bound to, the zero
// progress for a name never read.
func (b book) load(ctx context.Context, name string) (progress, error) {
	var p progress
	err := b.store.View(ctx, func(tx ledger.Tx) error {
		p = progress{}
		id, err := tx.Get(nameKey(name))
		if errors.Is(err, ledger.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		return getJSON(tx, "channel/"+string(id), &p)
	})
	if err != nil {
		return progress{}, fmt.Errorf("read progress of channel %s: %w", name, err)
	}
	return p, nil
}

// loadID returns the progress of a channel by its id.
func (b book) loadID(ctx context.Context, id int64) (progress, error) {
	var p progress
	err := b.store.View(ctx, func(tx ledger.Tx) error {
		p = progress{}
		return getJSON(tx, "channel/"+channelKey(id, ""), &p)
	})
	if err != nil {
		return progress{}, fmt.Errorf("read progress of channel %d: %w", id, err)
	}
	return p, nil
}

// save stores the progress and binds name to its channel, as one.
func (b book) save(ctx context.Context, name string, p progress) error {
	raw, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode progress of channel %s: %w", name, err)
	}
	key := channelKey(p.Channel, name)
	err = b.store.Update(ctx, func(tx ledger.Tx) error {
		if err := tx.Set(nameKey(name), []byte(key)); err != nil {
			return err
		}
		return tx.Set([]byte("channel/"+key), raw)
	})
	if err != nil {
		return fmt.Errorf("store progress of channel %s: %w", name, err)
	}
	return nil
}

// forget removes what name is bound to, and reports whether it was bound.
func (b book) forget(ctx context.Context, name string) (bool, error) {
	var was bool
	err := b.store.Update(ctx, func(tx ledger.Tx) error {
		_, err := tx.Get(nameKey(name))
		if was = err == nil; !was {
			if errors.Is(err, ledger.ErrNotFound) {
				return nil
			}
			return err
		}
		return tx.Delete(nameKey(name))
	})
	if err != nil {
		return false, fmt.Errorf("forget channel %s: %w", name, err)
	}
	return was, nil
}

func nameKey(name string) []byte { return []byte("name/" + strings.ToLower(name)) }

func getJSON(tx ledger.Tx, key string, v any) error {
	raw, err := tx.Get([]byte(key))
	if errors.Is(err, ledger.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// remember puts a post into the window.
func (p *progress) remember(r recent) {
	i, found := slices.BinarySearchFunc(p.Recent, r.ID, func(a recent, id int) int { return a.ID - id })
	if found {
		p.Recent[i] = r
		return
	}
	p.Recent = slices.Insert(p.Recent, i, r)
}

// trim lets go of posts that are too old, or too many, to be looked at again.
func (p *progress) trim(now time.Time) {
	p.Recent = slices.DeleteFunc(p.Recent, func(r recent) bool { return now.Sub(r.Date) > windowAge })
	if extra := len(p.Recent) - windowSize; extra > 0 {
		p.Recent = slices.Delete(p.Recent, 0, extra)
	}
}

// find returns the window's post that has message id, an album's member
// included; nil for none.
func (p *progress) find(id int) *recent {
	for i := range p.Recent {
		if r := &p.Recent[i]; r.ID == id || slices.Contains(r.Members, id) {
			return r
		}
	}
	return nil
}

// drop removes a post from the window.
func (p *progress) drop(id int) {
	p.Recent = slices.DeleteFunc(p.Recent, func(r recent) bool { return r.ID == id })
}

// cursor is the progress as the ledger shows it: "channel id/message id".
func (p *progress) cursor(name string) string {
	return channelKey(p.Channel, name) + "/" + strconv.Itoa(p.Last)
}
