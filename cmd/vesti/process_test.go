package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The tests run vesti as its users do: as a process of its own. The test binary
// is that process when asMain is set.
const asMain = "TEST_AS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// desk is a data folder and the way to run vesti on it.
type desk struct {
	t    *testing.T
	data string
	env  []string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	return &desk{t: t, data: filepath.Join(t.TempDir(), "data"), env: []string{"VESTI_LEDGER_FREE_SPACE=64MiB", "VESTI_TIME_ZONE=" + afternoon()}}
}

// afternoon is the zone in which it is early afternoon now, so that what a test
// does falls on one day.
func afternoon() string {
	return fmt.Sprintf("Etc/GMT%+d", time.Now().UTC().Hour()-12)
}

// sources writes the registry.
func (d *desk) sources(yaml string) {
	d.t.Helper()
	d.write("sources.yaml", yaml)
}

func (d *desk) write(name, content string) {
	d.t.Helper()
	if err := os.MkdirAll(d.data, 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.data, name), []byte(content), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) command(args ...string) *exec.Cmd {
	exe, err := os.Executable()
	if err != nil {
		d.t.Fatal(err)
	}
	cmd := exec.Command(exe, append([]string{"--data", d.data}, args...)...)
	own := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "VESTI_") })
	cmd.Env = slices.Concat(own, []string{asMain + "=1"}, d.env)
	return cmd
}

type ended struct {
	stdout, stderr string
	code           int
}

// try runs vesti to its end.
func (d *desk) try(args ...string) ended {
	d.t.Helper()
	var out, errs bytes.Buffer
	cmd := d.command(args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		d.t.Fatal(err)
	}
	return ended{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// do runs vesti and wants the exit code.
func (d *desk) do(code int, args ...string) ended {
	d.t.Helper()
	e := d.try(args...)
	if e.code != code {
		d.t.Fatalf("vesti %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), e.code, code, e.stdout, e.stderr)
	}
	return e
}

// json runs vesti with --json and decodes the last line of its output.
func (d *desk) json(code int, v any, args ...string) {
	d.t.Helper()
	e := d.do(code, append([]string{"--json"}, args...)...)
	lines := strings.Split(strings.TrimSpace(e.stdout), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), v); err != nil {
		d.t.Fatalf("vesti %s: last line is no JSON: %v\n%s", strings.Join(args, " "), err, e.stdout)
	}
}

// server is a running "vesti serve".
type server struct {
	t        *testing.T
	cmd      *exec.Cmd
	url      string
	password string
	client   *http.Client
	waited   chan error

	mu  sync.Mutex
	log bytes.Buffer
}

var atLine = regexp.MustCompile(`is at (http://\S+)`)

// serve starts the server and waits until it says where it is. It is stopped at
// the test's end.
func (d *desk) serve(args ...string) *server {
	d.t.Helper()
	cmd := d.command(append([]string{"serve", "--set", "web.listen=127.0.0.1:0"}, args...)...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	s := &server{t: d.t, cmd: cmd, waited: make(chan error, 1)}
	cmd.Stderr = writerFunc(func(p []byte) (int, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.log.Write(p)
	})
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		d.t.Fatal(err)
	}
	s.client = &http.Client{Jar: jar, Timeout: 30 * time.Second}
	ready := make(chan struct{})
	go func() {
		said := false
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			if m := atLine.FindStringSubmatch(lines.Text()); m != nil {
				s.url = m[1]
			}
			if _, p, ok := strings.Cut(lines.Text(), "this once: "); ok {
				s.password = p
			}
			if s.url != "" && !said && strings.HasPrefix(lines.Text(), "Ready") {
				said = true
				close(ready)
			}
		}
		s.waited <- cmd.Wait()
	}()
	d.t.Cleanup(func() { s.stop() })
	select {
	case <-ready:
	case <-time.After(60 * time.Second):
		d.t.Fatalf("the server did not start\n%s", s.logged())
	case err := <-s.waited:
		s.waited <- err
		d.t.Fatalf("the server ended: %v\n%s", err, s.logged())
	}
	return s
}

func (s *server) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// wantLogged waits until the log has each of the texts.
func (s *server) wantLogged(texts ...string) {
	s.t.Helper()
	eventually(s.t, "the log tells of it", func() error {
		for _, text := range texts {
			if !strings.Contains(s.logged(), text) {
				return fmt.Errorf("no %q in\n%s", text, s.logged())
			}
		}
		return nil
	})
}

func (s *server) hangup() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		s.t.Fatal(err)
	}
}

// stop sends SIGTERM and returns the exit code.
func (s *server) stop() int {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	return s.wait()
}

// kill is kill -9.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	s.wait()
}

func (s *server) wait() int {
	s.t.Helper()
	select {
	case err := <-s.waited:
		s.waited <- err
	case <-time.After(60 * time.Second):
		_ = s.cmd.Process.Kill()
		s.t.Errorf("the server did not stop\n%s", s.logged())
	}
	return s.cmd.ProcessState.ExitCode()
}

// login is what a person does first.
func (s *server) login() {
	s.t.Helper()
	resp, err := s.client.PostForm(s.url+"/login", url.Values{"password": {s.password}})
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || strings.HasSuffix(resp.Request.URL.Path, "/login") {
		s.t.Fatalf("login: %s at %s", resp.Status, resp.Request.URL)
	}
}

func (s *server) get(path string) (int, string) {
	s.t.Helper()
	resp, err := s.client.Get(s.url + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func (s *server) page(path string) string {
	s.t.Helper()
	code, body := s.get(path)
	if code != http.StatusOK {
		s.t.Fatalf("GET %s: %d\n%s", path, code, body)
	}
	return body
}

// metric returns the value of a series, written as in the exposition, or fails.
func (s *server) metric(series string) float64 {
	s.t.Helper()
	for line := range strings.Lines(s.page("/metrics")) {
		if rest, ok := strings.CutPrefix(line, series+" "); ok {
			var v float64
			if _, err := fmt.Sscan(rest, &v); err != nil {
				s.t.Fatal(err)
			}
			return v
		}
	}
	s.t.Fatalf("no series %s in /metrics", series)
	return 0
}

// eventually wants check to hold within a time that is long for a busy machine.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		case <-tick.C:
		}
	}
}
