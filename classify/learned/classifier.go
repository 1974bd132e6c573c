package learned

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"vesti.nixg.ru/ledger"
)

// Namespace is the ledger's store that models are kept in.
const Namespace = "learned"

// chunk is the size of the pieces that a model is stored in, in bytes: engines
// bound what one value may hold.
const chunk = 64 << 10

// Classifier holds the model in force, if there is one. It is safe for
// concurrent use; its zero value has none.
type Classifier struct{ model atomic.Pointer[Model] }

// Model returns the model in force; nil for none.
func (c *Classifier) Model() *Model { return c.model.Load() }

// Use puts a model in force; nil takes it out.
func (c *Classifier) Use(m *Model) { c.model.Store(m) }

// Load puts the stored model in force. Without one it leaves none in force and
// returns nil; one that cannot be read is an error matching ledger.ErrInvalid.
func (c *Classifier) Load(ctx context.Context, store ledger.Store) error {
	var packed []byte
	err := store.View(ctx, func(tx ledger.Tx) error {
		packed = nil
		return tx.Scan([]byte("model/"), nil, func(_, value []byte) (bool, error) {
			packed = append(packed, value...)
			return true, nil
		})
	})
	if err != nil {
		return fmt.Errorf("load the learned model: %w", err)
	}
	if len(packed) == 0 {
		return nil
	}
	m := new(Model)
	if err := m.UnmarshalBinary(packed); err != nil {
		return fmt.Errorf("load the learned model: %w", err)
	}
	c.Use(m)
	return nil
}

// Save stores a model in the place of the one before.
func Save(ctx context.Context, store ledger.Store, m *Model) error {
	packed, err := m.MarshalBinary()
	if err != nil {
		return err
	}
	err = store.Update(ctx, func(tx ledger.Tx) error {
		for i := uint32(0); ; i++ {
			begin := int(i) * chunk
			if begin < len(packed) {
				if err := tx.Set(key(i), packed[begin:min(begin+chunk, len(packed))]); err != nil {
					return err
				}
				continue
			}
			switch _, err := tx.Get(key(i)); {
			case errors.Is(err, ledger.ErrNotFound):
				return nil
			case err != nil:
				return err
			}
			if err := tx.Delete(key(i)); err != nil {
				return err
			}
		}
	})
	if err != nil {
		return fmt.Errorf("store the learned model: %w", err)
	}
	return nil
}

func key(i uint32) []byte { return binary.BigEndian.AppendUint32([]byte("model/"), i) }
