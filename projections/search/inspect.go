package search

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/blevesearch/bleve/v2/index/scorch"
	index "github.com/blevesearch/bleve_index_api"
	segment "github.com/blevesearch/scorch_segment_api/v2"

	"vesti.nixg.ru/projections"
)

// inspectEvery is how often the files of an open index are looked at, so that
// damage is found before somebody searches.
const inspectEvery = 5 * time.Second

// files remembers what the files of an open index look like. bleve maps them:
// one that is cut faults where it is read next, and one that is gone is missed
// at the next start only. Its methods are safe for concurrent use.
type files struct {
	dir string

	reading sync.Mutex // held while they are read whole
	read    time.Time  // when they were; guarded by reading

	mu    sync.Mutex
	root  fs.FileInfo
	sizes map[string]int64 // of segments, which never change once they are there
}

func newFiles(dir string) *files { return &files{dir: dir, sizes: map[string]int64{}} }

// checkRoot finds the list of files replaced, cut or gone. It grows.
func (f *files) checkRoot() error {
	info, err := os.Stat(filepath.Join(f.dir, rootFile))
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.root != nil && (!os.SameFile(info, f.root) || info.Size() < f.root.Size()) {
		return fmt.Errorf("%s is another file, or was cut", rootFile)
	}
	f.root = info
	return nil
}

// checkSegments finds one of the segments cut or gone.
func (f *files) checkSegments(paths []string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	sizes := make(map[string]int64, len(paths))
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		before, known := f.sizes[path]
		if known && before != info.Size() {
			return fmt.Errorf("segment %s has %d bytes, it had %d", filepath.Base(path), info.Size(), before)
		}
		sizes[path] = info.Size()
	}
	f.sizes = sizes
	return nil
}

// look checks the files of a snapshot before they are read. An error that is
// found twice, in the newest snapshot too, means damage: merging removes files
// of older ones.
func (f *fold) look(reader index.IndexReader) error {
	err := f.lookOnce(reader)
	if err == nil {
		return nil
	}
	newest, rerr := f.index.Reader()
	if rerr != nil {
		return rerr
	}
	if again := errors.Join(f.lookOnce(newest), newest.Close()); again == nil {
		return nil // the older one's files are mapped still
	}
	f.health.fail(err)
	return f.health.err()
}

func (f *fold) lookOnce(reader index.IndexReader) error {
	if err := f.files.checkRoot(); err != nil {
		return err
	}
	return f.files.checkSegments(segmentPaths(reader))
}

// segmentPaths lists the files of a snapshot.
func segmentPaths(reader index.IndexReader) []string {
	snapshot, ok := reader.(*scorch.IndexSnapshot)
	if !ok {
		return nil
	}
	var paths []string
	for _, s := range snapshot.Segments() {
		if p, ok := s.Segment().(segment.PersistedSegment); ok {
			paths = append(paths, p.Path())
		}
	}
	return paths
}

// diagnose says what an error of a search means: damage, where the files prove
// it, which the runner then mends.
func (f *fold) diagnose(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, projections.ErrDamaged) {
		return err
	}
	_ = f.health.guard(func() error { // what it proves, health has
		_, err := f.inspectOnce(ctx, true)
		return err
	})
	if damaged := f.health.err(); damaged != nil {
		return damaged
	}
	if errors.Is(err, errPanic) {
		return fmt.Errorf("%w; damage is found and mended within seconds, and where it goes on \"vesti rebuild search\" builds the index anew", err)
	}
	return err
}

// inspect looks at the files now and then, and reads them whole after an error
// that damage may explain, until ctx ends or the index is beyond use.
func (f *fold) inspect(ctx context.Context) {
	tick := time.NewTicker(inspectEvery)
	defer tick.Stop()
	doubted := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.health.broken():
			return
		case <-tick.C:
		case <-f.health.doubts:
			doubted = true
		}
		_ = f.health.guard(func() error { // what it proves, health has
			read, err := f.inspectOnce(ctx, doubted)
			doubted = doubted && !read
			return err
		})
	}
}

// inspectOnce looks at the files, and reads them whole where that is asked for
// and was not done just now.
func (f *fold) inspectOnce(ctx context.Context, deep bool) (read bool, err error) {
	reader, err := f.index.Reader()
	if err != nil {
		return false, err
	}
	err = f.look(reader)
	if err == nil && deep {
		read = f.readWhole(ctx, segmentPaths(reader))
	}
	return read, errors.Join(err, reader.Close())
}

// readWhole reads the segments, which takes a while, and reports false where that
// was done just before or was cut short.
func (f *fold) readWhole(ctx context.Context, paths []string) bool {
	f.files.reading.Lock()
	defer f.files.reading.Unlock()
	if time.Since(f.files.read) < inspectEvery {
		return false
	}
	for _, path := range paths {
		if ctx.Err() != nil {
			return false
		}
		err := checkSegment(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // merged away meanwhile
			f.health.fail(fmt.Errorf("segment %s: %w", filepath.Base(path), err))
			return true
		}
	}
	f.files.read = time.Now()
	return true
}
