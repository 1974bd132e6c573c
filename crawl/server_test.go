package crawl_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"vesti.nixg.ru/ledger/ledgertest/cases"
)

// step is a request that must arrive, and its answer.
type step struct {
	Poll     int      `json:"poll"`
	At       string   `json:"at"`
	Request  request  `json:"request"`
	Response response `json:"response"`
}

type request struct {
	Method        string            `json:"method"`
	URL           string            `json:"url"`
	Headers       map[string]string `json:"headers"`
	HeadersAbsent []string          `json:"headers_absent"`
	HeadersNot    map[string]string `json:"headers_not"`
}

type response struct {
	Status          int               `json:"status"`
	Headers         map[string]string `json:"headers"`
	Body            string            `json:"body"`
	BodyFile        string            `json:"body_file"`
	RawFile         string            `json:"raw_file"`
	Generate        *generate         `json:"generate"`
	Drip            *drip             `json:"drip"`
	Hang            string            `json:"hang"`
	Close           string            `json:"close"`
	Repeat          bool              `json:"repeat"`
	Optional        bool              `json:"optional"`
	OmitContentType bool              `json:"omit_content_type"`
	NoServer        bool              `json:"no_server"`

	generated io.Reader
}

type drip struct {
	Bytes   int `json:"bytes"`
	EveryMS int `json:"every_ms"`
}

type generate struct {
	Kind              string    `json:"kind"`
	Count             int       `json:"count"`
	Order             string    `json:"order"`
	Start             time.Time `json:"start"`
	StepSeconds       int       `json:"step_seconds"`
	Bytes             int64     `json:"bytes"`
	WithContentLength bool      `json:"with_content_length"`
	UnpackedBytes     int64     `json:"unpacked_bytes"`
}

// seen is a request that arrived.
type seen struct {
	url    string
	header http.Header
	uri    string
}

// server plays the answers of a poll's steps. Steps for one URL are taken in
// their order.
type server struct {
	t   *testing.T
	c   cases.Case
	now func() time.Time

	mu          sync.Mutex
	steps       []step
	afterFailed bool // the run before failed, so that this one has no conditions
	requests    []seen
	errs        []error
}

// expect sets the steps of the next poll.
func (s *server) expect(steps []step, afterFailed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps, s.afterFailed, s.errs = slices.Clone(steps), afterFailed, nil
	for i := range s.steps {
		if g := s.steps[i].Response.Generate; g != nil {
			s.steps[i].Response.generated = g.reader(s.t)
		}
	}
}

// verdict says what was asked that should not have been, and the reverse.
func (s *server) verdict() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, left := range s.steps {
		if r := left.Response; !r.Optional && !r.Repeat && !r.NoServer {
			s.errs = append(s.errs, fmt.Errorf("%s was not asked for", left.Request.URL))
		}
	}
	return errors.Join(s.errs...)
}

func (s *server) seen() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	url := scheme + r.Host + r.RequestURI
	if r.Host == "healthy.example" {
		w.Header().Set("Content-Type", "application/rss+xml")
		_, _ = io.WriteString(w, `<rss version="2.0"><channel><title>Healthy</title></channel></rss>`)
		return
	}
	st, ok := s.take(url, r)
	if !ok {
		http.Error(w, "not in the script", http.StatusInternalServerError)
		return
	}
	s.answer(w, r, st.Response)
}

// take finds the request's step and checks its headers.
func (s *server) take(url string, r *http.Request) (step, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, seen{url: url, header: r.Header.Clone(), uri: r.RequestURI})
	i := slices.IndexFunc(s.steps, func(st step) bool { return st.Request.URL == url })
	if i < 0 {
		s.errs = append(s.errs, fmt.Errorf("%s was asked for, which is not in the script", url))
		return step{}, false
	}
	st := s.steps[i]
	if !st.Response.Repeat {
		s.steps = slices.Delete(s.steps, i, i+1)
	}
	s.checkHeaders(st.Request, r)
	return st, true
}

