package badgerlog

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"

	"vesti.nixg.ru/ledger"
)

// space watches the free space of the store's disk.
type space struct {
	free atomic.Int64
	low  atomic.Bool
}

// freeSpace reads the free space of a folder's disk. Where it cannot be read
// there is no floor.
func freeSpace(dir string) int64 {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return 1 << 60
	}
	return int64(fs.Bavail) * fs.Bsize
}

// look reads the free space.
func (s *space) look(o Options) {
	free := freeSpace(o.Dir)
	s.free.Store(free)
	s.low.Store(o.FreeSpaceFloor > 0 && free < o.FreeSpaceFloor)
}

// spend takes what is about to be written off what was free at the last look,
// so that a fast writer does not pass the floor between two looks. Everything
// is written about three times: ahead, as a table, and once more when tables
// are merged.
func (s *space) spend(o Options, n int) {
	if left := s.free.Add(-3 * int64(n)); o.FreeSpaceFloor > 0 && left < o.FreeSpaceFloor {
		s.low.Store(true) // until the next look says otherwise
	}
}

// checkFull returns an error matching ledger.ErrNoSpace on a disk that is as
// good as full, where nothing at all is written, nor a store opened: up to four
// tables go to mapped files, where a full disk is no error but ends the process.
func checkFull(o Options) error {
	need := min(o.FreeSpaceFloor, 4*o.MemTable)
	if o.FreeSpaceFloor <= 0 {
		return nil
	}
	if free := freeSpace(o.Dir); free < need {
		return fmt.Errorf("%w: %d MiB free below %s, a store takes %d MiB to be opened or written; nothing is lost, make room",
			ledger.ErrNoSpace, free>>20, o.Dir, need>>20)
	}
	return nil
}

// check returns an error matching ledger.ErrNoSpace while no new work is taken.
func (s *space) check(o Options) error {
	if !s.low.Load() {
		return nil
	}
	return fmt.Errorf("%w: %d MiB free below %s, the floor is %d MiB; work goes on when there is room",
		ledger.ErrNoSpace, s.free.Load()>>20, o.Dir, o.FreeSpaceFloor>>20)
}

// folderSize is what the folder's files take on disk, in bytes. Files that are
// mapped are longer than what they take.
func folderSize(dir string) int64 {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	var n int64
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue
		}
		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			n += s.Blocks * 512
		}
	}
	return n
}
