//go:build !notelegram

package mtproto_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/gotd/td/tg"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/fetch"
	"vesti.nixg.ru/crawl/telegram"
	"vesti.nixg.ru/crawl/telegram/mtproto"
	"vesti.nixg.ru/ledger/badgerlog"
	"vesti.nixg.ru/ledger/ledgertest"
)

// childEnv holds what the process that is killed is told.
const childEnv = "VESTI_TEST_TELEGRAM_CHILD"

type childJob struct {
	Dir   string
	APIID int
	Host  string
	Port  int
	Key   string // PKCS #1, hexadecimal
}

// TestCrashChild is the process that TestKilledDuringACrawl kills.
func TestCrashChild(t *testing.T) {
	raw, ok := os.LookupEnv(childEnv)
	if !ok {
		t.Skip("only as a child of TestKilledDuringACrawl")
	}
	var job childJob
	if err := json.Unmarshal([]byte(raw), &job); err != nil {
		t.Fatal(err)
	}
	der, err := hex.DecodeString(job.Key)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.ParsePKCS1PublicKey(der)
	if err != nil {
		t.Fatal(err)
	}
	log := ledgertest.Open(t, ledgertest.Dir(job.Dir))
	account, err := mtproto.New(mtproto.Options{
		APIID: job.APIID, APIHash: "hash", Store: log.Store(telegram.Namespace), Pace: -1, ResolvePace: -1,
		Server: &mtproto.Server{DC: dc, Host: job.Host, Port: job.Port, Key: key},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer account.Close()
	client := fetch.New(fetch.Options{})
	defer client.Close()
	kind, err := telegram.New(telegram.Options{Fetch: client, Store: log.Store(telegram.Namespace), Account: account})
	if err != nil {
		t.Fatal(err)
	}
	rep, err := kind.Crawl(t.Context(), crawl.Job{Source: crashSource(), Now: noon, Sink: sink{log}})
	if err != nil {
		t.Fatalf("crawl: %v (%+v)", err, rep)
	}
}

func crashSource() crawl.Source {
	return crawl.Source{Slug: "port", Channel: "port_example", Backfill: 100_000, Enabled: true}
}

// A crawl that is killed at any moment leaves no hole, makes no double and
// keeps the session.
func TestKilledDuringACrawl(t *testing.T) {
	s := newServer(t)
	c := portChannel(1, 3000)
	var want []int
	for _, m := range c.messages {
		m := m.(*tg.Message)
		if m.ID%50 < 5 && m.ID >= 100 { // albums, at the ends of pages too
			m.GroupedID = int64(m.ID / 50)
			m.SetFlags()
			if m.ID%50 > 0 {
				continue
			}
		}
		want = append(want, m.ID)
	}
	s.add(c)
	dir := t.TempDir()
	adoptInto(t, dir, s)

	const kills = 6
	for range kills {
		at, asked := 2+rand.IntN(4), make(chan struct{})
		s.on(func(c call) effect {
			if c.method == history && c.n == at {
				close(asked)
			}
			return effect{after: 20 * time.Millisecond}
		})
		cmd, out := child(t, dir, s)
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case err := <-ended:
			t.Fatalf("the child ended by itself: %v\n%s", err, out)
		case <-asked:
			<-time.After(time.Duration(rand.IntN(40)) * time.Millisecond)
			cmd.Process.Kill()
			<-ended
		}
	}
	s.on(nil)
	cmd, out := child(t, dir, s)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("child: %v\n%s", err, out)
	}
	checkCrashed(t, dir, want)
}

func child(t *testing.T, dir string, s *server) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	o := s.options()
	raw, err := json.Marshal(childJob{
		Dir: dir, APIID: s.apiID, Host: o.Host, Port: o.Port, Key: hex.EncodeToString(x509.MarshalPKCS1PublicKey(o.Key)),
	})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], "-test.run=^TestCrashChild$")
	cmd.Env = append(os.Environ(), childEnv+"="+string(raw))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, &out
}

// adoptInto logs the store in dir in, and closes it.
func adoptInto(t *testing.T, dir string, s *server) {
	t.Helper()
	log, err := badgerlog.Open(t.Context(), badgerlog.Options{Dir: dir, FreeSpaceFloor: -1})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, server: s, log: log}
	w.adopt(loggedIn())
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
}

func checkCrashed(t *testing.T, dir string, want []int) {
	t.Helper()
	log := ledgertest.Open(t, ledgertest.Dir(dir))
	wantIDs(t, log, want)
	w := &world{t: t, log: log}
	if authKey(t, w.stored()) != authKey(t, loggedIn().current) {
		t.Error("the session has another key")
	}
}
