package badgerlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	badger "github.com/dgraph-io/badger/v4"

	"vesti.nixg.ru/ledger"
)

const (
	gcRatio = 0.5 // a file of texts is rewritten when this share of it is garbage
	// compactAfter is how many texts retention must have removed for the tree to be
	// compacted: only then does Badger know which files are garbage.
	compactAfter = 1000
)

// maintain runs retention, garbage collection and the daily check of the files
// by itself.
func (l *Log) maintain(ctx context.Context) {
	t := time.NewTicker(l.opts.GCInterval)
	defer t.Stop()
	removed := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		report, err := l.Retain(ctx, l.opts.Retention)
		removed += report.Posts + report.Revisions
		if err == nil && removed >= compactAfter {
			removed = 0
			_, err = l.Compact(ctx)
		} else if err == nil {
			_, err = l.collect(ctx)
		}
		if err == nil {
			err = l.scrub(ctx)
		}
		if err != nil && ctx.Err() == nil {
			l.opts.Logger.Error("maintenance", "error", err)
		}
	}
}

// CompactReport is what Compact gave back.
type CompactReport struct {
	Before int64 `json:"before_bytes"`
	After  int64 `json:"after_bytes"`
	Files  int   `json:"files"` // of texts that were rewritten or removed
}

// Compact merges the tree of keys into one level, which drops what was deleted,
// and rewrites the files of texts that are mostly garbage. The store can be used
// meanwhile; at a million posts it takes about a minute.
func (l *Log) Compact(ctx context.Context) (CompactReport, error) {
	var r CompactReport
	if err := checkFull(l.opts); err != nil {
		return r, fmt.Errorf("compact: %w", err)
	}
	r.Before = folderSize(l.opts.Dir)
	for {
		if err := l.flushTables(ctx); err != nil {
			return r, fmt.Errorf("compact: %w", err)
		}
		if l.mergeable() {
			break
		}
	}
	l.snapshot.close() // it would hold on to what was deleted since
	release, err := l.acquire()
	if err != nil {
		return r, err
	}
	err = l.db.Flatten(2)
	release()
	if err != nil {
		return r, fmt.Errorf("compact: %w", err)
	}
	r.Files, err = l.collect(ctx)
	r.After = folderSize(l.opts.Dir)
	return r, err
}

// mergeable reports whether Badger will merge the tables there are: it leaves
// those of a young store alone, which are all in its first level, while they
// are few.
func (l *Log) mergeable() bool {
	release, err := l.acquire()
	if err != nil {
		return true // the next step says so
	}
	defer release()
	for _, level := range l.db.Levels() {
		if level.Level > 0 && level.NumTables > 0 || level.NumTables > l.db.Opts().NumLevelZeroTables {
			return true
		}
	}
	return false
}

// flushTables has Badger write its table in memory to disk, by filling it up:
// there is no call for that. Deletions that are only in memory would otherwise
// free nothing.
func (l *Log) flushTables(ctx context.Context) error {
	const (
		value = valueThreshold - 64
		keys  = 2 * maxGroup // so that a group has none twice
	)
	old := l.memFiles()
	pad := make([]byte, value)
	key := func(i int) []byte { return fmt.Appendf(nil, "%s%d", controlPad, i%keys) }
	for chunk := 0; slices.Equal(l.memFiles(), old); chunk++ {
		from := chunk * maxGroup
		if err := l.each(ctx, maxGroup, func(g *group, i int) error { return g.set(key(from+i), pad) }); err != nil {
			return err
		}
	}
	if err := l.each(ctx, keys, func(g *group, i int) error { return g.delete(key(i)) }); err != nil {
		return err
	}
	return l.gone(ctx, old)
}

// memFiles lists the files behind the tables in memory.
func (l *Log) memFiles() []string {
	files, _ := filepath.Glob(filepath.Join(l.opts.Dir, "*.mem"))
	return files
}

// gone waits until Badger has written the tables behind files, and removed them.
func (l *Log) gone(ctx context.Context, files []string) error {
	t := time.NewTicker(10 * time.Millisecond)
	defer t.Stop()
	for _, f := range files {
		for {
			if _, err := os.Stat(f); errors.Is(err, fs.ErrNotExist) {
				break
			}
			select {
			case <-t.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			if l.closing.Load() {
				return ledger.ErrClosed
			}
		}
	}
	return nil
}

// collect rewrites files of texts until none is mostly garbage, and returns how
// many were.
func (l *Log) collect(ctx context.Context) (int, error) {
	files := 0
	for ctx.Err() == nil && !l.closing.Load() {
		again, err := l.collectOne()
		if err != nil || !again {
			return files, err
		}
		files++
	}
	return files, context.Cause(ctx)
}

func (l *Log) collectOne() (bool, error) {
	release, err := l.acquire()
	if err != nil {
		return false, err
	}
	defer release()
	if err := checkFull(l.opts); err != nil {
		return false, err
	}
	file, err := nextGarbage(l.opts.Dir)
	if err == nil && file != "" {
		err = l.rescueFile(file)
	}
	if err != nil {
		return false, fmt.Errorf("collect garbage: %w", err)
	}
	failpoint("gc.begin")
	started := time.Now()
	before := folderSize(l.opts.Dir)
	err = l.db.RunValueLogGC(gcRatio)
	l.metrics.gcSeconds.Add(time.Since(started).Seconds())
	switch {
	case err == nil:
		l.metrics.gc.WithLabelValues(gcFreed).Inc()
		l.metrics.gcBytes.Add(float64(max(before-folderSize(l.opts.Dir), 0)))
		return true, nil
	case errors.Is(err, badger.ErrNoRewrite), errors.Is(err, badger.ErrRejected):
		l.metrics.gc.WithLabelValues(gcNothing).Inc()
		return false, nil
	default:
		l.metrics.gc.WithLabelValues(gcFailed).Inc()
		return false, fmt.Errorf("collect garbage: %w", err)
	}
}
