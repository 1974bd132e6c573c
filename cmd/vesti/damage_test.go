package main

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// longFeed is a server with one feed of n posts whose texts no compression
// makes small.
func longFeed(t *testing.T, n int) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(`<rss version="2.0"><channel><title>long</title>`)
	for i := range n {
		text := make([]byte, 2400)
		rng := rand.NewChaCha8([32]byte{byte(i)})
		_, _ = rng.Read(text)
		fmt.Fprintf(&b, `<item><title>Post %d</title><guid>post-%[1]d</guid><description>Of the linux kernel: %s</description></item>`,
			i, base64.StdEncoding.EncodeToString(text))
	}
	b.WriteString(`</channel></rss>`)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/rss+xml")
		fmt.Fprint(w, b.String())
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// longDesk has crawled 60 posts of longFeed.
func longDesk(t *testing.T) *desk {
	t.Helper()
	d := newDesk(t)
	d.sources(oneSource(longFeed(t, 60)))
	d.do(exitDone, "crawl", "--all")
	return d
}

// TestDamagedTexts: bytes that the disk has spoilt keep no command and no server
// from ending, are named, and can be given up.
func TestDamagedTexts(t *testing.T) {
	t.Parallel()
	d := longDesk(t)
	files, err := filepath.Glob(filepath.Join(d.data, "ledger", "*.vlog"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for at := len(b) / 10; at < len(b); at += len(b)/5 + 1 {
			b[at] ^= 0x55
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	broken := d.do(exitFailed, "verify")
	if !strings.Contains(broken.stdout, "a text is lost") {
		t.Fatalf("verify said\n%s%s", broken.stdout, broken.stderr)
	}
	if e := d.do(exitFailed, "backup", filepath.Join(t.TempDir(), "b")); !strings.Contains(e.stderr, "damaged") {
		t.Errorf("backup said %s", e.stderr)
	}
	s := d.serve()
	s.login()
	s.page("/")
	d.do(exitFailed, "verify")
	if code := s.stop(); code != exitDone {
		t.Errorf("the server ended with %d", code)
	}
	if e := d.do(exitDone, "verify", "--repair"); !strings.Contains(e.stdout, "(repaired)") {
		t.Errorf("verify --repair said\n%s", e.stdout)
	}
	d.do(exitDone, "compact")
	d.do(exitDone, "verify")
	d.do(exitDone, "backup", filepath.Join(t.TempDir(), "b"))
}

// TestDamagedTables: a store whose tree is damaged is refused, and is left as it
// is for whoever can mend it.
func TestDamagedTables(t *testing.T) {
	t.Parallel()
	d := longDesk(t)
	files, err := filepath.Glob(filepath.Join(d.data, "ledger", "*.sst"))
	if err != nil || len(files) == 0 {
		t.Fatal("no table", err)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	spoilt := append([]byte(nil), whole...)
	spoilt[len(spoilt)/2] ^= 0x55
	if err := os.WriteFile(files[0], spoilt, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"verify", "status", "serve"} {
		if e := d.do(exitFailed, command); !strings.Contains(e.stderr, "restore it from a backup") || !strings.Contains(e.stderr, files[0]) {
			t.Errorf("%s said %s", command, e.stderr)
		}
	}
	if err := os.WriteFile(files[0], whole, 0o600); err != nil {
		t.Fatal(err)
	}
	d.do(exitDone, "verify")
}
