package badgerlog

import (
	"fmt"

	badger "github.com/dgraph-io/badger/v4"

	"vesti.nixg.ru/ledger"
)

// errValue: a value's entry in its file is damaged. Only values of
// valueThreshold and more stand there: texts, and the longest of events.
var errValue = fmt.Errorf("value %w: its file is damaged, a backup may have it", ledger.ErrUnreadable)

// readValue calls f with an item's value. Badger gives an empty one, and no
// error, where it could not read it.
func readValue(item *badger.Item, f func(value []byte) error) error {
	return item.Value(func(v []byte) error { //nolint:wrapcheck // f's own error
		if len(v) == 0 && item.ValueSize() > 0 {
			return errValue
		}
		return f(v)
	})
}

// copyValue returns a copy of an item's value, which is not nil.
func copyValue(item *badger.Item) ([]byte, error) {
	var value []byte
	err := readValue(item, func(v []byte) error {
		value = append(make([]byte, 0, len(v)), v...)
		return nil
	})
	return value, err
}
