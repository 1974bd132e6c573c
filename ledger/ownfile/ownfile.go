// Package ownfile reads the files that a user writes for vesti: its settings, the
// registry of sources, the rules.
package ownfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Max is the most bytes that such a file may have.
const Max = 16 << 20

// ErrUnfit says that there is something at the path that is no file to read:
// a folder, a pipe, a device, or too large a file.
var ErrUnfit = errors.New("not to be read")

// Read returns the whole file. The error names the path and matches
// fs.ErrNotExist where there is none, and ErrUnfit. It never waits: what is no
// regular file is not read, not even opened for as long as a writer is awaited.
func Read(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the path
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err //nolint:wrapcheck // names the path
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: %s is %s, want a file", ErrUnfit, path, kindOf(info.Mode()))
	}
	b, err := io.ReadAll(io.LimitReader(f, Max+1))
	switch {
	case err != nil:
		return nil, err //nolint:wrapcheck // names the path
	case len(b) > Max:
		return nil, fmt.Errorf("%w: %s has more than %d MiB", ErrUnfit, path, Max>>20)
	}
	return b, nil
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	default:
		return "a device"
	}
}
