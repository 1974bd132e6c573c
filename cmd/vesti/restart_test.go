package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/ledger"
)

// A server that is killed while it crawls and classifies, again and again, ends
// with every post there, each classified once.
func TestKilledServer(t *testing.T) {
	const posts, kills = 300, 4
	d := newDesk(t)
	d.sources(oneSource(staticFeed(t, posts).URL))
	for range kills {
		s := d.serve()
		wait := time.NewTimer(time.Duration(rand.IntN(1500)) * time.Millisecond)
		<-wait.C
		s.kill()
	}
	s := d.serve()
	eventually(t, "all posts are classified", func() error {
		var st statusResult
		d.json(exitDone, &st, "status")
		if st.Queue.DoneToday != posts || st.Queue.Pending+st.Queue.Processing > 0 {
			// A killed run leaves its source due at once, or in its normal turn.
			_ = d.try("crawl", "--all")
			return fmt.Errorf("queue: %+v", st.Queue)
		}
		return nil
	})
	d.do(exitDone, "verify")
	if code := s.stop(); code != exitDone {
		t.Errorf("SIGTERM: exit code %d\n%s", code, s.logged())
	}
	inApp(t, d, func(ctx context.Context, a *App) {
		decided := map[ledger.PostNum]int{}
		for after := ledger.Seq(0); ; {
			events, err := a.log.Read(ctx, after, 1000)
			if err != nil {
				t.Fatal(err)
			}
			if len(events) == 0 {
				break
			}
			for _, e := range events {
				if e.Type == ledger.TypePostClassified {
					decided[e.Post]++
				}
			}
			after = events[len(events)-1].Seq
		}
		if len(decided) != posts {
			t.Errorf("%d posts were classified", len(decided))
		}
		for post, n := range decided {
			if n != 1 {
				t.Errorf("post %d was classified %d times", post, n)
			}
		}
	})
}

// A command that a server carries out ends with its caller, and the server goes
// on.
func TestCallerGoesAway(t *testing.T) {
	arrived := make(chan struct{}, 100)
	hang := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(hang.Close)
	d := newDesk(t)
	d.sources("sources: []\n")
	s := d.serve()
	d.sources(oneSource(hang.URL))
	d.do(exitDone, "sources", "reload")
	caller := d.command("crawl", "--all")
	if err := caller.Start(); err != nil {
		t.Fatal(err)
	}
	<-arrived
	_ = caller.Process.Kill()
	_ = caller.Wait()
	if code := s.stop(); code != exitDone {
		t.Errorf("SIGTERM: exit code %d\n%s", code, s.logged())
	}
}

// A broken registry or rules file leaves the running one in force and says
// where it is broken.
func TestBrokenFilesLeaveTheOldOnesInForce(t *testing.T) {
	d := newDesk(t)
	d.sources(oneSource(staticFeed(t, 3).URL))
	s := d.serve()
	d.sources("sources:\n  - {slug: one, titel: One}\n")
	e := d.try("sources", "reload")
	if e.code != exitUsage || !strings.Contains(e.stderr, "sources.yaml:2") || !strings.Contains(e.stderr, "titel") {
		t.Errorf("reload of a broken file: exit code %d, %s", e.code, e.stderr)
	}
	var sum crawl.Summary
	d.json(exitDone, &sum, "crawl", "--all")
	if sum.Sources != 1 {
		t.Errorf("%d sources in force, want the old one", sum.Sources)
	}
	d.write("rules.yaml", "directions:\n  linux: {oops}\n")
	s.wantLogged("old rules stay in force", "rules.yaml: line 2")
}

// SIGHUP reads the sources and the rules, and answers for both, whatever the
// state of the files.
func TestHangupReadsAgain(t *testing.T) {
	d := newDesk(t)
	d.sources(oneSource(staticFeed(t, 1).URL))
	s := d.serve()
	s.hangup()
	s.wantLogged("sources read again", "keyword rules read again, nothing has changed")
	d.write("rules.yaml", "version: 1\ndirections:\n  linux:\n    - {rule: a, weight: heavy, keywords: [kernel]}\n")
	s.wantLogged("old rules stay in force", "rules.yaml: line 4")
	s.hangup()
	eventually(t, "the mistake is told again", func() error {
		if n := strings.Count(s.logged(), "old rules stay in force"); n != 2 {
			return fmt.Errorf("told %d times", n)
		}
		return nil
	})
	d.sources("sources:\n  - {slug: one, titel: One}\n")
	s.hangup()
	s.wantLogged("the sources were not taken over; the old ones stay in force", "sources.yaml:2: titel: unknown key")
	var list struct{ Sources []sourceRow }
	if d.json(exitDone, &list, "sources", "list"); len(list.Sources) != 1 {
		t.Errorf("%d sources in force, want the old one", len(list.Sources))
	}
}

