package fetch_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/fetch"
	"vesti.nixg.ru/ledger"
)

func addrs(list ...string) []netip.Addr {
	out := make([]netip.Addr, len(list))
	for i, s := range list {
		out[i] = netip.MustParseAddr(s)
	}
	return out
}

func TestPrivateAddressesAreNotDialled(t *testing.T) {
	c, s, w := newClient(t, fetch.Options{}, nil)
	for _, a := range []string{
		"127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.0.10", "169.254.169.254",
		"100.64.0.1", "100.100.100.200", "192.0.0.192", "198.18.0.1", "203.0.113.7", "224.0.0.1", "255.255.255.255", "168.63.129.16",
		"::1", "::", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1",
		"64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::", "2001:db8::1", "2001::1", "100::1", "::127.0.0.1",
	} {
		w.SetDNS("named.example", addrs(a))
		literal := a
		if strings.Contains(a, ":") {
			literal = "[" + a + "]"
		}
		for _, target := range []string{"http://named.example/", "http://" + literal + "/", "https://" + literal + ":8443/"} {
			if f := failure(t, c, target); f.Cause != ledger.CauseBlocked || !strings.Contains(f.Message, "private") {
				t.Errorf("%s with %s: got %s, %q; want blocked", target, a, f.Cause, f.Message)
			}
		}
	}
	if got := w.Dialed(); len(got) > 0 || len(s.asked()) > 0 {
		t.Errorf("dialled %v", got)
	}
}

func TestPublicAddressesAreDialled(t *testing.T) {
	c, _, w := newClient(t, fetch.Options{}, map[string]http.HandlerFunc{"http://named.example/": say("ok")})
	for _, a := range []string{"9.9.9.9", "100.63.255.255", "172.32.0.1", "2606:4700::1111", "64:ff9b::909:909", "::ffff:9.9.9.9"} {
		w.SetDNS("named.example", addrs(a))
		if _, err := c.Get(t.Context(), fetch.Request{URL: "http://named.example/"}); err != nil {
			t.Errorf("%s: %v", a, err)
		}
		c.Close()
	}
}

func TestOfMixedAnswersOnlyPublicOnesAreDialled(t *testing.T) {
	c, _, w := newClient(t, fetch.Options{}, map[string]http.HandlerFunc{"http://mixed.example/": say("ok")})
	w.SetDNS("mixed.example", addrs("10.0.0.8", "9.9.9.9", "::1"))
	if _, err := c.Get(t.Context(), fetch.Request{URL: "http://mixed.example/"}); err != nil {
		t.Fatal(err)
	}
	if got, want := w.Dialed(), []netip.AddrPort{netip.MustParseAddrPort("9.9.9.9:80")}; !slices.Equal(got, want) {
		t.Errorf("dialled %v, want %v", got, want)
	}
}

func TestASecondAnswerOfTheDNSChangesNothing(t *testing.T) {
	c, _, w := newClient(t, fetch.Options{}, map[string]http.HandlerFunc{"http://flip.example/": say("ok", "Connection", "close")})
	w.SetDNS("flip.example", addrs("9.9.9.9"), addrs("127.0.0.1"))
	if _, err := c.Get(t.Context(), fetch.Request{URL: "http://flip.example/"}); err != nil {
		t.Fatal(err)
	}
	if f := failure(t, c, "http://flip.example/"); f.Cause != ledger.CauseBlocked {
		t.Errorf("after the name flipped: got %s, %q", f.Cause, f.Message)
	}
	if got := w.Dialed(); len(got) != 1 {
		t.Errorf("dialled %v", got)
	}
}

func TestRedirectsAreGuardedHopByHop(t *testing.T) {
	c, _, w := newClient(t, fetch.Options{}, map[string]http.HandlerFunc{
		"http://a.example/":  redirect(301, "http://169.254.169.254/latest/meta-data/"),
		"http://b.example/":  redirect(302, "http://inner.example/"),
		"http://c.example/":  redirect(302, "http://[::ffff:7f00:1]/"),
		"http://d.example/":  redirect(302, "http://localhost:9200/"),
		"http://e.example/x": redirect(302, "gopher://b.example/"),
	})
	w.SetDNS("inner.example", addrs("10.1.2.3"))
	w.SetDNS("localhost", addrs("127.0.0.1"))
	for _, u := range []string{"http://a.example/", "http://b.example/", "http://c.example/", "http://d.example/", "http://e.example/x"} {
		if f := failure(t, c, u); f.Cause != ledger.CauseBlocked {
			t.Errorf("%s: got %s, %q; want blocked", u, f.Cause, f.Message)
		}
	}
	for _, a := range w.Dialed() {
		if a.Addr().As4()[0] != 9 {
			t.Errorf("dialled %s", a)
		}
	}
}

// An allowed private host is reached under its own name and port, and by the
// sources that allow it only, even over a connection that is still open.
func TestAllowPrivateIsForOwnHostsOnly(t *testing.T) {
	c, _, w := newClient(t, fetch.Options{}, map[string]http.HandlerFunc{
		"http://nas.example/feed":  say("ok"),
		"http://nas.example/there": redirect(302, "http://nas.example:9200/"),
		"http://nas.example/other": redirect(302, "http://db.example/"),
	})
	w.SetDNS("nas.example", addrs("192.168.1.5"))
	w.SetDNS("db.example", addrs("192.168.1.6"))
	src := crawl.Source{FeedURL: "http://NAS.example./feed", AllowPrivate: true}
	ask := func(src crawl.Source, u string) error {
		_, err := c.Get(t.Context(), fetch.ForPage(src, u))
		return err
	}
	if err := ask(src, "http://nas.example/feed"); err != nil {
		t.Fatalf("own host: %v", err)
	}
	for _, u := range []string{"http://nas.example:9200/", "http://db.example/", "http://nas.example/there", "http://nas.example/other"} {
		if err := ask(src, u); err == nil || !strings.Contains(err.Error(), "private") {
			t.Errorf("%s: got %v, want blocked", u, err)
		}
	}
	src.AllowPrivate = false
	if err := ask(src, "http://nas.example/feed"); err == nil || !strings.Contains(err.Error(), "private") {
		t.Errorf("without allow_private: got %v, want blocked", err)
	}
}

// Behind a proxy, which may be a private address itself, names are judged by
// what they resolve to here, and left to the proxy where they do not resolve.
func TestGuardBehindProxy(t *testing.T) {
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.String())
		_, _ = w.Write([]byte("by proxy"))
	}))
	defer proxy.Close()
	proxyURL, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	_, _, w := newClient(t, fetch.Options{}, nil)
	w.SetDNS("inner.example", addrs("10.1.2.3"))
	w.Lose("far.example", nil)
	opts := w.Options(fetch.Options{Proxy: proxyURL, HostGap: -1})
	opts.Dial = nil
	c := fetch.New(opts)
	defer c.Close()
	for _, u := range []string{"http://near.example/", "http://far.example/"} {
		if resp, err := c.Get(t.Context(), fetch.Request{URL: u}); err != nil || string(resp.Body) != "by proxy" {
			t.Errorf("%s: got %v, %v", u, resp, err)
		}
	}
	for _, u := range []string{"http://inner.example/", "http://127.0.0.1/", proxy.URL} {
		if f := failure(t, c, u); f.Cause != ledger.CauseBlocked {
			t.Errorf("%s: got %s, %q; want blocked", u, f.Cause, f.Message)
		}
	}
	if len(asked) != 2 {
		t.Errorf("the proxy was asked for %v", asked)
	}
}
