//go:build !notelegram

package mtproto_test

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"

	"vesti.nixg.ru/crawl/telegram/mtproto"
)

func TestProxies(t *testing.T) {
	for scheme, accept := range map[string]func(net.Conn) (target string){"http": acceptConnect, "socks5": acceptSOCKS} {
		t.Run(scheme, func(t *testing.T) {
			addr, tunnels := startProxy(t, accept)
			w := newWorld(t, func(o *mtproto.Options) {
				o.Proxy = &url.URL{Scheme: scheme, Host: addr, User: url.UserPassword("name", "secret")}
			})
			w.server.add(portChannel(1, 3))
			w.mustCrawl()
			w.wantIDs(span(1, 3))
			if tunnels.Load() == 0 {
				t.Error("the proxy was passed by")
			}
		})
	}
	w := bareWorld(t, newServer(t))
	opts := w.options()
	opts.Proxy = &url.URL{Scheme: "ftp", Host: "127.0.0.1:1"}
	if _, err := mtproto.New(opts); err == nil {
		t.Error("a proxy of an unknown kind was taken")
	}
}

// startProxy runs a proxy that ends with the test.
func startProxy(t *testing.T, accept func(net.Conn) string) (addr string, tunnels *atomic.Int32) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	tunnels = &atomic.Int32{}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				target := accept(c)
				if target == "" {
					return
				}
				up, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", target)
				if err != nil {
					return
				}
				defer up.Close()
				tunnels.Add(1)
				go io.Copy(up, c)
				io.Copy(c, up)
			}()
		}
	}()
	return l.Addr().String(), tunnels
}

func acceptConnect(c net.Conn) string {
	r, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil || r.Method != http.MethodConnect || r.Header.Get("Proxy-Authorization") != "Basic bmFtZTpzZWNyZXQ=" {
		return ""
	}
	io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
	return r.Host
}

// acceptSOCKS is the server's side of RFC 1928 and RFC 1929, for IPv4.
func acceptSOCKS(c net.Conn) string {
	head := make([]byte, 2)
	if _, err := io.ReadFull(c, head); err != nil {
		return ""
	}
	io.ReadFull(c, make([]byte, head[1]))
	c.Write([]byte{5, 2}) // name and password
	var given [2]string
	io.ReadFull(c, head[:1])
	for i := range given {
		io.ReadFull(c, head[:1])
		b := make([]byte, head[0])
		io.ReadFull(c, b)
		given[i] = string(b)
	}
	if given != [2]string{"name", "secret"} {
		return ""
	}
	c.Write([]byte{1, 0})
	ask := make([]byte, 10)
	if _, err := io.ReadFull(c, ask); err != nil || ask[1] != 1 || ask[3] != 1 {
		return ""
	}
	c.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	addr := net.TCPAddr{IP: net.IP(ask[4:8]), Port: int(binary.BigEndian.Uint16(ask[8:]))}
	return addr.String()
}
