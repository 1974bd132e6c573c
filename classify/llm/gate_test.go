package llm_test

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// newGate passes connections on to target after it has refused some. A refused
// one is reset before it can ask anything.
func newGate(t *testing.T, target string, refusals int, refused *atomic.Int32) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	wg.Go(func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if n < refusals {
				refused.Add(1)
				if tcp, ok := c.(*net.TCPConn); ok {
					_ = tcp.SetLinger(0)
				}
				c.Close()
				continue
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			wg.Go(func() { pipe(c, target) })
		}
	})
	return l.Addr().String()
}

func pipe(c net.Conn, target string) {
	up, err := net.Dial("tcp", target)
	if err != nil {
		c.Close()
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = io.Copy(up, c)
		up.Close()
	})
	_, _ = io.Copy(c, up)
	c.Close()
	up.Close()
	wg.Wait()
}
