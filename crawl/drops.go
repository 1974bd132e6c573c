package crawl

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"vesti.nixg.ru/ledger"
)

// mostDrops is how many dropped entries are kept per source, the newest.
const mostDrops = 1000

// Drops keeps what the rules of sources left out, so that it can be looked up.
// It is safe for concurrent use.
type Drops struct {
	store ledger.Store
	now   func() time.Time
}

// NewDrops returns Drops that live in store, a namespace of their own. A nil
// now is time.Now.
func NewDrops(store ledger.Store, now func() time.Time) *Drops {
	if now == nil {
		now = time.Now
	}
	return &Drops{store: store, now: now}
}

// dropPrefix is what the keys of a source's drops begin with: no slug has the
// separator in it. A key goes on with the hash of the item's key.
func dropPrefix(slug ledger.Slug) []byte { return append([]byte(slug), 0) }

func dropKey(d Dropped) []byte {
	h := sha256.Sum256([]byte(d.Key))
	return append(dropPrefix(d.Source), h[:16]...)
}

// Keep stores entries and returns how many of them were not there.
func (d *Drops) Keep(ctx context.Context, entries []Dropped) (int, error) {
	fresh := 0
	err := d.store.Update(ctx, func(tx ledger.Tx) error {
		fresh = 0
		for _, e := range entries {
			key := dropKey(e)
			_, err := tx.Get(key)
			if err == nil {
				continue
			}
			if !errors.Is(err, ledger.ErrNotFound) {
				return fmt.Errorf("look dropped entry up: %w", err)
			}
			if e.At.IsZero() {
				e.At = d.now().UTC()
			}
			value, err := json.Marshal(e)
			if err != nil {
				return fmt.Errorf("encode dropped entry: %w", err)
			}
			if err := tx.Set(key, value); err != nil {
				return fmt.Errorf("keep dropped entry: %w", err)
			}
			fresh++
		}
		if fresh == 0 {
			return nil
		}
		return prune(tx, entries[0].Source)
	})
	if err != nil {
		return 0, fmt.Errorf("keep dropped entries: %w", err)
	}
	return fresh, nil
}

// prune removes the source's oldest drops over the limit.
func prune(tx ledger.Tx, slug ledger.Slug) error {
	all, err := scanDrops(tx, slug)
	if err != nil {
		return err
	}
	for len(all) > mostDrops {
		if err := tx.Delete(dropKey(all[0])); err != nil {
			return fmt.Errorf("remove dropped entry: %w", err)
		}
		all = all[1:]
	}
	return nil
}

// scanDrops returns the source's drops, the oldest first.
func scanDrops(tx ledger.Tx, slug ledger.Slug) ([]Dropped, error) {
	var all []Dropped
	err := tx.Scan(dropPrefix(slug), nil, func(_, value []byte) (bool, error) {
		var e Dropped
		if err := json.Unmarshal(value, &e); err != nil {
			return false, fmt.Errorf("decode dropped entry: %w", err)
		}
		all = append(all, e)
		return true, nil
	})
	slices.SortStableFunc(all, func(a, b Dropped) int { return cmp.Compare(a.At.UnixNano(), b.At.UnixNano()) })
	return all, err
}

// List returns up to limit entries of the source that were dropped, all for 0,
// the newest first.
func (d *Drops) List(ctx context.Context, slug ledger.Slug, limit int) ([]Dropped, error) {
	var all []Dropped
	err := d.store.View(ctx, func(tx ledger.Tx) error {
		var err error
		all, err = scanDrops(tx, slug)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list dropped entries: %w", err)
	}
	slices.Reverse(all)
	if limit > 0 {
		all = all[:min(limit, len(all))]
	}
	return all, nil
}
