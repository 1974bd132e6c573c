package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// stopTimeout is what a process gets between being asked to end and being killed.
const stopTimeout = 20 * time.Second

// process is a program that the bench started and ends. It is in a process
// group of its own, so that a Ctrl-C at the terminal reaches it through the bench alone.
type process struct {
	cmd    *exec.Cmd
	ask    syscall.Signal // what asks it to end
	errs   tail
	exited chan struct{} // closed when it has ended and result is set
	result error
	once   sync.Once
}

func newProcess(ctx context.Context, name string, args ...string) *process {
	// The end of the context would kill it: stop asks it first, by the signal it knows.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), name, args...) //nolint:gosec // a program that was found by name
	p := &process{cmd: cmd, ask: syscall.SIGTERM, exited: make(chan struct{})}
	p.cmd.SysProcAttr = ownGroup()
	p.cmd.Stderr = &p.errs
	return p
}

// as makes the process run under an account, for servers that refuse root.
func (p *process) as(a *account) {
	if a != nil {
		p.cmd.SysProcAttr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
}

func (p *process) start() error {
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.cmd.Path, err)
	}
	go func() {
		p.result = p.cmd.Wait()
		close(p.exited)
	}()
	return nil
}

func (p *process) signal() {
	p.once.Do(func() { _ = p.cmd.Process.Signal(p.ask) }) // it may have ended by itself
}

// stop ends the process and returns when it has ended.
func (p *process) stop() error {
	p.signal()
	select {
	case <-p.exited:
		return nil
	case <-time.After(stopTimeout):
	}
	err := p.cmd.Process.Kill()
	<-p.exited
	return errors.Join(fmt.Errorf("%s did not end within %s and was killed", p.cmd.Path, stopTimeout), err)
}

// wait returns when the process has ended by itself, or has been stopped
// because the context ended.
func (p *process) wait(ctx context.Context) error {
	select {
	case <-p.exited:
		if p.result != nil {
			return errors.Join(p.result, p.complaint())
		}
		return nil
	case <-ctx.Done():
		return errors.Join(ctx.Err(), p.stop())
	}
}

// waitReady returns when a server that was started answers.
func (p *process) waitReady(ctx context.Context, ping func(context.Context) error) error {
	const patience = 30 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := ping(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.exited:
			return errors.Join(fmt.Errorf("%s ended: %w", p.cmd.Path, p.result), p.complaint())
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%s does not answer: %w", p.cmd.Path, err), p.complaint())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// complaint is the end of what the process wrote to standard error; nil for nothing.
func (p *process) complaint() error {
	if s := p.errs.String(); s != "" {
		return errors.New(filepath.Base(p.cmd.Path) + " says: " + s)
	}
	return nil
}

// tail keeps the last bytes written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	const keep = 4096
	t.buf = append(t.buf, b...)
	if n := len(t.buf) - keep; n > 0 {
		t.buf = slices.Delete(t.buf, 0, n)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.buf))
}

// account is the user that a server runs as.
type account struct{ uid, gid uint32 }

// unprivileged returns the first account that exists, or nil where the bench
// itself does not run as root.
func unprivileged(names ...string) (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range names {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("account %s: %w", name, err)
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("account %s: %w", name, err)
		}
		return &account{uid: uint32(uid), gid: uint32(gid)}, nil
	}
	return nil, fmt.Errorf("no unprivileged account among %v to run a server as", names)
}

// own gives the folder to the account; a nil account changes nothing.
func (a *account) own(dir string) error {
	if a == nil {
		return nil
	}
	return os.Chown(dir, int(a.uid), int(a.gid))
}

// freePort returns a port of the loopback that was free a moment ago.
func freePort(ctx context.Context) (int, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a port: %w", err)
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// findProgram looks for a program in PATH and then where the patterns lead,
// the last in order, as distributions keep versions side by side.
func findProgram(name string, patterns ...string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		// Debian's wrappers choose a cluster; the version's own program lies behind links.
		if target, err := filepath.EvalSymlinks(path); err == nil && filepath.Base(target) == name {
			return target, nil
		}
		return path, nil
	}
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err == nil && len(found) > 0 {
			return slices.Max(found), nil
		}
	}
	return "", fmt.Errorf("%s is not installed", name)
}
