package badgerlog

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	badger "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"vesti.nixg.ru/ledger"
)

const (
	lockName = "store.lock"
	lockWait = time.Second // for a process that is just closing it
	lockTry  = 50 * time.Millisecond
)

// lockFolder makes the folder and takes its lock. The kernel gives the lock
// back when the process ends, however it ends.
func lockFolder(ctx context.Context, dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, folderError(dir, err)
	}
	path := filepath.Join(dir, lockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, folderError(dir, err)
	}
	deadline := time.Now().Add(lockWait)
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			// The number is for whoever finds the lock taken. A full disk does not stop it
			// from being one.
			_ = f.Truncate(0)
			_, _ = f.WriteAt(strconv.AppendInt(nil, int64(os.Getpid()), 10), 0)
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		}
		if time.Now().After(deadline) {
			return nil, errors.Join(fmt.Errorf("%w: %s%s", ledger.ErrLocked, dir, holder(f)), f.Close())
		}
		select {
		case <-time.After(lockTry):
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), f.Close())
		}
	}
}

// holder names the process that has the lock, "" where it has not said so yet.
func holder(lock *os.File) string {
	b := make([]byte, 20)
	n, _ := lock.ReadAt(b, 0) // what is there is all that counts
	pid, err := strconv.Atoi(string(b[:n]))
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (process %d)", pid)
}

func folderError(dir string, err error) error {
	if errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: %s: %w", ledger.ErrReadOnly, dir, err)
	}
	return fmt.Errorf("open store %s: %w", dir, err)
}

// valueThreshold is the size from which a value stands in a file of values and
// not in the tree: texts do, most events do not.
const valueThreshold = 512

// tableSize is the size of a table on disk. Compaction has up to 13 of them in
// the making at once, each in memory of several times its size, and Badger keeps
// that of 8 for the next ones. Tables that grow from level to level, as they do
// by default, take half a gigabyte at a million posts.
const tableSize = 1 << 20

func badgerOptions(o Options) badger.Options {
	b := badger.DefaultOptions(o.Dir).
		WithLogger(badgerLogger{o.Logger}).
		WithSyncWrites(o.Durability == Durable).
		WithMemTableSize(o.MemTable).
		WithBaseTableSize(tableSize).
		WithNumMemtables(3).
		WithBlockCacheSize(o.BlockCache).
		WithIndexCacheSize(o.IndexCache).
		WithValueThreshold(valueThreshold).
		WithValueLogFileSize(o.ValueLogFile).
		WithVerifyValueChecksum(true). // without it a damaged value locks its file for good
		WithNumCompactors(2).
		WithNumVersionsToKeep(1).
		WithCompression(options.Snappy).
		WithMetricsEnabled(false).
		WithDetectConflicts(true)
	b.TableSizeMultiplier = 1
	return b
}

var errDamaged = errors.New("its files are damaged, restore it from a backup")

// openBadger opens Badger's files once they are checked.
func openBadger(o Options) (db *badger.DB, known checked, err error) {
	if err := dropEmptyFiles(o.Dir); err != nil {
		return nil, known, folderError(o.Dir, err)
	}
	logged, err := checkLogs(o)
	if err != nil {
		return nil, known, folderError(o.Dir, err)
	}
	known, newest, err := checkTables(o, logged)
	if err != nil {
		return nil, known, folderError(o.Dir, err)
	}
	if err := setAside(o, max(newest, logged.newest)); err != nil {
		return nil, known, folderError(o.Dir, err)
	}
	if err := checkRegistry(o.Dir); err != nil {
		return nil, known, folderError(o.Dir, err)
	}
	db, err = badger.Open(badgerOptions(o))
	if err != nil {
		return nil, known, folderError(o.Dir, err)
	}
	return db, known, nil
}

// checkRegistry removes a damaged registry of keys, which Badger makes anew: no
// store is encrypted, so there is nothing in it.
func checkRegistry(dir string) error {
	path := filepath.Join(dir, badger.KeyRegistryFileName)
	if _, err := os.ReadFile(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err //nolint:wrapcheck // names the file
	}
	r, err := badger.OpenKeyRegistry(badger.KeyRegistryOptions{Dir: dir, ReadOnly: true})
	if err == nil {
		return r.Close() //nolint:wrapcheck // nothing is written
	}
	return os.Remove(path) //nolint:wrapcheck // names the file
}

// dropEmptyFiles removes files of no bytes, which a crash between a file's
// making and its first write leaves behind and which Badger does not open.
func dropEmptyFiles(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext != ".mem" && ext != ".vlog" {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return fmt.Errorf("list: %w", err)
		}
		if info.Size() == 0 {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return fmt.Errorf("remove empty file: %w", err)
			}
		}
	}
	return nil
}

func closeBadger(db *badger.DB) error {
	if err := db.Close(); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}

// formatVersion is the version of the format that this code writes.
const formatVersion = 1

// checkFormat marks a new store with its format, brings an older one up to it,
// and refuses a newer one.
func (l *Log) checkFormat(ctx context.Context) error {
	var format []byte
	err := l.db.View(func(txn *badger.Txn) error {
		var err error
		format, err = txnGet(txn, []byte(controlFormat))
		return err
	})
	if err != nil {
		return fmt.Errorf("read the format: %w", err)
	}
	switch {
	case format == nil:
		return l.newStore()
	case len(format) != 1 || format[0] == 0:
		return fmt.Errorf("open store %s: %w: its format mark is %x", l.opts.Dir, errDamaged, format)
	case format[0] > formatVersion:
		return fmt.Errorf("%w: %s has format %d, this version reads up to %d", ledger.ErrNewer, l.opts.Dir, format[0], formatVersion)
	case format[0] < formatVersion:
		return l.upgrade(ctx, upgrades(), format[0], formatVersion)
	default:
		return nil
	}
}

func (l *Log) newStore() error {
	id := make([]byte, 16)
	rand.Read(id)
	err := l.db.Update(func(txn *badger.Txn) error {
		if err := txn.Set([]byte(controlStore), id); err != nil {
			return err //nolint:wrapcheck // wrapped below
		}
		return txn.Set([]byte(controlFormat), []byte{formatVersion})
	})
	if err != nil {
		return fmt.Errorf("make a new store: %w", err)
	}
	return nil
}

// badgerLogger passes on what Badger has to say: its warnings and errors as
// such, the rest for those who debug.
type badgerLogger struct{ to *slog.Logger }

func (b badgerLogger) Errorf(format string, args ...any) {
	level := slog.LevelError
	if strings.HasPrefix(format, "Unable to read: Key") || strings.HasPrefix(format, "Key: ") {
		level = slog.LevelDebug // a damaged value, of which the read's caller hears by errValue
	}
	b.log(level, format, args)
}

func (b badgerLogger) Warningf(format string, args ...any) {
	level := slog.LevelWarn
	if strings.Contains(fmt.Sprintf(format, args...), "Unable to fill tables") {
		level = slog.LevelDebug // a compaction that found nothing to do, no trouble
	}
	b.log(level, format, args)
}
func (b badgerLogger) Infof(format string, args ...any)  { b.log(slog.LevelDebug, format, args) }
func (b badgerLogger) Debugf(format string, args ...any) {}

func (b badgerLogger) log(level slog.Level, format string, args []any) {
	if b.to.Enabled(context.Background(), level) {
		b.to.Log(context.Background(), level, "badger", slog.String("message", strings.TrimSpace(fmt.Sprintf(format, args...))))
	}
}
