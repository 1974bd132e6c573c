package crawltest

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
)

// listener is a socket on loopback, or a queue of pipes.
type listener struct {
	net.Listener
	pipes chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (w *World) listen(t testing.TB) *listener {
	t.Helper()
	if w.inMemory {
		return &listener{pipes: make(chan net.Conn), done: make(chan struct{})}
	}
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return &listener{Listener: l}
}

func (l *listener) dial(ctx context.Context) (net.Conn, error) {
	if l.Listener != nil {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", l.Listener.Addr().String())
	}
	client, server := net.Pipe()
	select {
	case l.pipes <- newQueued(server):
		return client, nil
	case <-l.done:
		return nil, errors.New("the world has ended")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	if l.Listener != nil {
		return l.Listener.Accept()
	}
	select {
	case c := <-l.pipes:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	if l.Listener != nil {
		return l.Listener.Close()
	}
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr {
	if l.Listener != nil {
		return l.Listener.Addr()
	}
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}
}

// queued is a pipe's end whose writes return before the other end reads, as a
// socket's do: two ends that write at once, as in a TLS handshake that fails,
// would wait for each other for ever.
type queued struct {
	net.Conn
	writes chan []byte
	broken chan struct{} // closed when the other end is gone

	mu     sync.Mutex
	closed bool
}

func newQueued(c net.Conn) *queued {
	q := &queued{Conn: c, writes: make(chan []byte, 16), broken: make(chan struct{})}
	go q.pump()
	return q
}

func (q *queued) pump() {
	defer func() { _ = q.Conn.Close() }()
	defer close(q.broken)
	for p := range q.writes {
		if _, err := q.Conn.Write(p); err != nil {
			return
		}
	}
}

// Write implements net.Conn.
func (q *queued) Write(p []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return 0, net.ErrClosed
	}
	select {
	case <-q.broken:
		return 0, net.ErrClosed
	case q.writes <- slices.Clone(p):
		return len(p), nil
	}
}

// Close implements net.Conn: what was written is still delivered.
func (q *queued) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.closed = true
		close(q.writes)
	}
	return nil
}
