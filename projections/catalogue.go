package projections

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"vesti.nixg.ru/ledger"
)

// record is what is stored of a projection: which generation serves and which
// is being built.
type record struct {
	Serving  generation `json:"serving"`
	Building generation `json:"building"`
	Last     uint64     `json:"last"` // the newest number given
}

// generation names one build of a projection. The zero generation is none.
type generation struct {
	Number  uint64 `json:"number"`
	Version int    `json:"version"`
}

// catalogue keeps the records of all projections.
type catalogue struct{ store ledger.Store }

func (c catalogue) load(ctx context.Context, name string) (record, error) {
	var r record
	err := c.store.View(ctx, func(tx ledger.Tx) error {
		v, err := tx.Get([]byte(name))
		if errors.Is(err, ledger.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		return json.Unmarshal(v, &r)
	})
	if err != nil {
		return record{}, fmt.Errorf("load the generations: %w", err)
	}
	return r, nil
}

func (c catalogue) save(ctx context.Context, name string, r record) error {
	v, err := json.Marshal(r)
	if err != nil {
		return err
	}
	err = c.store.Update(ctx, func(tx ledger.Tx) error { return tx.Set([]byte(name), v) })
	if err != nil {
		return fmt.Errorf("save the generations: %w", err)
	}
	return nil
}
