package httpui_test

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"vesti.nixg.ru/httpui"
)

func pagePaths() []string {
	return []string{"/", "/?q=kernel", "/crawlers", "/crawlers/lwn", "/account", "/help"}
}

func TestEverythingIsBehindTheLogin(t *testing.T) {
	d := newDesk(t, demoSources())
	stranger := newClient(t)
	for _, path := range append(pagePaths(), "/posts/1") {
		res, page := d.getAs(stranger, path)
		if res.Request.URL.Path != "/login" {
			t.Errorf("GET %s led a stranger to %s", path, res.Request.URL)
		}
		wantNotIn(t, page, "Kernel Weekly", "kernel weekly")
	}
	for _, path := range []string{
		"/posts/1/review", "/posts/1/requeue", "/crawlers/run", "/crawlers/work", "/crawlers/reset", "/account/password",
		"/account/tokens", "/account/tokens/revoke", "/logout", "/logout/all",
	} {
		if res, _ := d.postAs(stranger, path, url.Values{}); res.Request.URL.Path != "/login" {
			t.Errorf("POST %s by a stranger led to %s", path, res.Request.URL)
		}
	}
	for _, path := range []string{"/api/v1/queue", "/api/v1/sources", "/api/v1/sources/lwn", "/api/v1/search", "/api/v1/posts/1", "/metrics"} {
		if res, _ := d.getAs(stranger, path); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("GET %s by a stranger: %s", path, res.Status)
		}
	}
	for _, path := range []string{"/api/v1/crawl", "/api/v1/work", "/api/v1/reset", "/api/v1/posts/1/review", "/api/v1/posts/1/requeue"} {
		if res, _ := d.postAs(stranger, path, nil); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("POST %s by a stranger: %s", path, res.Status)
		}
	}
	if asked := d.commands(); len(asked) != 0 {
		t.Errorf("a stranger made it %v", asked)
	}
	for _, path := range []string{"/healthz", "/readyz", "/login"} {
		if res, _ := d.getAs(stranger, path); res.StatusCode != http.StatusOK {
			t.Errorf("GET %s by a stranger: %s", path, res.Status)
		}
	}
}

func TestLoginLeadsBackButNowhereElse(t *testing.T) {
	d := newDesk(t, demoSources())
	stranger := newClient(t)
	res, page := d.getAs(stranger, "/crawlers?show=dead")
	if next := res.Request.URL.Query().Get("next"); next != "/crawlers?show=dead" {
		t.Errorf("sent to the login with next=%q", next)
	}
	wantIn(t, page, `name="next" value="/crawlers?show=dead"`)
	for next, want := range map[string]string{
		"/crawlers?show=dead":     "/crawlers?show=dead",
		"":                        "/",
		"//evil.example":          "/",
		"https://evil.example/":   "/",
		`/\evil.example`:          "/",
		"/\t/evil.example":        "/",
		"javascript:alert(1)":     "/",
		"crawlers":                "/",
		"/login?next=/login":      "/",
		"/%2f/evil.example":       "/%2f/evil.example", // a path of ours, whatever it holds
		"https:evil.example":      "/",
		"/posts/1#<script>":       "/posts/1#<script>",
		"http:///evil.example/..": "/",
	} {
		c := newClient(t)
		c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		res, _ := d.postAs(c, "/login", url.Values{"password": {d.password}, "next": {next}})
		got, err := url.PathUnescape(res.Header.Get("Location"))
		if plain, _ := url.PathUnescape(want); err != nil || res.StatusCode != http.StatusSeeOther || got != plain {
			t.Errorf("next=%q: %s to %q, want %q", next, res.Status, res.Header.Get("Location"), want)
		}
	}
}

func TestSessionCookie(t *testing.T) {
	for name, tt := range map[string]struct {
		external string
		secure   bool
		path     string
	}{
		"plain":        {"", false, "/"},
		"behind https": {"https://desk.example.org/vesti/", true, "/vesti/"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, nil)
			d.rebuild(func(o *httpui.Options) { o.ExternalURL = tt.external })
			c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
			res, _ := d.postAs(c, "/login", url.Values{"password": {d.password}})
			if len(res.Cookies()) != 1 {
				t.Fatalf("cookies %v", res.Cookies())
			}
			k := res.Cookies()[0]
			if !k.HttpOnly || k.SameSite != http.SameSiteLaxMode || k.Secure != tt.secure || k.Path != tt.path || len(k.Value) != 64 {
				t.Errorf("cookie %+v", k)
			}
		})
	}
}

