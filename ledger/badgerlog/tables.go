package badgerlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	badger "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/ristretto/v2/z"
	"golang.org/x/sync/errgroup"
)

// checkTables checks every table that Badger's manifest lists. Badger itself
// ends the whole process on a table that was cut, and where part of one is
// damaged it reads on without a word as if what follows there were not: its next
// compaction then throws it away. That takes some seconds per GB, so what is
// known to be sound is only looked at. It returns what is known then, and the
// newest version in any table.
func checkTables(o Options, logged versions) (known checked, newest uint64, err error) {
	started := time.Now()
	listed, err := listedTables(o)
	if err != nil {
		return known, 0, err
	}
	known = readChecked(o.Dir)
	var mu sync.Mutex // guards newest
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for id := range listed {
		g.Go(func() error {
			version, err := checkTable(o, id, known.sound)
			mu.Lock()
			defer mu.Unlock()
			newest = max(newest, version)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return known, 0, err //nolint:wrapcheck // names the file
	}
	if err := checkUnlisted(o, listed, newest, logged); err != nil {
		return known, 0, err
	}
	if known.all.IsZero() {
		known.all = started
	}
	known.sound = started.Add(-fileTimes)
	known.opened++
	_ = known.write(o.Dir) // on a full disk the next opening checks everything again
	return known, newest, nil
}

// checkUnlisted looks at the tables that Badger will remove because its manifest
// does not list them. A crash leaves such, whose newest version is in others that
// are listed, or in the log still. One that is newer than those and older than the
// log was in a manifest that has lost its end.
func checkUnlisted(o Options, listed map[uint64]badger.TableManifest, newest uint64, logged versions) error {
	tables, err := filepath.Glob(filepath.Join(o.Dir, "*.sst"))
	if err != nil {
		return fmt.Errorf("list tables: %w", err)
	}
	for _, path := range tables {
		id, ok := table.ParseFileID(path)
		if _, is := listed[id]; is || !ok {
			continue
		}
		version, err := checkTable(o, id, time.Time{})
		if err != nil || version <= newest {
			continue // not written to its end, or old
		}
		if logged.oldest == 0 || version < logged.oldest {
			return fmt.Errorf("%w: %s does not list %s any more", errDamaged, badger.ManifestFilename, path)
		}
	}
	return nil
}

// checkTable checks the checksum of a table's index and, where the file is newer
// than what is known to be sound, those of all its blocks. It returns the newest
// version in it.
func checkTable(o Options, id uint64, sound time.Time) (version uint64, err error) {
	path := table.NewFilename(id, o.Dir)
	err = mapped(path, func(m *z.MmapFile) error {
		b := badgerOptions(o)
		t, err := table.OpenTable(m, table.Options{BlockSize: b.BlockSize, TableSize: tableSize, Compression: b.Compression})
		if err == nil && writtenAfter(m.Fd, sound) {
			err = t.VerifyChecksum()
		}
		if err != nil {
			return fmt.Errorf("%w: %s: %w", errDamaged, path, err)
		}
		version = t.MaxVersion()
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w", errDamaged, err)
	}
	return version, err
}

func writtenAfter(f *os.File, t time.Time) bool {
	info, err := f.Stat()
	return err != nil || info.ModTime().After(t)
}

// mapped calls f with a file in memory. A panic of f, of which Badger's readers
// are capable on damaged files, and a page that cannot be read, because the disk
// refuses it or because the file was cut meanwhile, become errors.
func mapped(path string, f func(*z.MmapFile) error) (err error) {
	file, err := os.Open(path)
	if err != nil {
		return err //nolint:wrapcheck // names the file
	}
	m, err := z.OpenMmapFileUsing(file, 0, false)
	if err != nil {
		return errors.Join(fmt.Errorf("map %s: %w", path, err), file.Close())
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %s", errDamaged, path) // p tells of Badger's insides
		}
		err = errors.Join(err, m.Close(-1))
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	return f(m)
}

// listedTables returns the tables that the manifest lists, none for a new store.
func listedTables(o Options) (map[uint64]badger.TableManifest, error) {
	f, err := os.Open(filepath.Join(o.Dir, badger.ManifestFilename))
	if errors.Is(err, fs.ErrNotExist) {
		// Badger would take the store for a new one and remove the tables.
		if tables, _ := filepath.Glob(filepath.Join(o.Dir, "*.sst")); len(tables) > 0 {
			return nil, fmt.Errorf("%w: %s is missing", errDamaged, badger.ManifestFilename)
		}
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list tables: %w", err)
	}
	defer f.Close()
	m, _, err := badger.ReplayManifestFile(f, 0, badgerOptions(o))
	if err != nil {
		reason, _, _ := strings.Cut(err.Error(), "\n")
		return nil, fmt.Errorf("%w: %s: %s", errDamaged, f.Name(), reason)
	}
	return m.Tables, nil
}
