package fetch_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"vesti.nixg.ru/crawl/fetch"
	"vesti.nixg.ru/ledger"
)

const document = `<?xml version="1.0"?><rss><channel><title>Some feed, some feed, some feed</title></channel></rss>`

func pack(t *testing.T, coding, s string) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "br":
		w = brotli.NewWriter(&b)
	case "zlib":
		w = zlib.NewWriter(&b)
	case "flate":
		w, err = flate.NewWriter(&b, 5)
	case "zstd":
		w, err = zstd.NewWriter(&b)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(w, s)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestCodings(t *testing.T) {
	gz := pack(t, "gzip", document)
	for name, c := range map[string]struct{ label, body string }{
		"gzip":                         {"gzip", gz},
		"gzip in capitals":             {"GZIP", gz},
		"x-gzip":                       {"x-gzip", gz},
		"gzip without a label":         {"", gz},
		"gzip labelled br":             {"br", gz},
		"gzip in two members":          {"gzip", pack(t, "gzip", document[:20]) + pack(t, "gzip", document[20:])},
		"gzip with garbage behind":     {"gzip", gz + "\x00\x00\r\n<!-- cached -->"},
		"gzip twice":                   {"gzip, gzip", pack(t, "gzip", gz)},
		"deflate as zlib":              {"deflate", pack(t, "zlib", document)},
		"deflate bare":                 {"deflate", pack(t, "flate", document)},
		"brotli":                       {"br", pack(t, "br", document)},
		"zstd":                         {"zstd", pack(t, "zstd", document)},
		"plain labelled gzip":          {"gzip", document},
		"plain labelled br":            {"br", document},
		"plain labelled deflate":       {"deflate", " \n" + document},
		"plain labelled with charset":  {"utf-8", document},
		"plain labelled with nonsense": {"none-of-your-business", document},
		"identity":                     {"identity", document},
	} {
		t.Run(name, func(t *testing.T) {
			client, _, _ := newClient(t, fetch.Options{}, map[string]http.HandlerFunc{
				"https://a.example/": say(c.body, "Content-Encoding", c.label),
			})
			resp, err := client.Get(t.Context(), fetch.Request{URL: "https://a.example/"})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimSpace(string(resp.Body)); got != document {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestBrokenCodingsFail(t *testing.T) {
	gz, br := pack(t, "gzip", document), pack(t, "br", document)
	for name, c := range map[string]struct{ label, body, says string }{
		"gzip cut":            {"gzip", gz[:len(gz)/2], "EOF"},
		"gzip damaged":        {"gzip", gz[:30] + "!!!!" + gz[34:], "gzip"},
		"brotli cut":          {"br", br[:len(br)/2], "EOF"},
		"unknown coding":      {"sdch", "\x01\x02\x03", "sdch"},
		"codings without end": {"gzip, gzip, gzip, gzip", gz, "codings"},
	} {
		t.Run(name, func(t *testing.T) {
			client, _, _ := newClient(t, fetch.Options{}, map[string]http.HandlerFunc{
				"https://a.example/": say(c.body, "Content-Encoding", c.label),
			})
			if f := failure(t, client, "https://a.example/"); !strings.Contains(f.Message, c.says) || f.HTTPStatus != 200 {
				t.Errorf("got %s, status %d, %q; want %q", f.Cause, f.HTTPStatus, f.Message, c.says)
			}
		})
	}
}

// endless writes until the reader has enough.
func endless(w http.ResponseWriter, r *http.Request) {
	chunk := bytes.Repeat([]byte(" "), 32<<10)
	for r.Context().Err() == nil {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

func TestSizeLimit(t *testing.T) {
	bomb := strings.Repeat(pack(t, "gzip", strings.Repeat(" ", 1<<20)), 300)
	c, _, _ := newClient(t, fetch.Options{MaxFeedBytes: 1 << 20, MaxPageBytes: 1 << 16}, map[string]http.HandlerFunc{
		"http://endless.example/":  endless,
		"http://bomb.example/":     say(bomb, "Content-Encoding", "gzip"),
		"http://declared.example/": say(strings.Repeat("x", 2<<20)),
		"http://exact.example/":    say(strings.Repeat("x", 1<<20)),
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, u := range []string{"http://endless.example/", "http://bomb.example/", "http://declared.example/"} {
		if f := failure(t, c, u); f.Cause != ledger.CauseTooLarge || !strings.Contains(f.Message, "limit of 1 MiB") {
			t.Errorf("%s: got %s, %q", u, f.Cause, f.Message)
		}
	}
	runtime.ReadMemStats(&after)
	if grown := (after.TotalAlloc - before.TotalAlloc) >> 20; grown > 40 {
		t.Errorf("%d MiB allocated for three refused bodies", grown)
	}
	if resp, err := c.Get(t.Context(), fetch.Request{URL: "http://exact.example/"}); err != nil || resp.Bytes != 1<<20 {
		t.Errorf("a body of just the limit: %v", err)
	}
	resp, err := c.Get(t.Context(), fetch.Request{URL: "http://endless.example/", ForPage: true})
	if err != nil || !resp.Truncated || resp.Bytes != 1<<16 {
		t.Errorf("a page over the limit: got %+v, %v; want it cut", resp, err)
	}
}
