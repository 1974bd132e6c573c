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

// checkLogs checks Badger's logs (.mem), which have what is not in tables yet,
// and returns the newest version in them. Badger takes a log for one that ends
// at the first damage. A power cut can leave that in the last transaction; where
// two have their ends behind it, the first was synced before the second was
// written, and what is damaged before that.
func checkLogs(o Options) (newest uint64, err error) {
	logs, err := filepath.Glob(filepath.Join(o.Dir, "*.mem"))
	if err != nil {
		return 0, fmt.Errorf("list logs: %w", err)
	}
	for _, path := range logs {
		err := mapped(path, func(m *z.MmapFile) error {
			version, cut, err := scanLog(m.Data)
			newest = max(newest, version)
			if err == nil && cut > 1 {
				err = o.lost(path+" is damaged", cut)
			}
			return err
		})
		if err != nil {
			return 0, err
		}
	}
	return newest, nil
}

// scanLog returns the newest version ahead of any damage, and how many
// transactions end behind it.
func scanLog(b []byte) (newest uint64, cut int, err error) {
	at := int64(valueHeader)
	for at < int64(len(b))-minEntry {
		e, size := decodeLogEntry(b[at:])
		if size == 0 {
			break
		}
		newest = max(newest, e.version)
		at += size
	}
	if at >= int64(len(b)) {
		return newest, 0, nil
	}
	_, _, err = scanEntries(b, at, logMeta, func(e valueEntry) error {
		if e.meta&endOfTxn != 0 {
			cut++
		}
		return nil
	})
	return newest, cut, err
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
