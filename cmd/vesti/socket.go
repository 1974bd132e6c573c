package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"vesti.nixg.ru/ledger"
)

// A command given while a server runs is sent to it over a Unix socket in the
// data folder. The request is the command line, followed by standard input where
// the command reads it; the answer is a stream of frames, one JSON object a line,
// the last one with the exit code. Closing the connection stops the command.

const socketName = "vesti.sock"

type remoteCall struct {
	Args []string `json:"args"`
	Cwd  string   `json:"cwd"`
}

type frame struct {
	Out  string `json:"out,omitempty"`
	Err  string `json:"err,omitempty"`
	Echo *bool  `json:"echo,omitempty"` // switches the echo of the caller's terminal
	Exit *int   `json:"exit,omitempty"`
}

// socketPath is the socket of the data folder. Unix limits a socket's path to
// about 100 bytes; in a deeper folder the socket stands below the system's
// folder for temporary files, under a name made from the data folder's.
func socketPath(data string) string {
	p := filepath.Join(data, socketName)
	if len(p) < 100 {
		return p
	}
	return filepath.Join(os.TempDir(), "vesti-"+ledger.HashOf(data).String()[:16]+".sock")
}

// forward sends the call to the server of its data folder. answered is false
// when there is none.
func forward(ctx context.Context, c *call, cfg Config) (answered bool, err error) {
	path := socketPath(cfg.Data)
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		},
	}}
	defer client.CloseIdleConnections()
	head, err := json.Marshal(remoteCall{Args: c.args, Cwd: c.cwd})
	if err != nil {
		return true, fmt.Errorf("encode call: %w", err)
	}
	var body io.Reader = bytes.NewReader(append(head, '\n'))
	if c.interactive {
		body = io.MultiReader(body, c.in)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://vesti/call", body)
	if err != nil {
		return true, fmt.Errorf("make call: %w", err)
	}
	resp, err := client.Do(req)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) && op.Op == "dial" && !errors.Is(err, fs.ErrPermission) {
			return false, nil
		}
		return true, fmt.Errorf("ask the running server at %s: %w", path, err)
	}
	defer resp.Body.Close()
	return true, c.replay(resp.Body)
}

// replay prints the frames of an answer and returns its exit code as an error.
func (c *call) replay(r io.Reader) error {
	dec := json.NewDecoder(r)
	for {
		var f frame
		if err := dec.Decode(&f); err != nil {
			return fmt.Errorf("the server stopped before the command was done: %w", err)
		}
		fmt.Fprint(c.out, f.Out)
		fmt.Fprint(c.err, f.Err)
		if f.Echo != nil {
			c.setEcho(*f.Echo)
		}
		switch {
		case f.Exit == nil:
		case *f.Exit == exitDone:
			return nil
		default:
			return exitError{*f.Exit}
		}
	}
}

// listenControl makes the socket, readable by the owner alone. The store's lock
// is held by now, so a socket that is there already is a dead server's.
func listenControl(ctx context.Context, data string) (net.Listener, error) {
	path := socketPath(data)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove old socket: %w", err)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("protect socket: %w", err), l.Close())
	}
	return l, nil
}

// serveControl answers calls until ctx ends, then gives those in hand a moment.
func serveControl(ctx context.Context, l net.Listener, app *App) error {
	srv := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		Handler:           http.HandlerFunc(app.serveCall),
	}
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if srv.Shutdown(grace) != nil {
			_ = srv.Close()
		}
	})
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve control socket: %w", err)
	}
	return nil
}

func (a *App) serveCall(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	if err := control.EnableFullDuplex(); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	var rc remoteCall
	dec := json.NewDecoder(r.Body)
	if err := dec.Decode(&rc); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	frames := &frameWriter{w: w, flush: control.Flush}
	code := run(r.Context(), &call{
		args: rc.Args,
		in:   io.MultiReader(dec.Buffered(), r.Body),
		out:  frames.stream(func(s string) frame { return frame{Out: s} }),
		err:  frames.stream(func(s string) frame { return frame{Err: s} }),
		cwd:  rc.Cwd,
		app:  a, // its configuration holds, without an environment

		remoteEcho: func(on bool) { frames.write(frame{Echo: &on}) },
	})
	frames.write(frame{Exit: &code})
}

// frameWriter sends frames whole: commands write from several goroutines.
type frameWriter struct {
	mu    sync.Mutex
	w     io.Writer
	flush func() error
}

func (fw *frameWriter) write(f frame) {
	b, err := json.Marshal(f)
	if err != nil {
		return
	}
	fw.mu.Lock()
	defer fw.mu.Unlock()
	if _, err := fw.w.Write(append(b, '\n')); err == nil {
		_ = fw.flush() // a caller that went away ends the request's context
	}
}

func (fw *frameWriter) stream(wrap func(string) frame) io.Writer {
	return writerFunc(func(p []byte) (int, error) {
		fw.write(wrap(string(p)))
		return len(p), nil
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
