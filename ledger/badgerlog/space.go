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

// look reads the free space. Where it cannot be read there is no floor.
func (s *space) look(o Options) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(o.Dir, &fs); err != nil {
		s.low.Store(false)
		return
	}
	free := int64(fs.Bavail) * fs.Bsize
	s.free.Store(free)
	s.low.Store(o.FreeSpaceFloor > 0 && free < o.FreeSpaceFloor)
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
