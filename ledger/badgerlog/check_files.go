package badgerlog

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	badger "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/table"

	"vesti.nixg.ru/ledger"
)

// files checks the checksums of what is on disk, and reports whether the tables
// are whole. Where one is damaged keys are missing without a word, and nothing
// follows from what is there.
func (c *checker) files() (whole bool, err error) {
	return c.log.checkFiles(c.step, func(path, what string) {
		var fix func(*group) error
		if filepath.Ext(path) == ".vlog" {
			fix = func(*group) error { return c.log.empty(path) }
		}
		c.problem(nil, fix, "%s", what)
	})
}

// checkFiles checks the tables of the tree and the files of values, also where
// nothing leads to what is in them: a disk that spoils what is not in use will
// spoil what is. step ends it with an error.
func (l *Log) checkFiles(step func() error, found func(path, what string)) (whole bool, err error) {
	whole = true
	for _, t := range l.db.Tables() {
		if err := step(); err != nil {
			return false, err
		}
		_, err := checkTable(l.opts, t.ID, time.Time{})
		if err != nil && l.hasTable(t.ID) { // else compaction has removed it meanwhile
			whole = false
			found(table.NewFilename(t.ID, l.opts.Dir), err.Error())
		}
	}
	values, err := valueFiles(l.opts.Dir)
	if err != nil {
		return false, err
	}
	for _, path := range values[:max(len(values)-1, 0)] { // the newest is still being written
		if err := step(); err != nil {
			return false, err
		}
		damaged, err := damagedValues(path)
		if removed(path) {
			continue // by garbage collection, meanwhile
		}
		if err != nil {
			found(path, err.Error())
		}
		for _, s := range damaged {
			found(path, fmt.Sprintf("%s: %s are damaged; \"vesti verify\" names what in them is in use by its key", filepath.Base(path), s))
		}
	}
	return whole, nil
}

func (l *Log) hasTable(id uint64) bool {
	return slices.ContainsFunc(l.db.Tables(), func(t badger.TableInfo) bool { return t.ID == id })
}

// scrub checks the files once a day. A damaged table ends the engine's work
// before a compaction throws away what stands behind the damage.
func (l *Log) scrub(ctx context.Context) error {
	if time.Since(l.checked.all).Abs() <= checkEvery {
		return l.noteSound()
	}
	release, err := l.acquire()
	if err != nil {
		return err
	}
	defer release()
	started, n := time.Now(), 0
	whole, err := l.checkFiles(func() error {
		if l.closing.Load() {
			return ledger.ErrClosed
		}
		return context.Cause(ctx)
	}, func(_, what string) {
		n++
		l.opts.Logger.Error("the disk has spoilt part of the store", "what", what)
	})
	if err != nil {
		return fmt.Errorf("check files: %w", err)
	}
	l.metrics.damaged.Set(float64(n))
	if !whole {
		l.fault(fmt.Errorf("%s: %w", l.opts.Dir, errDamaged))
		return nil
	}
	l.checked.all = started
	return l.noteSound()
}
