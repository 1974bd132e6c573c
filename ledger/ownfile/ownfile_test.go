package ownfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"vesti.nixg.ru/ledger/ownfile"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for name, size := range map[string]int64{"empty": 0, "most": ownfile.Max, "large": ownfile.Max + 1} {
		f, err := os.Create(path(name))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(unix.Mkfifo(path("pipe"), 0o600), os.Symlink("/dev/zero", path("zero")), os.Symlink("most", path("link"))); err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]int{"empty": 0, "most": ownfile.Max, "link": ownfile.Max} {
		if b, err := ownfile.Read(path(name)); err != nil || len(b) != size {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
	for name, said := range map[string]string{"pipe": "a pipe", "zero": "a device", "large": "16 MiB", ".": "a folder"} {
		if _, err := ownfile.Read(path(name)); !errors.Is(err, ownfile.ErrUnfit) || !strings.Contains(err.Error(), said) || !strings.Contains(err.Error(), path(name)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ownfile.Read(path("none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
}
