package crawl_test

import (
	"compress/gzip"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/crawltest"
	"vesti.nixg.ru/ledger"
)

// misbehaviour is one way in which a source goes about it, and how it must end.
type misbehaviour struct {
	name    string
	plain   bool // by http, not https
	serve   func(v *visit)
	prepare func(w *crawltest.World, s *crawl.Source, host string) string // returns the host that is served
	status  []ledger.SourceStatus                                         // the ones that are right in the end
	late    []ledger.SourceStatus                                         // and after more than a day, where others
	cause   ledger.Cause                                                  // of the last error
	check   func(s crawl.Source, state ledger.SourceState) error
}

func (m misbehaviour) scheme() string {
	if m.plain {
		return "http://"
	}
	return "https://"
}

func (m misbehaviour) ends(hours int) []ledger.SourceStatus {
	if hours > 24 && m.late != nil {
		return m.late
	}
	return m.status
}

func statuses(s ...ledger.SourceStatus) []ledger.SourceStatus { return s }

// well is a source that is alive, has posts, and never failed.
func well(name string, serve func(v *visit)) misbehaviour {
	return misbehaviour{name: name, serve: serve, status: statuses(ledger.SourceAlive), check: func(_ crawl.Source, s ledger.SourceState) error {
		if s.Failures > 0 || s.New < 5 || s.Runs < 20 {
			return errors.New("it was well all the time")
		}
		return nil
	}}
}

// dead is a source that never worked.
func dead(name string, cause ledger.Cause, serve func(v *visit)) misbehaviour {
	return misbehaviour{name: name, serve: serve, cause: cause, status: statuses(ledger.SourceDead), check: func(_ crawl.Source, s ledger.SourceState) error {
		if s.New > 0 || s.Runs > ledger.DeadAfter+1 || s.LastError == "" {
			return errors.New("it was asked more often than a dead source is")
		}
		return nil
	}}
}

func misbehaviours() []misbehaviour {
	all := append(validatorTricks(), redirectTricks()...)
	all = append(all, statusTricks()...)
	all = append(all, bodyTricks()...)
	return append(all, networkTricks()...)
}

func validatorTricks() []misbehaviour {
	return []misbehaviour{
		well("plain", func(v *visit) { v.say(200, v.feed()) }),
		well("conditional", func(v *visit) {
			tag := strconv.Itoa(int(v.since.Hours()))
			if v.r.Header.Get("If-None-Match") == tag {
				v.say(304, "")
				return
			}
			v.say(200, v.feed(), "ETag", tag)
		}),
		well("newtag", func(v *visit) { v.say(200, v.feed(), "ETag", strconv.Itoa(v.n)) }),
		{
			name: "frozen", status: statuses(ledger.SourceAlive), serve: func(v *visit) { // 304 for ever
				if v.r.Header.Get("If-None-Match") != "" {
					v.say(304, "")
					return
				}
				v.say(200, v.feed(), "ETag", `"2041"`)
			},
			check: func(_ crawl.Source, s ledger.SourceState) error {
				if days := s.LastFetch.Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).Hours() / 24; s.Failures > 0 || days > 1.1 && s.New < 20 {
					return errors.New("the daily unconditional request finds what is new")
				}
				return nil
			},
		},
		dead("never", ledger.CauseHTTP, func(v *visit) { v.say(304, "") }),
		well("cookies", func(v *visit) {
			if v.r.Header.Get("Cookie") != "" {
				v.say(400, "no cookies, please")
				return
			}
			v.say(200, v.feed(), "Set-Cookie", "id="+strings.Repeat("x", 3000))
		}),
	}
}

func redirectTricks() []misbehaviour {
	to := func(status int, target string) func(v *visit) {
		return func(v *visit) { v.say(status, "", "Location", strings.ReplaceAll(target, "HOST", v.host)) }
	}
	moved := func(v *visit) {
		if v.r.URL.Path == "/feed" {
			v.say(301, "", "Location", "/new")
			return
		}
		v.say(200, v.feed())
	}
	return []misbehaviour{
		well("temporary", func(v *visit) {
			if v.r.URL.Path == "/feed" {
				v.say(302, "", "Location", fmt.Sprintf("/mirror%d", v.n%3))
				return
			}
			v.say(200, v.feed())
		}),
		{
			name: "moved", serve: moved, status: statuses(ledger.SourceAlive),
			check: func(s crawl.Source, state ledger.SourceState) error {
				if want := strings.TrimSuffix(s.FeedURL, "/feed") + "/new"; state.MovedTo != want {
					return fmt.Errorf("moved to %q, want %q", state.MovedTo, want)
				}
				return nil
			},
		},
		dead("loop", ledger.CauseRedirect, to(301, "https://HOST/feed")),
		dead("endless", ledger.CauseRedirect, func(v *visit) { v.say(302, "", "Location", v.r.URL.Path+"x") }),
		dead("metadata", ledger.CauseBlocked, to(301, "http://169.254.169.254/latest/meta-data/")),
		dead("mapped", ledger.CauseBlocked, to(302, "http://[::ffff:10.0.0.1]/")),
		dead("file", ledger.CauseBlocked, to(302, "file:///etc/passwd")),
		dead("login", ledger.CauseNotFeed, func(v *visit) {
			if v.r.URL.Path == "/feed" {
				v.say(302, "", "Location", "/login?next=%2Ffeed")
				return
			}
			v.say(200, `<!doctype html><title>Sign in</title><form><input name=user><input type=password></form>`)
		}),
	}
}