func TestWrongPasswordsAreRefusedAndThenSlowedDown(t *testing.T) {
	d := newDesk(t, nil)
	stranger := newClient(t)
	for i := range 30 {
		res, page := d.postAs(stranger, "/login", url.Values{"password": {"wrong"}, "next": {"/crawlers"}})
		wantIn(t, page, `value="/crawlers"`, `role="alert"`)
		if res.StatusCode == http.StatusTooManyRequests {
			if after, err := strconv.Atoi(res.Header.Get("Retry-After")); err != nil || after < 1 {
				t.Errorf("Retry-After of a refused login: %q", res.Header.Get("Retry-After"))
			}
			if i < 5 {
				t.Errorf("slowed down after %d attempts", i)
			}
			wantIn(t, page, "Too many attempts. Try again in ")
			return
		}
		if res.StatusCode != http.StatusForbidden {
			t.Fatalf("wrong password: %s", res.Status)
		}
		wantIn(t, page, "That is not the password.")
	}
	t.Error("30 wrong passwords and no end")
}

func TestAddressBehindATrustedProxy(t *testing.T) {
	d := newDesk(t, nil)
	guess := func(forwarded string) int {
		res, _ := d.postAs(newClient(t), "/login", url.Values{"password": {"wrong"}}, "X-Forwarded-For", forwarded)
		return res.StatusCode
	}
	exhaust := func(forwarded string) {
		for range 30 {
			if guess(forwarded) == http.StatusTooManyRequests {
				return
			}
		}
		t.Fatal("never slowed down")
	}
	d.rebuild(func(o *httpui.Options) { o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	exhaust("203.0.113.1, 198.51.100.1")
	if guess("198.51.100.2") != http.StatusForbidden {
		t.Error("another address behind the proxy is slowed down as well")
	}
	if guess("203.0.113.99, 198.51.100.1") != http.StatusTooManyRequests {
		t.Error("what the client writes before its address changes who it is")
	}
	d.rebuild()
	exhaust("198.51.100.3")
	if guess("198.51.100.4") != http.StatusTooManyRequests {
		t.Error("X-Forwarded-For of a peer that is not trusted is believed")
	}
}

func TestLogoutAndPasswordChange(t *testing.T) {
	d := newDesk(t, nil)
	other := newClient(t)
	d.logIn(other)
	page := d.get("/account")
	wantIn(t, page, "this one")
	if n := strings.Count(page, "last seen"); n != 2 {
		t.Errorf("%d sessions on the page, want 2", n)
	}

	change := func(old, next, again string) (*http.Response, string) {
		return d.postAs(d.client, "/account/password", url.Values{"old": {old}, "new": {next}, "again": {again}})
	}
	if res, page := change(d.password, "a new password", "another one!"); res.StatusCode != http.StatusBadRequest {
		t.Errorf("differing passwords: %s", res.Status)
	} else {
		wantIn(t, page, "The two new passwords differ.")
	}
	if res, page := change(d.password, "short", "short"); res.StatusCode != http.StatusBadRequest {
		t.Errorf("short password: %s", res.Status)
	} else {
		wantIn(t, page, "At least 10 characters.")
	}
	if res, page := change("wrong", "a new password", "a new password"); res.StatusCode != http.StatusForbidden {
		t.Errorf("wrong old password: %s", res.Status)
	} else {
		wantIn(t, page, "That is not the password.")
	}
	_, page = change(d.password, "a new password", "a new password")
	wantIn(t, page, "Password changed. All other sessions were ended.")
	if res, _ := d.getAs(other, "/"); res.Request.URL.Path != "/login" {
		t.Errorf("the other session leads to %s", res.Request.URL)
	}
	d.password = "a new password"
	d.logIn(other)
	d.postAs(other, "/logout", nil)
	if res, _ := d.getAs(other, "/"); res.Request.URL.Path != "/login" {
		t.Errorf("after logout: %s", res.Request.URL)
	}
	d.get("/")
	d.logIn(other)
	d.postAs(other, "/logout/all", nil)
	if res, _ := d.getAs(d.client, "/"); res.Request.URL.Path != "/login" {
		t.Errorf("after logout everywhere: %s", res.Request.URL)
	}
}

func TestOtherSitesCannotPressButtons(t *testing.T) {
	d := newDesk(t, demoSources())
	for name, headers := range map[string][]string{
		"fetch metadata":       {"Sec-Fetch-Site", "cross-site"},
		"same site, other app": {"Sec-Fetch-Site", "same-site"},
		"origin":               {"Origin", "https://evil.example"},
		"null origin":          {"Origin", "null"},
	} {
		for _, path := range []string{"/crawlers/run", "/login", "/preferences", "/api/v1/crawl", "/logout"} {
			res, _ := d.postAs(d.client, path, url.Values{"password": {d.password}}, headers...)
			if res.StatusCode != http.StatusForbidden {
				t.Errorf("%s: POST %s: %s", name, path, res.Status)
			}
		}
	}
	if asked := d.commands(); len(asked) != 0 {
		t.Errorf("another site made it %v", asked)
	}
	for name, headers := range map[string][]string{
		"same origin":      {"Sec-Fetch-Site", "same-origin", "Origin", d.http.URL},
		"older browser":    {"Origin", d.http.URL},
		"typed by a human": {"Sec-Fetch-Site", "none"},
	} {
		if res, _ := d.postAs(d.client, "/crawlers/run", nil, headers...); res.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", name, res.Status)
		}
	}
	d.rebuild(func(o *httpui.Options) { o.ExternalURL = "https://desk.example.org" })
	res, _ := d.postAs(newClient(t), "/login", url.Values{"password": {"wrong"}}, "Sec-Fetch-Site", "cross-site", "Origin", "https://desk.example.org")
	if res.StatusCode != http.StatusForbidden || res.Header.Get("Content-Language") == "" {
		t.Errorf("the external address: %s", res.Status)
	}
}

func TestTokens(t *testing.T) {
	d := newDesk(t, demoSources())
	page := d.post("/account/tokens", url.Values{"name": {"grafana <b>"}})
	wantIn(t, page, "grafana &lt;b&gt;")
	_, rest, _ := strings.Cut(page, `<pre tabindex="0">`)
	secret, _, _ := strings.Cut(rest, "</pre>")
	if len(secret) != 64 {
		t.Fatalf("token %q", secret)
	}
	wantNotIn(t, d.get("/account"), secret)
	program := &http.Client{}
	for _, path := range []string{"/metrics", "/api/v1/queue"} {
		if res, _ := d.getAs(program, path, "Authorization", "Bearer "+secret); res.StatusCode != http.StatusOK {
			t.Errorf("GET %s with the token: %s", path, res.Status)
		}
		if res, _ := d.getAs(program, path, "Authorization", "Bearer x"+secret[1:]); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("GET %s with a wrong token: %s", path, res.Status)
		}
	}
	if res, _ := d.getAs(program, "/", "Authorization", "Bearer "+secret); res.Request.URL.Path != "/login" {
		t.Errorf("a token opens pages: %s", res.Request.URL)
	}
	_, rest, _ = strings.Cut(d.get("/account"), `name="id" value="`)
	id, _, _ := strings.Cut(rest, `"`)
	wantNotIn(t, d.post("/account/tokens/revoke", url.Values{"id": {id}}), "grafana")
	if res, _ := d.getAs(program, "/metrics", "Authorization", "Bearer "+secret); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("revoked token: %s", res.Status)
	}
	if res, _ := d.postAs(d.client, "/account/tokens", url.Values{"name": {"  "}}); res.StatusCode != http.StatusBadRequest {
		t.Errorf("token without a name: %s", res.Status)
	}
}

