package llm_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"vesti.nixg.ru/classify"
	"vesti.nixg.ru/classify/keyword"
	"vesti.nixg.ru/classify/llm"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
	"vesti.nixg.ru/ledger/ledgertest"
)

// server is a real Ollama, in folders of the test's own.
type server struct {
	t      *testing.T
	binary string
	dir    string
	host   string
	cmd    *exec.Cmd
}

func newServer(t *testing.T) *server {
	t.Helper()
	binary := os.Getenv("VESTI_OLLAMA")
	if binary == "" {
		t.Skip("needs a real Ollama: make test-ollama builds one and names it in VESTI_OLLAMA")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := &server{t: t, binary: binary, dir: t.TempDir(), host: l.Addr().String()}
	t.Cleanup(s.kill)
	return s
}

func (s *server) url() string { return "http://" + s.host }

func (s *server) env() []string {
	return append(os.Environ(), "HOME="+s.dir, "OLLAMA_HOST="+s.host, "OLLAMA_MODELS="+filepath.Join(s.dir, "models"), "OLLAMA_NO_CLOUD=1")
}

// start starts the server and waits until it answers.
func (s *server) start() {
	s.t.Helper()
	log, err := os.OpenFile(filepath.Join(s.dir, "server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	s.cmd = exec.Command(s.binary, "serve")
	s.cmd.Env, s.cmd.Stdout, s.cmd.Stderr = s.env(), log, log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its runners die with it
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.wait("the server to answer", time.Minute, func() bool {
		resp, err := http.Get(s.url() + "/api/version")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// kill ends the server and its runners at once.
func (s *server) kill() {
	if s.cmd == nil {
		return
	}
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	_ = s.cmd.Wait()
	s.cmd = nil
}

// run runs a command of Ollama's.
func (s *server) run(args ...string) {
	s.t.Helper()
	cmd := exec.Command(s.binary, args...)
	cmd.Env = s.env()
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("ollama %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// create makes the tiny model, under its name.
func (s *server) create() {
	s.t.Helper()
	model, file := filepath.Join(s.dir, "tiny.gguf"), filepath.Join(s.dir, "Modelfile")
	for path, data := range map[string][]byte{model: tinyModel(1), file: []byte("FROM " + model + "\n")} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	s.run("create", "tiny", "-f", file)
}

func (s *server) wait(what string, limit time.Duration, f func() bool) {
	s.t.Helper()
	deadline := time.After(limit)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !f() {
		select {
		case <-deadline:
			log, _ := os.ReadFile(filepath.Join(s.dir, "server.log"))
			s.t.Fatalf("waited %v for %s; the end of the server's log:\n%s", limit, what, log[max(0, len(log)-3000):])
		case <-tick.C:
		}
	}
}

// tally is what became of the posts so far.
type tally struct {
	classified, provisional, parked int
	failed                          map[ledger.Cause]int
}

func (t tally) over() int { return t.classified + t.parked }

func tallyOf(t *testing.T, l *badgerlog.Log) tally {
	t.Helper()
	n := tally{failed: make(map[ledger.Cause]int)}
	for after := ledger.Seq(0); ; {
		events, err := l.Read(t.Context(), after, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if len(events) == 0 {
			return n
		}
		for _, e := range events {
			after = e.Seq
			switch p := e.Payload.(type) {
			case ledger.PostClassified:
				if p.Provisional {
					n.provisional++
				} else {
					n.classified++
				}
			case ledger.PostFailed:
				n.failed[p.Cause]++
				if p.Parked {
					n.parked++
				}
			}
		}
	}
}

// TestOllama runs the whole way against a real server with a model that answers
// at random: 200 posts, the server killed and restarted in the middle, the model
// removed and made again. Every post ends with a valid decision or a typed
// failure of the answer, and no attempt is burnt for a server that was away.
func TestOllama(t *testing.T) {
	s := newServer(t)
	s.start()
	s.create()
	l := ledgertest.Open(t, ledgertest.Retry(2, time.Millisecond, time.Millisecond))
	posts := ollamaPosts()
	fillPosts(t, l, posts)
	model, err := llm.New(llm.Options{
		URL: s.url(), Model: "tiny", Directions: ledger.DefaultDirections(), Context: 4096, Reply: 1000, MaxSummary: 40, Threads: 1, Temperature: 1,
		Timeout: 2 * time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	k, err := keyword.Open("", ledger.DefaultDirections())
	if err != nil {
		t.Fatal(err)
	}
	breaker := classify.NewBreaker(classify.BreakerOptions{Probe: model.Probe, Pause: 100 * time.Millisecond, Limit: time.Second})
	p, err := classify.New(classify.Options{
		Queue: l, Workers: 2, LLMWorkers: 1, Breaker: breaker, Grace: 10 * time.Second,
		Decider: classify.NewCascade(classify.CascadeOptions{Keyword: k, LLM: model, KeywordSettles: 2, Provisional: true}),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()

	some := posts / 5
	s.wait("the first posts", 10*time.Minute, func() bool { return tallyOf(t, l).over() >= some })
	s.kill()
	s.wait("the pause after the server was killed", time.Minute, func() bool { return breaker.Status().Open })
	t.Logf("killed at %d posts: %s", tallyOf(t, l).over(), breaker.Status().Reason)
	pausedAt := tallyOf(t, l)
	s.wait("another probe", time.Minute, func() bool { return time.Since(breaker.Status().Since) > 3*time.Second })
	if now := tallyOf(t, l); now.over() != pausedAt.over() || fmt.Sprint(now.failed) != fmt.Sprint(pausedAt.failed) {
		t.Errorf("while the server was away: %+v, before %+v", now, pausedAt)
	}
	s.start()
	s.wait("more posts", 10*time.Minute, func() bool { return tallyOf(t, l).over() >= pausedAt.over()+some })

	s.run("rm", "tiny")
	s.wait("the pause after the model was removed", time.Minute, func() bool { return breaker.Status().Open })
	t.Logf("removed at %d posts: %s", tallyOf(t, l).over(), breaker.Status().Reason)
	if !strings.Contains(breaker.Status().Reason, "tiny") {
		t.Errorf("the pause does not name the model: %q", breaker.Status().Reason)
	}
	s.create()
	s.wait("all posts", 20*time.Minute, func() bool { return tallyOf(t, l).over() == posts })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	checkOutcome(t, l, tallyOf(t, l), posts)
}

// ollamaPosts is the number of posts: 200, or what VESTI_OLLAMA_POSTS says.
func ollamaPosts() int {
	if n, err := strconv.Atoi(os.Getenv("VESTI_OLLAMA_POSTS")); err == nil && n > 0 {
		return n
	}
	return 200
}

// fillPosts appends posts in English and Russian, a few of them far longer than
// the model's window.
func fillPosts(t *testing.T, l *badgerlog.Log, posts int) {
	t.Helper()
	items := make([]ledger.Item, posts)
	for i := range items {
		text := fmt.Sprintf("Kernel %d was released. It has new drivers for network cards and a faster scheduler.", i)
		if i%4 == 0 {
			text = fmt.Sprintf("Вышло ядро номер %d. В нём новые драйверы сетевых карт и быстрый планировщик.", i)
		}
		if i%25 == 1 {
			text += strings.Repeat(" And there is so much more to say about it.", 400)
		}
		items[i] = ledger.Item{Source: "s", Key: ledger.NewItemKey("s", fmt.Sprint(i)), Lane: ledger.LaneP1, Text: text, Direction: "tech"}
	}
	if _, err := l.Append(t.Context(), items); err != nil {
		t.Fatal(err)
	}
}

func checkOutcome(t *testing.T, l *badgerlog.Log, n tally, posts int) {
	t.Helper()
	t.Logf("%d classified, %d parked, %d shown meanwhile, failed attempts %v", n.classified, n.parked, n.provisional, n.failed)
	if n.classified == 0 || n.provisional < posts {
		t.Errorf("%+v", n)
	}
	for cause := range n.failed {
		switch cause {
		case ledger.CauseBadReply, ledger.CauseEmptyReply, ledger.CauseTruncated, ledger.CauseTooLarge:
		default:
			t.Errorf("%d attempts burnt for %s", n.failed[cause], cause)
		}
	}
	for num := range ledger.PostNum(posts) {
		p, err := l.Post(t.Context(), num+1)
		if err != nil {
			t.Fatal(err)
		}
		d := p.Decision
		if p.State.Status == ledger.StatusClassified && (d.Stage != "llm" || d.ModelDigest == "" || d.PromptHash == "" || d.RawReply == "" || d.Summary == "" || d.Duration <= 0) {
			t.Errorf("post %d: %+v", num+1, d)
		}
	}
}
