package fetch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/crawltest"
	"vesti.nixg.ru/crawl/fetch"
	"vesti.nixg.ru/ledger"
)

// raw takes the connection over and lets write say whatever it likes. It ends
// when the client has had enough.
func raw(write func(net.Conn)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		write(conn)
	}
}

// forever writes s until the client hangs up.
func forever(conn net.Conn, head, s string) {
	piece := []byte(strings.Repeat(s, 1+4096/len(s)))
	_, err := conn.Write([]byte(head))
	for err == nil {
		_, err = conn.Write(piece)
	}
}

// Servers that never come to an end of their headers, or of answers before the
// answer, cost no more than the limits say, and each failure has its type.
func TestAnswersWithoutEnd(t *testing.T) {
	s := &site{pages: map[string]http.HandlerFunc{
		"http://headers.example/": raw(func(c net.Conn) { forever(c, "HTTP/1.1 200 OK\r\n", "X-More: 1\r\n") }),
		"http://header.example/":  raw(func(c net.Conn) { forever(c, "HTTP/1.1 200 OK\r\nX-Long: ", "x") }),
		"http://hints.example/":   raw(func(c net.Conn) { forever(c, "", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n") }),
		"http://status.example/":  raw(func(c net.Conn) { forever(c, "HTTP/1.1 200 ", "OK") }),
		"http://chunk.example/": raw(func(c net.Conn) {
			forever(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1;x=y\r\na\r\n")
		}),
		"http://trailer.example/": raw(func(c net.Conn) {
			forever(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n", "X-More: 1\r\n")
		}),
		"http://noise.example/": raw(func(c net.Conn) { forever(c, "", "\x00\xff") }),
	}}
	w := crawltest.New(t, s, crawltest.HTTP1)
	c := fetch.New(w.Options(fetch.Options{HostGap: -1, Timeout: 20 * time.Second, MaxFeedBytes: 1 << 16}))
	defer c.Close()
	for host, want := range map[string]ledger.Cause{
		"headers": ledger.CauseConnect, "header": ledger.CauseConnect, "hints": ledger.CauseConnect, "status": ledger.CauseConnect,
		"chunk": ledger.CauseTooLarge, "trailer": ledger.CauseConnect, "noise": ledger.CauseConnect,
	} {
		before := w.BytesRead()
		started := time.Now()
		if f := failure(t, c, "http://"+host+".example/"); f.Cause != want {
			t.Errorf("%s: got %s, %q; want %s", host, f.Cause, f.Message, want)
		}
		if got, took := (w.BytesRead()-before)>>10, time.Since(started); got > 2048 || took > 15*time.Second {
			t.Errorf("%s: %d KiB were read in %v", host, got, took)
		}
	}
}

// A body that is small and unpacks to nothing for a long time, over several
// layers, is refused by what the layers are worth.
func TestPackedManyTimes(t *testing.T) {
	empty := pack(t, "gzip", "")
	nothing := strings.Repeat(empty, (64<<20)/len(empty)) // unpacks to no byte
	twice := pack(t, "gzip", nothing)
	thrice := pack(t, "gzip", pack(t, "gzip", strings.Repeat(nothing, 4)))
	c, _, _ := newClient(t, fetch.Options{MaxFeedBytes: 1 << 20}, map[string]http.HandlerFunc{
		"http://once.example/": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write([]byte(nothing))
		},
		"http://twice.example/":  say(twice, "Content-Encoding", "gzip, gzip"),
		"http://thrice.example/": say(thrice, "Content-Encoding", "gzip, gzip, gzip"),
	})
	for _, host := range []string{"once", "twice", "thrice"} {
		if f := failure(t, c, "http://"+host+".example/"); f.Cause != ledger.CauseTooLarge {
			t.Errorf("%s: got %s, %q", host, f.Cause, f.Message)
		}
	}
}

// A validator that no server takes back is none: with it every second request
// would fail.
func TestValidatorWithoutEnd(t *testing.T) {
	c, _, _ := newClient(t, fetch.Options{}, map[string]http.HandlerFunc{
		"http://a.example/": say("x", "ETag", strings.Repeat("x", 100<<10), "Last-Modified", strings.Repeat("y", 100<<10)),
	})
	resp, err := c.Get(t.Context(), fetch.Request{URL: "http://a.example/"})
	if err != nil {
		t.Fatal(err)
	}
	if v := resp.Validators(ledger.Validators{ETag: "old"}); v.ETag != "" || v.LastModified != "" {
		t.Errorf("validators of %d and %d bytes were kept", len(v.ETag), len(v.LastModified))
	}
}

// A host written so that one program takes it for a name and another for an
// address is refused before anybody resolves it, behind a proxy too.
func TestAddressesInOddForms(t *testing.T) {
	proxy, err := url.Parse("http://proxy.example:3128")
	if err != nil {
		t.Fatal(err)
	}
	for name, opts := range map[string]fetch.Options{"direct": {}, "proxy": {Proxy: proxy}} {
		t.Run(name, func(t *testing.T) {
			c, s, w := newClient(t, opts, nil)
			for _, host := range []string{
				"2130706433", "0x7f000001", "0X7F.1", "017700000001", "127.1", "127.0.1", "0177.0.0.1", "0x7f.0.0.1", "127.0.0.1.", "127.0.0.01",
				"10.0x1", "a.example.1", "a.0x", "１２７.0.0.1", "127。0。0。1", "①②⑦.0.0.1", "[::ffff:127.0.0.1]", "[::127.0.0.1]", "[fe80::1%25eth0]",
				"user@127.0.0.1", "a.example@[::1]", "user:a.example@0x7f.1",
			} {
				_, err := c.Get(t.Context(), fetch.Request{URL: "http://" + host + "/"})
				if f, ok := errors.AsType[*crawl.Error](err); !ok || f.Cause != ledger.CauseBlocked {
					t.Errorf("%s: got %v, want blocked", host, err)
				}
			}
			if len(w.Dialed()) > 0 || len(s.asked()) > 0 {
				t.Errorf("dialled %v", w.Dialed())
			}
		})
	}
}

// A name with hundreds of addresses does not make the crawler knock at each.
func TestOnlySomeAddressesAreTried(t *testing.T) {
	_, _, w := newClient(t, fetch.Options{}, nil)
	var many []netip.Addr
	for i := range 500 {
		many = append(many, netip.AddrFrom4([4]byte{9, 9, byte(i >> 8), byte(i)}))
	}
	w.SetDNS("many.example", many)
	opts := w.Options(fetch.Options{HostGap: -1})
	var mu sync.Mutex
	tried := 0
	opts.Dial = func(context.Context, string, string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		tried++
		return nil, syscall.ECONNREFUSED
	}
	c := fetch.New(opts)
	defer c.Close()
	if f := failure(t, c, "http://many.example/"); f.Cause != ledger.CauseConnect {
		t.Errorf("got %s, %q", f.Cause, f.Message)
	}
	if tried == 0 || tried > 10 {
		t.Errorf("%d addresses were tried", tried)
	}
}

// Redirects that set cookies, name an endless address or another scheme lead
// nowhere, and no cookie goes out.
func TestHostileRedirects(t *testing.T) {
	hops := 0
	c, s, w := newClient(t, fetch.Options{}, map[string]http.HandlerFunc{
		"http://cookies.example/": func(w http.ResponseWriter, r *http.Request) {
			hops++
			http.SetCookie(w, &http.Cookie{Name: fmt.Sprint("c", hops), Value: strings.Repeat("x", 1000)})
			w.Header().Set("Location", fmt.Sprintf("/?%d", hops))
			w.WriteHeader(http.StatusFound)
		},
		"http://long.example/":   redirect(302, "http://a.example/"+strings.Repeat("x", 100<<10)),
		"http://file.example/":   redirect(302, "file:///etc/passwd"),
		"http://unix.example/":   redirect(301, "unix:///run/docker.sock"),
		"http://data.example/":   redirect(302, "data:text/xml,<rss/>"),
		"http://gopher.example/": redirect(302, "gopher://127.0.0.1:6379/_FLUSHALL"),
		"http://user.example/":   redirect(302, "http://a.example@127.0.0.1/"),
		"http://odd.example/":    redirect(308, "http://0x7f.1:6379/"),
		"http://slash.example/":  redirect(302, "//127.0.0.1/"),
		"http://back.example/":   redirect(302, "http:\\\\127.0.0.1\\"),
	})
	if f := failure(t, c, "http://cookies.example/"); f.Cause != ledger.CauseRedirect || hops > 11 {
		t.Errorf("cookies: %d hops, %s, %q", hops, f.Cause, f.Message)
	}
	for _, r := range s.asked() {
		if r.Header.Get("Cookie") != "" {
			t.Errorf("cookie %q", r.Header.Get("Cookie"))
		}
	}
	before := len(w.Dialed())
	hosts := []string{"long", "file", "unix", "data", "gopher", "user", "odd", "slash", "back"}
	for _, host := range hosts {
		if f := failure(t, c, "http://"+host+".example/"); f.Cause != ledger.CauseBlocked && f.Cause != ledger.CauseRedirect {
			t.Errorf("%s: got %s, %q", host, f.Cause, f.Message)
		}
	}
	if n := len(w.Dialed()) - before; n != len(hosts) {
		t.Errorf("%d connections for %d redirects", n, len(hosts))
	}
}

// A server that sends a byte now and then is left when the exchange's time is
// over, in its headers and in its body.
func TestDripsAreTimedOut(t *testing.T) {
	drip := func(head string) http.HandlerFunc {
		return raw(func(c net.Conn) {
			for _, err := c.Write([]byte(head)); err == nil; _, err = c.Write([]byte("x")) {
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	s := &site{pages: map[string]http.HandlerFunc{
		"http://status.example/":  drip("HTTP/1.1 200 "),
		"http://headers.example/": drip("HTTP/1.1 200 OK\r\nX-Slow: "),
		"http://body.example/":    drip("HTTP/1.1 200 OK\r\n\r\n"),
		"http://gzip.example/":    drip("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + string(bytes.TrimRight([]byte(pack(t, "gzip", document))[:20], "\x00"))),
	}}
	w := crawltest.New(t, s, crawltest.HTTP1)
	c := fetch.New(w.Options(fetch.Options{HostGap: -1, Timeout: 400 * time.Millisecond}))
	defer c.Close()
	for _, host := range []string{"status", "headers", "body"} {
		if f := failure(t, c, "http://"+host+".example/"); f.Cause != ledger.CauseTimeout {
			t.Errorf("%s: got %s, %q", host, f.Cause, f.Message)
		}
	}
	failure(t, c, "http://gzip.example/") // broken or timed out, but it ends
}
