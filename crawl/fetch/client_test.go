package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/crawltest"
	"vesti.nixg.ru/crawl/fetch"
	"vesti.nixg.ru/ledger"
)

// site answers by host and path, and remembers what it was asked.
type site struct {
	mu       sync.Mutex
	pages    map[string]http.HandlerFunc
	requests []*http.Request
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	s.mu.Lock()
	s.requests = append(s.requests, r)
	page := s.pages[scheme+r.Host+r.URL.Path]
	s.mu.Unlock()
	if page == nil {
		http.NotFound(w, r)
		return
	}
	page(w, r)
}

func (s *site) asked() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

func say(body string, headers ...string) http.HandlerFunc {
	return answer(http.StatusOK, body, headers...)
}

func answer(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header()[headers[i]] = []string{headers[i+1]}
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func redirect(status int, to string) http.HandlerFunc {
	return answer(status, "", "Location", to)
}

// newClient returns a client in a world with these pages, and the site.
func newClient(t *testing.T, opts fetch.Options, pages map[string]http.HandlerFunc) (*fetch.Client, *site, *crawltest.World) {
	t.Helper()
	s := &site{pages: pages}
	w := crawltest.New(t, s)
	if opts.HostGap == 0 {
		opts.HostGap = -1
	}
	c := fetch.New(w.Options(opts))
	t.Cleanup(c.Close)
	return c, s, w
}

// failure gets url and returns the typed error, which there must be.
func failure(t *testing.T, c *fetch.Client, url string) *crawl.Error {
	t.Helper()
	_, err := c.Get(t.Context(), fetch.Request{URL: url})
	failed, ok := errors.AsType[*crawl.Error](err)
	if !ok {
		t.Fatalf("GET %s: got %v, want a *crawl.Error", url, err)
	}
	return failed
}

func TestRequestIsHonestAndConditional(t *testing.T) {
	c, s, _ := newClient(t, fetch.Options{UserAgent: fetch.UserAgent("1.2", "mailto:desk@example.org")}, map[string]http.HandlerFunc{
		"https://a.example/feed": say("<rss/>", "Etag", `W/"odd, one`, "Set-Cookie", "id=1"),
	})
	req := fetch.Request{URL: "https://a.example/feed", ETag: `W/"odd, one`, LastModified: "yesterday at noon"}
	for range 2 {
		if _, err := c.Get(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	h := s.asked()[1].Header
	for name, want := range map[string]string{
		"User-Agent":        "vesti/1.2 (feed reader; +mailto:desk@example.org)",
		"If-None-Match":     `W/"odd, one`,
		"If-Modified-Since": "yesterday at noon",
		"Accept-Encoding":   "gzip, br, deflate",
		"Cookie":            "",
		"Range":             "",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	for _, kind := range []string{"application/rss+xml", "application/atom+xml", "application/feed+json", "*/*;q="} {
		if !strings.Contains(h.Get("Accept"), kind) {
			t.Errorf("Accept %q does not name %s", h.Get("Accept"), kind)
		}
	}
}

func TestRedirects(t *testing.T) {
	c, s, _ := newClient(t, fetch.Options{}, map[string]http.HandlerFunc{
		"https://old.example/feed":     redirect(301, "https://new.example/feed"),
		"https://new.example/feed":     redirect(308, "/feed.xml"),
		"https://new.example/feed.xml": redirect(302, "http://mirror.example/f"),
		"http://mirror.example/f":      say("<rss/>"),
		"https://tmp.example/":         redirect(302, "https://perm.example/"),
		"https://perm.example/":        redirect(301, "http://mirror.example/f"),
		"https://loop.example/a":       redirect(302, "/b"),
		"https://loop.example/b":       redirect(302, "/a"),
		"https://file.example/":        redirect(302, "file:///etc/passwd"),
		"https://nowhere.example/":     redirect(302, "http://[bad"),
		"https://bare.example/":        answer(301, ""),
	})
	resp, err := c.Get(t.Context(), fetch.Request{
		URL: "https://old.example/feed", ETag: `"x"`, Headers: map[string]string{"Authorization": "Bearer secret"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if resp.PermanentURL != "https://new.example/feed.xml" || resp.FinalURL != "http://mirror.example/f" || !resp.Redirected {
		t.Errorf("chain: permanent %q, final %q", resp.PermanentURL, resp.FinalURL)
	}
	for i, r := range s.asked() {
		if r.Header.Get("If-None-Match") != `"x"` {
			t.Errorf("request %d to %s: the validator got lost", i, r.Host)
		}
		if secret := r.Header.Get("Authorization") != ""; secret != (r.Host == "old.example") {
			t.Errorf("request %d to %s: credential sent: %v", i, r.Host, secret)
		}
	}
	if resp, err = c.Get(t.Context(), fetch.Request{URL: "https://tmp.example/"}); err != nil || resp.PermanentURL != "" {
		t.Errorf("permanent after temporary: got %+v, %v; want no permanent URL", resp, err)
	}
	for url, want := range map[string]struct {
		cause ledger.Cause
		says  string
	}{
		"https://loop.example/a":   {ledger.CauseRedirect, "redirect loop"},
		"https://file.example/":    {ledger.CauseBlocked, "only http and https"},
		"https://nowhere.example/": {ledger.CauseRedirect, "cannot be read"},
		"https://bare.example/":    {ledger.CauseHTTP, "301"},
	} {
		if f := failure(t, c, url); f.Cause != want.cause || !strings.Contains(f.Message, want.says) {
			t.Errorf("%s: got %s, %q; want %s, %q", url, f.Cause, f.Message, want.cause, want.says)
		}
	}
}

func TestEndlessRedirectIsBounded(t *testing.T) {
	s := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", r.URL.Path+"x")
		w.WriteHeader(http.StatusFound)
	})
	w := crawltest.New(t, s)
	c := fetch.New(w.Options(fetch.Options{HostGap: -1}))
	defer c.Close()
	if f := failure(t, c, "http://deep.example/"); f.Cause != ledger.CauseRedirect || !strings.Contains(f.Message, "10 redirects") {
		t.Errorf("got %s, %q", f.Cause, f.Message)
	}
}

func TestStatuses(t *testing.T) {
	pages := map[string]http.HandlerFunc{}
	for _, code := range []int{200, 202, 203, 204, 206, 304, 400, 401, 403, 404, 410, 451, 500, 502, 503, 599} {
		pages[fmt.Sprintf("http://s.example/%d", code)] = answer(code, "")
	}
	c, _, _ := newClient(t, fetch.Options{}, pages)
	for _, code := range []int{200, 203, 206} {
		if resp, err := c.Get(t.Context(), fetch.Request{URL: fmt.Sprintf("http://s.example/%d", code)}); err != nil || resp.Status != code {
			t.Errorf("%d: got %v, %v", code, resp, err)
		}
	}
	for _, code := range []int{202, 204, 304, 400, 401, 403, 404, 410, 451, 500, 502, 503, 599} {
		f := failure(t, c, fmt.Sprintf("http://s.example/%d", code))
		want := ledger.CauseHTTP
		if code == 410 {
			want = ledger.CauseGone
		}
		if f.Cause != want || f.HTTPStatus != code || !strings.Contains(f.Message, fmt.Sprint(code)) {
			t.Errorf("%d: got %s, status %d, %q", code, f.Cause, f.HTTPStatus, f.Message)
		}
	}
	resp, err := c.Get(t.Context(), fetch.Request{URL: "http://s.example/304", ETag: `"1"`})
	if err != nil || !resp.NotModified {
		t.Errorf("304 with a validator: got %+v, %v", resp, err)
	}
}

func TestValidators(t *testing.T) {
	old := ledger.Validators{ETag: `"1"`, LastModified: "then", BodyHash: ledger.HashOf("x"), LastBuildDate: "b"}
	bare := &fetch.Response{NotModified: true, Header: http.Header{}}
	if got := bare.Validators(old); got != old {
		t.Errorf("bare 304: got %+v, want the old ones", got)
	}
	renewed := &fetch.Response{NotModified: true, Header: http.Header{"Etag": {`"2"`}}}
	if got := renewed.Validators(old); got.ETag != `"2"` || got.LastModified != "then" || got.BodyHash != old.BodyHash {
		t.Errorf("304 with a new tag: got %+v", got)
	}
	full := &fetch.Response{Header: http.Header{"Last-Modified": {"now"}}, Body: []byte("body")}
	if got := full.Validators(old); got.ETag != "" || got.LastModified != "now" || got.BodyHash == old.BodyHash || got.BodyHash.IsZero() {
		t.Errorf("200: got %+v", got)
	}
}

func TestThrottle(t *testing.T) {
	now := time.Date(2025, 3, 10, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	hour := now.Add(time.Hour).Format(http.TimeFormat)
	c, s, _ := newClient(t, fetch.Options{Now: clock}, map[string]http.HandlerFunc{
		"http://seconds.example/":    answer(429, "", "Retry-After", "600"),
		"http://seconds.example/two": say("ok"),
		"http://date.example/":       answer(503, "", "Retry-After", hour),
		"http://long.example/":       answer(429, "", "Retry-After", "99999999999"),
		"http://past.example/":       answer(429, "", "Retry-After", "-5"),
		"http://bare.example/":       answer(429, ""),
		"http://down.example/":       answer(503, "", "Retry-After", "when we are back"),
	})
	wait := func(url string) (time.Duration, int) {
		t.Helper()
		_, err := c.Get(t.Context(), fetch.Request{URL: url})
		throttled, ok := errors.AsType[*crawl.Throttled](err)
		if !ok {
			t.Fatalf("%s: got %v, want *crawl.Throttled", url, err)
		}
		return throttled.Until.Sub(now), throttled.HTTPStatus
	}
	for url, want := range map[string]time.Duration{
		"http://seconds.example/": 10 * time.Minute,
		"http://date.example/":    time.Hour,
		"http://long.example/":    24 * time.Hour,
		"http://past.example/":    30 * time.Minute,
		"http://bare.example/":    30 * time.Minute,
	} {
		if got, _ := wait(url); got != want {
			t.Errorf("%s: wait %s, want %s", url, got, want)
		}
	}
	if f := failure(t, c, "http://down.example/"); f.Cause != ledger.CauseHTTP || f.HTTPStatus != 503 {
		t.Errorf("503 without a usable Retry-After: got %s, %d", f.Cause, f.HTTPStatus)
	}
	asked := len(s.asked())
	if got, status := wait("http://seconds.example/two"); got != 10*time.Minute || status != 0 {
		t.Errorf("another page of a paused host: wait %s, status %d", got, status)
	}
	if len(s.asked()) != asked {
		t.Error("a paused host was asked")
	}
	now = now.Add(11 * time.Minute)
	if _, err := c.Get(t.Context(), fetch.Request{URL: "http://seconds.example/two"}); err != nil {
		t.Errorf("after the pause: %v", err)
	}
	now = now.Add(20 * time.Minute)
	if got, _ := wait("http://bare.example/"); got != time.Hour {
		t.Errorf("second 429 in a row without Retry-After: wait %s, want 1h", got)
	}
}

func TestPrivateHostIsPausedByURL(t *testing.T) {
	c, _, w := newClient(t, fetch.Options{}, map[string]http.HandlerFunc{
		"http://nas.example/one": answer(429, "", "Retry-After", "600"),
		"http://nas.example/two": say("ok"),
	})
	w.SetDNS("nas.example", []netip.Addr{netip.MustParseAddr("192.168.1.5")})
	own := []string{"nas.example:80"}
	if _, err := c.Get(t.Context(), fetch.Request{URL: "http://nas.example/one", AllowPrivate: own}); err == nil {
		t.Fatal("no pause")
	}
	if _, err := c.Get(t.Context(), fetch.Request{URL: "http://nas.example/two", AllowPrivate: own}); err != nil {
		t.Errorf("the host's other feed: %v", err)
	}
}

func TestFailuresAreToldApart(t *testing.T) {
	c, _, w := newClient(t, fetch.Options{}, map[string]http.HandlerFunc{
		"http://cut.example/": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, "short")
		},
		"http://slam.example/": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	})
	w.Lose("gone.example", nil)
	w.Lose("shaky.example", errors.New("server misbehaving"))
	for url, want := range map[string]struct {
		cause ledger.Cause
		says  string
	}{
		"http://gone.example/":       {ledger.CauseDNS, "does not exist"},
		"https://expired.example/":   {ledger.CauseTLS, "expired"},
		"https://wronghost.example/": {ledger.CauseTLS, "another host"},
		"https://unknownca.example/": {ledger.CauseTLS, "unknown authority"},
		"https://plain.example:80/":  {ledger.CauseTLS, "no TLS"},
		"http://cut.example/":        {ledger.CauseConnect, "EOF"},
		"http://slam.example/":       {ledger.CauseConnect, "EOF"},
		"ftp://a.example/":           {ledger.CauseBlocked, "only http and https"},
		"http:///nohost":             {ledger.CauseBlocked, "no host"},
	} {
		if f := failure(t, c, url); f.Cause != want.cause || !strings.Contains(f.Message, want.says) {
			t.Errorf("%s: got %s, %q; want %s, %q", url, f.Cause, f.Message, want.cause, want.says)
		}
	}
}

func TestTimeoutsNameThePhase(t *testing.T) {
	hold := make(chan struct{})
	defer close(hold)
	c, _, _ := newClient(t, fetch.Options{Timeout: 300 * time.Millisecond}, map[string]http.HandlerFunc{
		"http://silent.example/": func(http.ResponseWriter, *http.Request) { <-hold },
		"http://drip.example/": func(w http.ResponseWriter, r *http.Request) {
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					_, _ = io.WriteString(w, "x")
					w.(http.Flusher).Flush()
				case <-r.Context().Done():
					return
				}
			}
		},
	})
	for url, says := range map[string]string{"http://silent.example/": "headers", "http://drip.example/": "body"} {
		started := time.Now()
		f := failure(t, c, url)
		if f.Cause != ledger.CauseTimeout || !strings.Contains(f.Message, says) {
			t.Errorf("%s: got %s, %q; want a timeout of the %s", url, f.Cause, f.Message, says)
		}
		if took := time.Since(started); took > 15*time.Second { // of a drip that never ends
			t.Errorf("%s: took %s", url, took)
		}
	}
}

func TestCancelledContextIsReturnedAsItIs(t *testing.T) {
	hold := make(chan struct{})
	defer close(hold)
	arrived := make(chan struct{})
	c, _, _ := newClient(t, fetch.Options{}, map[string]http.HandlerFunc{
		"http://silent.example/": func(http.ResponseWriter, *http.Request) { close(arrived); <-hold },
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	if _, err := c.Get(ctx, fetch.Request{URL: "http://silent.example/"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestAddressesGoOutAsTheyCameIn(t *testing.T) {
	var raw string
	s := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { raw = r.Host + " " + r.RequestURI })
	w := crawltest.New(t, s)
	c := fetch.New(w.Options(fetch.Options{HostGap: -1}))
	defer c.Close()
	for url, want := range map[string]string{
		" http://a.example/x%D1%81%20y?q=%20+&r ": "a.example /x%D1%81%20y?q=%20+&r",
		"http://a.example/щи борщ?q=щи борщ":      "a.example /%D1%89%D0%B8%20%D0%B1%D0%BE%D1%80%D1%89?q=%D1%89%D0%B8%20%D0%B1%D0%BE%D1%80%D1%89",
		"http://пример.example/":                  "xn--e1afmkfd.example /",
		"http://A.EXAMPLE/#top":                   "a.example /",
	} {
		if _, err := c.Get(t.Context(), fetch.Request{URL: url}); err != nil || raw != want {
			t.Errorf("%q: went out as %q (%v), want %q", url, raw, err, want)
		}
	}
}
