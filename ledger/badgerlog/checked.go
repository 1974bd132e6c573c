package badgerlog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// checkedName is the file that holds a checked.
	checkedName = "store.checked"
	checkEvery  = 24 * time.Hour
	// fileTimes is how far the times of files are behind the clock, at most.
	fileTimes = time.Second
)

// checked is what is known of the tables on disk. The zero value is nothing.
type checked struct {
	all time.Time // when all of them were checked, at most checkEvery ago
	// sound is the time of the newest that is known to be whole: it was checked, or
	// written by a process that has closed the store since, or still has it. One
	// whose file is newer was written by whom nobody knows.
	sound time.Time
	// opened is how many processes have opened the store since one had it for some
	// minutes or closed it. Where several died of it in turn, nothing is known.
	opened int
}

const maxOpened = 2

// readChecked reads it, the zero value where it is too old, of a time to come or
// not there.
func readChecked(dir string) checked {
	b, err := os.ReadFile(filepath.Join(dir, checkedName))
	if err != nil {
		return checked{}
	}
	fields := strings.Fields(string(b))
	if len(fields) != 3 {
		return checked{}
	}
	all, err1 := time.Parse(time.RFC3339Nano, fields[0])
	sound, err2 := time.Parse(time.RFC3339Nano, fields[1])
	opened, err3 := strconv.Atoi(fields[2])
	age := time.Since(all)
	if errors.Join(err1, err2, err3) != nil || age < 0 || age > checkEvery || time.Since(sound) < 0 || opened >= maxOpened {
		return checked{}
	}
	return checked{all: all, sound: sound, opened: opened}
}

// write notes it for the next opening, which without it checks everything.
func (c checked) write(dir string) error {
	line := fmt.Sprintln(c.all.Format(time.RFC3339Nano), c.sound.Format(time.RFC3339Nano), c.opened)
	if err := os.WriteFile(filepath.Join(dir, checkedName), []byte(line), 0o600); err != nil {
		return fmt.Errorf("note the check of the tables: %w", err)
	}
	return nil
}

// noteSound notes that the tables up to now are this process's own.
func (l *Log) noteSound() error {
	l.checked.sound, l.checked.opened = time.Now().Add(-fileTimes), 0
	return l.checked.write(l.opts.Dir)
}
