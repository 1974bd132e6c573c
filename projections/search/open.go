package search

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/blevesearch/bleve/v2/index/scorch"
	"github.com/blevesearch/bleve/v2/util"
	index "github.com/blevesearch/bleve_index_api"
	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/projections"
	"vesti.nixg.ru/projections/search/analyse"
)

const (
	rootFile = "root.bolt" // bleve's list of what belongs to the index
	// lockPatience is how long opening waits for another process; without a limit
	// it would wait for ever.
	lockPatience = time.Second
)

// openFold opens the index in dir, a new one where there is none. An error
// matches projections.ErrDamaged only where what is on disk is proven to be no
// index any more: a lock, a lack of rights or of space is none.
func openFold(dir string, texts Texts, stemmer *analyse.Stemmer, logger *slog.Logger) (*fold, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the folder of the index: %w", err)
	}
	if err := checkRoot(dir); err != nil {
		return nil, classified(dir, err)
	}
	f := &fold{dir: dir, texts: texts, stemmer: stemmer, logger: logger, health: newHealth(logger)}
	f.lengths.Store(&lengths{})
	if err := f.health.guard(func() error { return f.open(dir) }); err != nil {
		return nil, classified(dir, err)
	}
	f.target = texts.Head()
	f.files = newFiles(dir)
	ctx, stop := context.WithCancel(context.Background())
	f.stopInspecting = stop
	f.inspecting.Go(func() { f.inspect(ctx) })
	return f, nil
}

func (f *fold) open(dir string) error {
	queue := index.NewAnalysisQueue(runtime.GOMAXPROCS(0))
	stop := f.health.watch(dir)
	f.release = func() {
		stop()
		queue.Close()
	}
	idx, err := scorch.NewScorch(scorch.Name, map[string]any{
		"path":                   dir,
		"bolt_timeout":           lockPatience.String(),
		"asyncErrorCallbackName": reportName,
		"eventCallbackName":      reportName,
	}, queue)
	if err != nil {
		f.release()
		return err
	}
	if err := idx.Open(); err != nil {
		f.release()
		return err
	}
	f.index = idx
	if err := f.restore(); err != nil {
		return errors.Join(err, f.Close())
	}
	return nil
}

// checkRoot reads the index's list of files, since what is wrong with it might
// show only later, in a goroutine of bleve's.
func checkRoot(dir string) error {
	path := filepath.Join(dir, rootFile)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		segments, err := filepath.Glob(filepath.Join(dir, "*.zap"))
		if err == nil && len(segments) > 0 {
			return fmt.Errorf("%s is missing beside %d segments", rootFile, len(segments))
		}
		return err
	}
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		return fmt.Errorf("%s is empty", rootFile)
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: lockPatience})
	if err != nil {
		return fmt.Errorf("open %s: %w", rootFile, err)
	}
	err = db.View(func(tx *bolt.Tx) error {
		var first error
		for err := range tx.Check() {
			if first == nil {
				first = fmt.Errorf("check %s: %w", rootFile, err)
			}
		}
		if first != nil {
			return first
		}
		return checkSegments(dir, tx)
	})
	return errors.Join(err, db.Close())
}

// checkSegments compares the files of the newest snapshot with the checksums at
// their ends, which bleve writes and never reads. Other files may be what a
// crash left half-written.
func checkSegments(dir string, tx *bolt.Tx) error {
	snapshots := tx.Bucket(util.BoltSnapshotsBucket)
	if snapshots == nil {
		return nil
	}
	newest, _ := snapshots.Cursor().Last()
	if newest == nil {
		return nil
	}
	snapshot := snapshots.Bucket(newest)
	if snapshot == nil {
		return fmt.Errorf("%s: snapshot %x has no segments", rootFile, newest)
	}
	return snapshot.ForEachBucket(func(key []byte) error {
		path := snapshot.Bucket(key).Get(util.BoltPathKey)
		if path == nil {
			return nil // not of a segment
		}
		if err := checkSegment(filepath.Join(dir, filepath.Base(string(path)))); err != nil {
			return fmt.Errorf("segment %s: %w", path, err)
		}
		return nil
	})
}

func checkSegment(path string) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	const sumSize = 4
	if info.Size() < sumSize {
		return fmt.Errorf("%d bytes are no segment", info.Size())
	}
	sum := crc32.NewIEEE()
	if _, err := io.CopyN(sum, f, info.Size()-sumSize); err != nil {
		return err
	}
	var stored [sumSize]byte
	if _, err := io.ReadFull(f, stored[:]); err != nil {
		return err
	}
	if binary.BigEndian.Uint32(stored[:]) != sum.Sum32() {
		return errors.New("checksum does not match")
	}
	return nil
}

// classified says what an error of opening means.
func classified(dir string, err error) error {
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("index in %s: %w", dir, ledger.ErrLocked)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE),
		errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("open the index in %s: %w", dir, err)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("open the index in %s: %w: %w", dir, ledger.ErrNoSpace, err)
	default:
		return fmt.Errorf("%w: index in %s: %w", projections.ErrDamaged, dir, err)
	}
}