// An edited rules file holds for the posts that come after, without a restart.
func TestChangedRuleHolds(t *testing.T) {
	d := newDesk(t)
	d.sources(oneSource(staticFeed(t, 2).URL))
	s := d.serve()
	classifiedAs := func(source string, direction ledger.Direction) {
		t.Helper()
		eventually(t, "posts of "+source+" are classified", func() error {
			var found searchResult
			d.json(exitDone, &found, "search", "--source", source, "kernel")
			if found.Total != 2 || found.Hits[0].Direction != direction || found.Hits[1].Direction != direction {
				return fmt.Errorf("found %+v", found.Hits)
			}
			return nil
		})
	}
	classifiedAs("one", "linux")
	d.write("rules.yaml", "version: 1\ndirections:\n  games:\n    - {rule: test, weight: 9, keywords: [kernel]}\n")
	eventually(t, "the new rules are in force", func() error {
		if !strings.Contains(s.logged(), "new keyword rules are in force") {
			return fmt.Errorf("not yet\n%s", s.logged())
		}
		return nil
	})
	again := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `<rss version="2.0"><channel><title>second</title>
			<item><title>First</title><guid>1</guid><description>A kernel of corn is not what most people mean by it.</description></item>
			<item><title>Second</title><guid>2</guid><description>Another kernel, another day, and a text that nobody had before.</description></item>
			</channel></rss>`)
	}))
	t.Cleanup(again.Close)
	d.sources(strings.Replace(oneSource(again.URL), "slug: one", "slug: two", 1))
	d.do(exitDone, "sources", "reload")
	classifiedAs("two", "games")
}

// A stop with work in hand: exit code 0 within the grace period, and the posts
// that the model had not answered for are back in the queue, no attempt burnt.
func TestStopWithWorkInHand(t *testing.T) {
	asked := make(chan struct{}, 100)
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/models") {
			fmt.Fprint(w, `{"data":[{"id":"slow"}]}`)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // only then a caller that goes away is noticed
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(model.Close)
	feed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `<rss version="2.0"><channel><title>odd</title>`)
		for i := range 5 {
			fmt.Fprintf(w, `<item><title>Something %d</title><guid>%[1]d</guid><description>Nothing in here, number %[1]d, tells anybody what it could be about.</description></item>`, i)
		}
		fmt.Fprint(w, `</channel></rss>`)
	}))
	t.Cleanup(feed.Close)
	d := newDesk(t)
	d.sources(oneSource(feed.URL))
	s := d.serve("--set", "llm.kind=openai", "--set", "llm.url="+model.URL+"/v1", "--set", "llm.model=slow", "--set", "llm.workers=2", "--set", "work.grace=1s")
	for range 2 {
		select {
		case <-asked:
		case <-time.After(60 * time.Second):
			t.Fatalf("the model was not asked\n%s", s.logged())
		}
	}
	began := time.Now()
	if code := s.stop(); code != exitDone {
		t.Errorf("SIGTERM: exit code %d\n%s", code, s.logged())
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("the stop took %s", took)
	}
	var st statusResult
	d.json(exitDone, &st, "status")
	if st.Queue.Pending != 5 || st.Queue.Processing != 0 || st.Queue.Parked != 0 {
		t.Errorf("after the stop: %+v", st.Queue)
	}
	inApp(t, d, func(ctx context.Context, a *App) {
		events, err := a.log.Read(ctx, 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.Type == ledger.TypePostFailed {
				t.Errorf("an attempt was burnt: %+v", e.Payload)
			}
		}
	})
}

// TestFirstPassword: a first start that fails does not use up the password that
// is shown once.
func TestFirstPassword(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.sources("sources: []\n")
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	d.do(exitFailed, "serve", "--set", "web.listen="+taken.Addr().String())
	if s := d.serve(); s.password == "" {
		t.Error("no password was shown by the first start that worked")
	}
}

// A terminal that goes away ends every command but a server, however early.
func TestEarlyHangup(t *testing.T) {
	var out bytes.Buffer
	early := make(chan os.Signal, 1)
	early <- syscall.SIGHUP
	if code := run(t.Context(), &call{args: []string{"version"}, out: &out, err: &out, cwd: t.TempDir(), early: early}); code != exitFailed {
		t.Errorf("exit code %d\n%s", code, out.String())
	}
}
