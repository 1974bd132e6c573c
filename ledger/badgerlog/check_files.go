package badgerlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	badger "github.com/dgraph-io/badger/v4"
)

// files checks the checksums of what is on disk, also where nothing leads to it:
// a disk that spoils what is not in use will spoil what is. The newest file of
// values is still being written. Where a table is damaged it returns false: keys
// are missing then without a word, and nothing follows from what is there.
func (c *checker) files() (whole bool, err error) {
	if whole, err := c.tables(); err != nil || !whole {
		return false, err
	}
	values, err := valueFiles(c.log.opts.Dir)
	if err != nil {
		return false, err
	}
	for _, path := range values[:max(len(values)-1, 0)] {
		if err := c.step(); err != nil {
			return false, err
		}
		damaged, err := damagedValues(path)
		if _, gone := os.Stat(path); errors.Is(gone, fs.ErrNotExist) {
			continue // garbage collection has removed it meanwhile
		}
		if err != nil {
			c.file(err.Error())
		}
		for _, s := range damaged {
			c.file(fmt.Sprintf("%s: %s are damaged; what in them is in use is named below by its key", filepath.Base(path), s))
		}
	}
	return true, nil
}

// tables checks the tables of the tree, and reports whether all are whole.
func (c *checker) tables() (bool, error) {
	whole := true
	for _, t := range c.log.db.Tables() {
		if err := c.step(); err != nil {
			return false, err
		}
		_, err := checkTable(c.log.opts, t.ID)
		if err != nil && c.log.hasTable(t.ID) { // else compaction has removed it meanwhile
			whole = false
			c.file(err.Error())
		}
	}
	return whole, nil
}

func (l *Log) hasTable(id uint64) bool {
	return slices.ContainsFunc(l.db.Tables(), func(t badger.TableInfo) bool { return t.ID == id })
}

func (c *checker) file(what string) { c.problem(nil, nil, "%s", what) }
