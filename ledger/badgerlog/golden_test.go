package badgerlog_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/ledgertest"
)

var update = flag.Bool("update", false, "write the golden store of the present format")

const goldenStore = "testdata/store-v1.tar.zst"

// TestGoldenStore opens a store that version 1 wrote, as every later version
// must, and works on with it.
func TestGoldenStore(t *testing.T) {
	t.Parallel()
	c := newClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	if *update {
		dir := t.TempDir()
		l := ledgertest.Open(t, ledgertest.Dir(dir), ledgertest.Now(c.now))
		for round := range 3 {
			busy(t, l, c, round)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		packFolder(t, dir, goldenStore)
	}
	dir := t.TempDir()
	unpackFolder(t, goldenStore, dir)
	c.set(time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC))
	l := ledgertest.Open(t, ledgertest.Dir(dir), ledgertest.Now(c.now))
	report := ledgertest.Check(t, l)
	if report.Posts != 90 || report.Classified != 54 || report.Parked != 3 || report.Unknown != 0 || report.Sources != 3 {
		t.Errorf("got %+v", report)
	}
	p, err := l.Post(t.Context(), 1)
	if err != nil || p.ID != ledger.IdentifyText(ledgertest.Item("s0", "1").Text, "") || p.Revisions != 1 {
		t.Errorf("got %+v, %v", p, err)
	}
	busy(t, l, c, 3)
}

func packFolder(t *testing.T, dir, to string) {
	t.Helper()
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	if err := errors.Join(w.AddFS(os.DirFS(dir)), w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func unpackFolder(t *testing.T, from, dir string) {
	t.Helper()
	f, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(h.Name)), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
