package badgerlog

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	badger "github.com/dgraph-io/badger/v4"
)

// checkTables looks at the end of each table's file, where its index is, since
// Badger ends the whole process on one that was cut. Files that its manifest
// does not list are leftovers that it removes by itself.
func checkTables(o Options) error {
	files, err := filepath.Glob(filepath.Join(o.Dir, "*.sst"))
	if err != nil {
		return fmt.Errorf("list tables: %w", err)
	}
	var damaged []string
	for _, f := range files {
		whole, err := tableIsWhole(f)
		if err != nil {
			return err
		}
		if !whole {
			damaged = append(damaged, f)
		}
	}
	if len(damaged) == 0 {
		return nil
	}
	listed, err := listedTables(o)
	if err != nil {
		return err
	}
	for _, f := range damaged {
		id, err := strconv.ParseUint(strings.TrimSuffix(filepath.Base(f), ".sst"), 10, 64)
		if _, ok := listed[id]; ok && err == nil {
			return fmt.Errorf("%w: %s is cut or overwritten", errDamaged, f)
		}
	}
	return nil
}

const maxChecksum = 256 // bytes; Badger's are some ten

// tableIsWhole: a table ends with its index, the index's length (4 bytes), a
// checksum and the checksum's length (4 bytes).
func tableIsWhole(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, fmt.Errorf("look at table: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false, fmt.Errorf("look at table: %w", err)
	}
	number := func(at int64) int64 {
		var b [4]byte
		if at < 0 {
			return -1
		}
		if _, err := f.ReadAt(b[:], at); err != nil {
			return -1
		}
		return int64(binary.BigEndian.Uint32(b[:]))
	}
	at := info.Size() - 4
	checksum := number(at)
	if checksum <= 0 || checksum > maxChecksum {
		return false, nil
	}
	at -= checksum + 4
	index := number(at)
	return index > 0 && index <= at, nil
}

// listedTables returns the numbers of the tables that the manifest lists.
func listedTables(o Options) (map[uint64]badger.TableManifest, error) {
	f, err := os.Open(filepath.Join(o.Dir, badger.ManifestFilename))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	defer f.Close()
	m, _, err := badger.ReplayManifestFile(f, 0, badgerOptions(o))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return m.Tables, nil
}