func (s *server) checkHeaders(want request, r *http.Request) {
	fail := func(format string, args ...any) { s.errs = append(s.errs, fmt.Errorf(want.URL+": "+format, args...)) }
	if want.Method != "" && r.Method != want.Method {
		fail("method %s, want %s", r.Method, want.Method)
	}
	for name, value := range want.Headers {
		got := r.Header.Get(name)
		conditional := name == "If-None-Match" || name == "If-Modified-Since"
		switch pattern, isPattern := strings.CutPrefix(value, "~"); {
		case conditional && s.afterFailed:
			if got != "" {
				fail("%s is %q after a failure, want none", name, got)
			}
		case isPattern && !regexp.MustCompile(pattern).MatchString(got):
			fail("%s is %q, want a match of %s", name, got, pattern)
		case !isPattern && got != value:
			fail("%s is %q, want %q", name, got, value)
		}
	}
	for _, name := range want.HeadersAbsent {
		if got := r.Header.Get(name); got != "" {
			fail("%s is %q, want none", name, got)
		}
	}
	for name, value := range want.HeadersNot {
		if got := r.Header.Get(name); strings.Contains(got, value) {
			fail("%s is %q", name, got)
		}
	}
}

func (s *server) answer(w http.ResponseWriter, r *http.Request, a response) {
	if a.Hang != "" {
		<-r.Context().Done()
		return
	}
	if a.RawFile != "" {
		s.raw(w, s.c.File(s.t, a.RawFile))
		return
	}
	h := w.Header()
	h.Set("Date", s.now().UTC().Format(http.TimeFormat))
	for name, value := range a.Headers {
		h[http.CanonicalHeaderKey(name)] = []string{value}
	}
	if a.OmitContentType {
		h["Content-Type"] = nil
	}
	body := a.body(s)
	if a.Generate != nil && a.Generate.WithContentLength {
		h.Set("Content-Length", strconv.FormatInt(a.Generate.Bytes, 10))
	}
	w.WriteHeader(max(a.Status, 200))
	if a.Drip != nil {
		trickle(w, r, body, *a.Drip)
		return
	}
	_, _ = io.Copy(w, body)
	if a.Close == "abrupt" {
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

// raw writes a whole answer, its status line and all, to the connection.
func (s *server) raw(w http.ResponseWriter, answer []byte) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		s.t.Errorf("take the connection over: %v", err)
		return
	}
	defer conn.Close()
	_, _ = conn.Write(answer)
}

func (a response) body(s *server) io.Reader {
	switch {
	case a.BodyFile != "":
		return bytes.NewReader(s.c.File(s.t, a.BodyFile))
	case a.Generate != nil:
		return a.generated
	default:
		return strings.NewReader(a.Body)
	}
}

func trickle(w http.ResponseWriter, r *http.Request, body io.Reader, d drip) {
	tick := time.NewTicker(time.Duration(d.EveryMS) * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := io.CopyN(w, body, int64(d.Bytes)); err != nil {
			return
		}
		w.(http.Flusher).Flush()
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

const (
	rssStart = `<?xml version="1.0" encoding="UTF-8"?><rss version="2.0"><channel><title>Generated</title><link>https://big.example.org/</link>`
	rssEnd   = `</channel></rss>`
)

func (g generate) reader(t *testing.T) io.Reader {
	switch g.Kind {
	case "rss_items":
		var items []string
		for i := 1; i <= g.Count; i++ {
			at := g.Start.Add(time.Duration(i*g.StepSeconds) * time.Second).UTC().Format(time.RFC1123)
			items = append(items, fmt.Sprintf("<item><title>Item %d</title><link>https://big.example.org/%d</link>"+
				"<guid>https://big.example.org/%d</guid><description>Body of item %d.</description><pubDate>%s</pubDate></item>", i, i, i, i, at))
		}
		if strings.HasPrefix(g.Order, "desc") {
			slices.Reverse(items)
		}
		return strings.NewReader(rssStart + strings.Join(items, "\n") + rssEnd)
	case "rss_pad":
		return io.MultiReader(strings.NewReader(rssStart), io.LimitReader(blanks{}, g.Bytes-int64(len(rssStart))))
	case "gzip_of_blanks":
		// A gzip file may be many in a row (RFC 1952, section 2.2), which is made sooner.
		const each = 1 << 20
		whole := strings.Repeat(packed(strings.Repeat(" ", each)), int(g.UnpackedBytes/each))
		return strings.NewReader(whole + packed(strings.Repeat(" ", int(g.UnpackedBytes%each))))
	default:
		t.Fatalf("no generator %q", g.Kind)
		return nil
	}
}

// blanks is an endless reader of spaces.
type blanks struct{}

func (blanks) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}
