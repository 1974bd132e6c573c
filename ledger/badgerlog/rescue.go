package badgerlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	badger "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/ristretto/v2/z"
)

// asideExt ends the name of a copy of what Badger is about to cut off a file of
// values. It is removed once what is in use of it is in the store again.
const asideExt = ".aside"

// setAside copies what stands behind damage in the newest file of values, which
// Badger cuts off when it opens. After a power cut there may be something, and
// nothing of it is in use; on a disk that spoilt some bytes it is all that was
// written since. On the way it looks whether Badger's log has lost its end: known
// is the newest version in it and in the tables.
func setAside(o Options, known uint64) error {
	files, err := valueFiles(o.Dir)
	if err != nil || len(files) == 0 {
		return err
	}
	newest := files[len(files)-1]
	return mapped(newest, func(m *z.MmapFile) error {
		unknown := make(map[uint64]struct{})
		damaged, end, err := scanValues(m.Data, valueHeader, func(e valueEntry) error {
			if e.version > known {
				unknown[e.version] = struct{}{}
			}
			return nil
		})
		if err == nil && len(unknown) > maxUnlogged {
			err = o.lost("the log in "+o.Dir+" has no end", len(unknown))
		}
		if err != nil || len(damaged) == 0 {
			return err
		}
		return copyAside(m.Data[damaged[0].to:end], newest+asideExt)
	})
}

// maxUnlogged is how many changes can have their values written and not be in
// the log yet when a process dies: one of each that writes.
const maxUnlogged = 16

// copyAside writes a copy that is whole and durable before it has its name.
func copyAside(b []byte, path string) error {
	unfinished := path + ".tmp"
	f, err := os.OpenFile(unfinished, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("set values aside: %w", err)
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(unfinished, path)
	}
	if err == nil {
		err = syncFolder(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("set values aside: %w", errors.Join(err, os.Remove(unfinished)))
	}
	return nil
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err //nolint:wrapcheck // names the folder
	}
	return errors.Join(d.Sync(), d.Close())
}

// putBackAside puts back what setAside has kept, this time or when the process
// died since.
func (l *Log) putBackAside() error {
	copies, err := filepath.Glob(filepath.Join(l.opts.Dir, "*"+asideExt))
	if err != nil {
		return fmt.Errorf("put values back: %w", err)
	}
	for _, c := range copies {
		err := mapped(c, func(m *z.MmapFile) error {
			n, err := l.putBack(m.Data)
			if n > 0 {
				l.rescued(strings.TrimSuffix(c, asideExt), n)
			}
			return err
		})
		if err == nil {
			err = os.Remove(c)
		}
		if err != nil {
			return fmt.Errorf("put values back: %w", err)
		}
	}
	return nil
}

// rescued tells of damage while there is something to be done about it.
func (l *Log) rescued(file string, n int) {
	l.metrics.rescued.Add(float64(n))
	l.opts.Logger.Error("the disk has spoilt part of a file of values; what stood behind it is safe, "+
		"\"vesti verify\" lists what is lost", slog.String("file", file), slog.Int("values_put_back", n))
}

// rescueFile puts back what stands behind damage in a file that garbage
// collection is about to remove.
func (l *Log) rescueFile(path string) error {
	err := mapped(path, func(m *z.MmapFile) error {
		damaged, end, err := scanValues(m.Data, valueHeader, func(valueEntry) error { return nil })
		if err != nil || len(damaged) == 0 {
			return err
		}
		n, err := l.putBack(m.Data[damaged[0].to:end])
		l.rescued(path, n)
		return err
	})
	if err != nil && removed(path) {
		return nil // Badger had only waited with it for readers
	}
	return err
}

// removed reports whether Badger has removed a file. It makes it empty first.
func removed(path string) bool {
	info, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0
}

// empty writes all sound values of a file anew that are in use, so that only
// garbage is left in it, which the next compaction finds and removes.
func (l *Log) empty(path string) error {
	return mapped(path, func(m *z.MmapFile) error {
		_, err := l.putBack(m.Data[min(valueHeader, len(m.Data)):])
		return err
	})
}

// rescueBatch is how many values are put back in one transaction.
const rescueBatch = 500

// putBack writes anew those entries that are the newest of their keys, and
// returns how many were.
func (l *Log) putBack(b []byte) (int, error) {
	n := 0
	var batch []valueEntry
	write := func() error {
		put, err := l.putBackBatch(batch)
		n += put
		batch = batch[:0]
		return err
	}
	_, _, err := scanValues(b, 0, func(e valueEntry) error {
		if batch = append(batch, e); len(batch) < rescueBatch {
			return nil
		}
		return write()
	})
	if err == nil {
		err = write()
	}
	return n, err
}

func (l *Log) putBackBatch(batch []valueEntry) (int, error) {
	for {
		n := 0
		err := l.db.Update(func(txn *badger.Txn) error {
			for _, e := range batch {
				item, err := txn.Get(e.key)
				if errors.Is(err, badger.ErrKeyNotFound) || err == nil && (item.Version() != e.version || differs(item, e.value)) {
					continue // removed, written again, or never committed
				}
				if err == nil {
					err = txn.Set(bytes.Clone(e.key), bytes.Clone(e.value))
				}
				if err != nil {
					return fmt.Errorf("%s: %w", printKey(e.key), err)
				}
				n++
			}
			return nil
		})
		if !errors.Is(err, badger.ErrConflict) {
			return n, err //nolint:wrapcheck // names the key, or Badger's of the commit
		}
	}
}

// differs reports whether an item has another value, that can be read: versions
// are given out again where a log had lost its end.
func differs(item *badger.Item, value []byte) bool {
	var same bool
	err := readValue(item, func(v []byte) error {
		same = bytes.Equal(v, value)
		return nil
	})
	return err == nil && !same
}

// nextGarbage returns the file that Badger's garbage collection will take next,
// "" for none: it removes the one with the most garbage. Its count of that is a
// mapped file of pairs, a file's number and its bytes of garbage.
func nextGarbage(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, "DISCARD"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look for garbage: %w", err)
	}
	var most uint64
	path := ""
	for ; len(b) >= 16; b = b[16:] {
		number, garbage := binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
		if number == 0 {
			break
		}
		file := filepath.Join(dir, fmt.Sprintf("%06d.vlog", number))
		info, err := os.Stat(file)
		if err != nil || garbage <= most {
			continue
		}
		most, path = garbage, ""
		if float64(garbage) >= gcRatio*float64(info.Size()) {
			path = file
		}
	}
	return path, nil
}