func statusTricks() []misbehaviour {
	code := func(status int, headers ...string) func(v *visit) {
		return func(v *visit) { v.say(status, "<h1>No</h1>", headers...) }
	}
	gone := misbehaviour{name: "gone", serve: code(410), cause: ledger.CauseGone, status: statuses(ledger.SourceGone)}
	gone.check = func(_ crawl.Source, s ledger.SourceState) error {
		if s.Runs != 1 {
			return errors.New("it was asked again")
		}
		return nil
	}
	waits := func(_ crawl.Source, s ledger.SourceState) error {
		if s.ErrorCount > 0 || s.Failures > 0 {
			return errors.New("a pause is no error")
		}
		return nil
	}
	return []misbehaviour{
		gone,
		dead("e404", ledger.CauseHTTP, code(404)), dead("e403", ledger.CauseHTTP, code(403)), dead("e500", ledger.CauseHTTP, code(500)),
		dead("e503", ledger.CauseHTTP, code(503)), dead("e202", ledger.CauseHTTP, code(202)), dead("e204", ledger.CauseHTTP, code(204)),
		{name: "limited", serve: code(429, "Retry-After", "1800"), status: statuses(ledger.SourceThrottle), check: waits},
		{name: "bare429", serve: code(429), status: statuses(ledger.SourceThrottle), check: waits},
		{name: "busy", status: statuses(ledger.SourceAlive, ledger.SourceThrottle), check: waits, serve: func(v *visit) {
			if v.n%2 == 1 {
				v.say(503, "", "Retry-After", time.Now().Add(40*time.Minute).UTC().Format(http.TimeFormat))
				return
			}
			v.say(200, v.feed())
		}},
		{name: "flapping", status: statuses(ledger.SourceAlive, ledger.SourceFailing), serve: func(v *visit) {
			if v.n%2 == 1 {
				v.say(500, "")
				return
			}
			v.say(200, v.feed())
		}},
		{name: "back", status: statuses(ledger.SourceDead), late: statuses(ledger.SourceAlive), serve: func(v *visit) {
			if v.n < ledger.DeadAfter {
				v.say(404, "")
				return
			}
			v.say(200, v.feed())
		}},
	}
}

func bodyTricks() []misbehaviour {
	body := func(b string, headers ...string) func(v *visit) { return func(v *visit) { v.say(200, b, headers...) } }
	return []misbehaviour{
		dead("challenge", ledger.CauseNotFeed, body(`<!DOCTYPE html><html><head><title>Just a moment...</title></head><body>Checking</body></html>`)),
		dead("prolog", ledger.CauseNotFeed, body("<?xml version=\"1.0\"?>\n\n  \n")),
		dead("nothing", ledger.CauseNotFeed, body("")),
		dead("noise", ledger.CauseNotFeed, body(strings.Repeat("\x00\xFF\x13\x7F", 5000))),
		{name: "empty", status: statuses(ledger.SourceEmpty), serve: body(`<rss version="2.0"><channel><title>Quiet</title></channel></rss>`)},
		well("mislabelled", func(v *visit) { v.say(200, v.feed(), "Content-Encoding", "gzip", "Content-Type", "text/html") }),
		well("packed", func(v *visit) { v.say(200, packed(v.feed()), "Content-Encoding", "gzip") }),
		well("partial", func(v *visit) { v.say(206, v.feed(), "Content-Range", "bytes 0-99999/*") }),
		dead("halfpacked", ledger.CauseConnect, func(v *visit) { p := packed(v.feed()); v.say(200, p[:len(p)/2], "Content-Encoding", "gzip") }),
		dead("bomb", ledger.CauseTooLarge, body(packed(strings.Repeat(" ", 4<<20)), "Content-Encoding", "gzip")),
		dead("flood", ledger.CauseTooLarge, func(v *visit) { v.trickle(strings.Repeat(" ", 16<<10), time.Millisecond) }),
		dead("drip", ledger.CauseTimeout, func(v *visit) { v.trickle("<", 3*time.Second) }),
		{name: "pages", status: statuses(ledger.SourceAlive), prepare: withPages, serve: func(v *visit) {
			switch {
			case v.r.URL.Path == "/feed":
				v.say(200, v.feed())
			case strings.HasSuffix(v.r.URL.Path, "1"):
				<-v.r.Context().Done()
			case strings.HasSuffix(v.r.URL.Path, "2"):
				v.say(500, "")
			case strings.HasSuffix(v.r.URL.Path, "3"):
				v.trickle("<p>and so on</p>", time.Millisecond)
			default:
				v.say(200, "<html><body><article><p>"+strings.Repeat("The page of "+v.r.URL.Path+" says more than the feed. ", 20)+"</p></article></body></html>")
			}
		}},
		{name: "footer", status: statuses(ledger.SourceAlive), serve: func(v *visit) { // a text that goes back and forth
			v.say(200, strings.ReplaceAll(v.feed(), "</description>", fmt.Sprintf("Updated %d days ago.</description>", v.n%2)))
		}},
		{name: "newguids", status: statuses(ledger.SourceAlive), serve: func(v *visit) { // the same entries under ever new guids
			v.say(200, strings.ReplaceAll(v.feed(), "<guid>", fmt.Sprintf("<guid>%d-", v.n)))
		}},
	}
}