func TestBelowAPath(t *testing.T) {
	d := newDesk(t, demoSources())
	d.rebuild(func(o *httpui.Options) { o.ExternalURL = "http://desk.example.org/news" })
	for name, prefix := range map[string]string{"proxy keeps the path": "/news", "proxy takes it off": ""} {
		t.Run(name, func(t *testing.T) {
			// The cookie's path is the external one, which this client never sees.
			c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
			res, _ := d.getAs(c, prefix+"/crawlers")
			if to := res.Header.Get("Location"); to != "/news/login?next=%2Fnews%2Fcrawlers" {
				t.Errorf("sent to %q", to)
			}
			res, _ = d.postAs(c, prefix+"/login", url.Values{"password": {d.password}, "next": {"/news/crawlers"}})
			if to := res.Header.Get("Location"); to != "/news/crawlers" {
				t.Fatalf("after login sent to %q", to)
			}
			_, page := d.getAs(c, prefix+"/crawlers", "Cookie", "vesti_session="+res.Cookies()[0].Value)
			wantIn(t, page, `href="/news/crawlers/lwn"`, `formaction="/news/crawlers/run"`, `value="/news/crawlers"`)
			if strings.Contains(page, `="/crawlers`) || strings.Contains(page, `="/assets`) {
				t.Error("a link leaves the path")
			}
			_, rest, _ := strings.Cut(page, `stylesheet" href="/news`)
			sheet, _, _ := strings.Cut(rest, `"`)
			if res, _ := d.getAs(c, prefix+sheet); res.StatusCode != http.StatusOK {
				t.Errorf("style sheet %s: %s", prefix+sheet, res.Status)
			}
		})
	}
}

