package badgerlog

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/dgraph-io/ristretto/v2/z"
)

// errLost: what was acknowledged is gone from Badger's log.
var errLost = errors.New("changes that were acknowledged are lost: restore a backup, or go on without them by \"vesti verify --repair\"")

// versions are those of the transactions in a log, zero for none.
type versions struct{ oldest, newest uint64 }

func (v *versions) add(version uint64) {
	if v.oldest == 0 || version < v.oldest {
		v.oldest = version
	}
	v.newest = max(v.newest, version)
}

// checkLogs checks Badger's logs (.mem), which have what is not in tables yet,
// and returns what is in them. Badger takes a log for one that ends
// at the first damage. A power cut can leave that in the last transaction; where
// two have their ends behind it, the first was synced before the second was
// written, and what is damaged before that.
func checkLogs(o Options) (versions, error) {
	var v versions
	logs, err := filepath.Glob(filepath.Join(o.Dir, "*.mem"))
	if err != nil {
		return v, fmt.Errorf("list logs: %w", err)
	}
	for _, path := range logs {
		err := mapped(path, func(m *z.MmapFile) error {
			cut, err := scanLog(m.Data, v.add)
			if err == nil && cut > 1 {
				err = o.lost(path+" is damaged", cut)
			}
			return err
		})
		if err != nil {
			return v, err
		}
	}
	return v, nil
}

// scanLog calls found with the version of each transaction that ends ahead of any
// damage, and returns how many end behind it. What garbage collection has moved
// is in none, and old.
func scanLog(b []byte, found func(version uint64)) (cut int, err error) {
	at := int64(valueHeader)
	for at < int64(len(b))-minEntry {
		e, size := decodeLogEntry(b[at:])
		if size == 0 {
			break
		}
		if e.meta&endOfTxn != 0 {
			found(e.version)
		}
		at += size
	}
	if at >= int64(len(b)) {
		return 0, nil
	}
	_, _, err = scanEntries(b, at, logMeta, func(e valueEntry) error {
		if e.meta&endOfTxn != 0 {
			cut++
		}
		return nil
	})
	return cut, err
}

// lost refuses a durable store that is known to have lost what it acknowledged,
// unless that is accepted. A relaxed one may after a power cut.
func (o Options) lost(what string, changes int) error {
	if o.Durability == Durable && !o.AcceptLoss {
		return fmt.Errorf("%s, %d %w", what, changes, errLost)
	}
	o.Logger.Error("changes are lost", slog.String("why", what), slog.Int("changes", changes))
	return nil
}