func withPages(_ *crawltest.World, s *crawl.Source, host string) string {
	s.FullText = crawl.FullTextTrue
	return host
}

// packed is s in gzip.
func packed(s string) string {
	var b strings.Builder
	gz := gzip.NewWriter(&b)
	_, _ = gz.Write([]byte(s))
	_ = gz.Close()
	return b.String()
}

func networkTricks() []misbehaviour {
	at := func(host func(host string) string) func(*crawltest.World, *crawl.Source, string) string {
		return func(_ *crawltest.World, s *crawl.Source, h string) string {
			s.FeedURL = strings.Replace(s.FeedURL, h, host(h), 1)
			return host(h)
		}
	}
	under := func(prefix string) func(*crawltest.World, *crawl.Source, string) string {
		return at(func(h string) string { return prefix + h })
	}
	feed := func(v *visit) { v.say(200, v.feed()) }
	private := dead("private", ledger.CauseBlocked, feed)
	private.prepare = func(w *crawltest.World, _ *crawl.Source, host string) string {
		w.SetDNS(host, []netip.Addr{netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("::1")})
		return host
	}
	lost := dead("lost", ledger.CauseDNS, feed)
	lost.prepare = func(w *crawltest.World, _ *crawl.Source, host string) string {
		w.Lose(host, nil)
		return host
	}
	flips := misbehaviour{name: "flips", plain: true, serve: func(v *visit) { v.say(200, v.feed(), "Connection", "close") }, status: statuses(ledger.SourceDead), cause: ledger.CauseBlocked}
	flips.prepare = func(w *crawltest.World, _ *crawl.Source, host string) string {
		w.SetDNS(host, []netip.Addr{netip.MustParseAddr("9.9.9.9")}, []netip.Addr{netip.MustParseAddr("127.0.0.1")})
		return host
	}
	expired, wrong, unknown := dead("expired", ledger.CauseTLS, feed), dead("wrong", ledger.CauseTLS, feed), dead("unknown", ledger.CauseTLS, feed)
	expired.prepare, wrong.prepare, unknown.prepare = under("expired."), under("wronghost."), under("unknownca.")
	notls := dead("notls", ledger.CauseTLS, feed)
	notls.prepare = at(func(h string) string { return h + ":80" })
	home := well("home", feed)
	home.plain = true
	home.prepare = func(w *crawltest.World, s *crawl.Source, host string) string {
		w.SetDNS(host, []netip.Addr{netip.MustParseAddr("192.168.1.9")})
		s.AllowPrivate = true
		return host
	}
	return []misbehaviour{
		private, lost, flips, expired, wrong, unknown, notls, home,
		dead("silent", ledger.CauseTimeout, func(v *visit) { <-v.r.Context().Done() }),
		dead("slam", ledger.CauseConnect, func(v *visit) { v.take("") }),
		dead("gibberish", ledger.CauseConnect, func(v *visit) { v.take("SSH-2.0-OpenSSH_9.9\r\n\r\n") }),
		dead("cut", ledger.CauseConnect, func(v *visit) {
			v.take("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n<rss version=\"2.0\"><channel>")
		}),
		dead("headers", ledger.CauseConnect, func(v *visit) {
			v.take("HTTP/1.1 200 OK\r\n" + strings.Repeat("X-Pad: "+strings.Repeat("y", 1000)+"\r\n", 400) + "\r\n")
		}),
	}
}