func TestBrokenOptions(t *testing.T) {
	if _, err := httpui.New(httpui.Options{}); err == nil || !strings.Contains(err.Error(), "Queue") {
		t.Errorf("no options: %v", err)
	}
	d := newDesk(t, nil)
	for _, external := range []string{"desk.example.org", "ftp://x", "https://", "https://u:p@x/", "https://x/?q", "https://x/#f", "://"} {
		o := d.options
		o.ExternalURL = external
		if _, err := httpui.New(o); err == nil {
			t.Errorf("external URL %q was taken", external)
		}
	}
}

func TestReady(t *testing.T) {
	d := newDesk(t, nil)
	d.mu.Lock()
	d.ready = errors.New("the search index is being opened")
	d.mu.Unlock()
	if res, body := d.getAs(newClient(t), "/readyz"); res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "search index") {
		t.Errorf("not ready: %s %q", res.Status, body)
	}
	if res, body := d.getAs(newClient(t), "/healthz"); res.StatusCode != http.StatusOK || body != "ok\n" {
		t.Errorf("healthz: %s %q", res.Status, body)
	}
}

// TestLongAddress: whatever the length of an address, it is answered at once,
// by the server as it is run and not only by its handler.
func TestLongAddress(t *testing.T) {
	d := newDesk(t, demoSources())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := d.server.HTTPServer()
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		<-ended
	})
	d.http.URL = "http://" + listener.Addr().String()
	d.logIn(d.client)
	for _, tt := range []struct{ letters, status int }{
		{1000, http.StatusOK},
		{12 << 10, http.StatusRequestURITooLong},
		{20 << 10, http.StatusRequestURITooLong},
		{31 << 10, http.StatusRequestURITooLong},
		{200 << 10, http.StatusRequestHeaderFieldsTooLarge},
	} {
		began := time.Now()
		res, page := d.getAs(d.client, "/?q="+strings.Repeat("a", tt.letters))
		if res.StatusCode != tt.status {
			t.Errorf("%d letters: %s, want %d", tt.letters, res.Status, tt.status)
		}
		if took := time.Since(began); took > headerTime/2 {
			t.Errorf("%d letters: answered after %s", tt.letters, took)
		}
		if tt.status == http.StatusRequestURITooLong {
			wantIn(t, page, "The address is too long", `href="/"`)
			if len(page) > 32<<10 {
				t.Errorf("%d letters: a page of %d bytes", tt.letters, len(page))
			}
		}
	}
	res, answer := d.getAs(d.client, "/api/v1/search?q="+strings.Repeat("a", 20<<10))
	if res.StatusCode != http.StatusRequestURITooLong || !strings.Contains(answer, `"error"`) {
		t.Errorf("the API: %s %s", res.Status, answer)
	}
}

// headerTime is how long the server waits for the head of a request.
const headerTime = 10 * time.Second
