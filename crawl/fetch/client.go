// Package fetch is the one HTTP client of the crawlers: polite to the servers
// it asks and careful with what they answer. It knows nothing of feeds.
package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/ledger"
)

// Resolver resolves host names; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Options set a Client up. The zero value of each field takes its default.
type Options struct {
	UserAgent string   // default UserAgent("", "")
	Proxy     *url.URL // http, https or socks5, for all but allowed private hosts; default none, the environment is not asked

	MaxFeedBytes int64 // of a decompressed feed; default 10 MiB
	MaxPageBytes int64 // of a decompressed page; default 4 MiB

	ConnectTimeout time.Duration // name resolution and TCP; default 10 s
	TLSTimeout     time.Duration // default 10 s
	HeaderTimeout  time.Duration // from the request to the answer's headers; default 20 s
	Timeout        time.Duration // of an exchange with all its redirects, waits for a host's turn aside; default 60 s

	HostParallel int           // requests in flight to one host; default 2
	HostGap      time.Duration // between two starts to one host; default 500 ms, negative for none
	PauseDefault time.Duration // after a 429 without Retry-After, doubled each time in a row; default 30 min

	Resolver Resolver                                                          // default net.DefaultResolver
	Dial     func(ctx context.Context, network, addr string) (net.Conn, error) // to an address that was checked; default a net.Dialer
	TLS      *tls.Config                                                       // default the system's roots

	Now        func() time.Time      // default time.Now; pauses are counted by it
	Registerer prometheus.Registerer // default none
}

// UserAgent is what vesti calls itself: a name with a version and an address
// where a site's owner can find out who asks and complain. An empty contact is
// vesti's own page.
func UserAgent(version, contact string) string {
	if version == "" {
		version = "dev"
	}
	if contact == "" {
		contact = "https://vesti.nixg.ru"
	}
	return fmt.Sprintf("vesti/%s (feed reader; +%s)", version, contact)
}

// The most redirects that are followed in one chain.
const maxRedirects = 10

// Client gets feeds and pages. It is safe for concurrent use.
type Client struct {
	opts    Options
	public  *http.Transport // refuses private addresses
	private *http.Transport // for hosts that a request allows; connections are never shared between the two
	guard   guard
	pace    *pacer
	metrics *metrics
}

// New returns a client. Close it when nothing uses it any more.
func New(opts Options) *Client {
	opts = opts.withDefaults()
	c := &Client{
		opts:    opts,
		guard:   newGuard(),
		pace:    newPacer(opts.HostParallel, opts.HostGap, opts.Now),
		metrics: newMetrics(opts.Registerer),
	}
	c.public = c.transport(false)
	c.private = c.transport(true)
	return c
}

func (o Options) withDefaults() Options {
	setDefault(&o.UserAgent, UserAgent("", ""))
	setDefault(&o.MaxFeedBytes, 10<<20)
	setDefault(&o.MaxPageBytes, 4<<20)
	setDefault(&o.ConnectTimeout, 10*time.Second)
	setDefault(&o.TLSTimeout, 10*time.Second)
	setDefault(&o.HeaderTimeout, 20*time.Second)
	setDefault(&o.Timeout, time.Minute)
	setDefault(&o.HostParallel, 2)
	setDefault(&o.HostGap, 500*time.Millisecond)
	setDefault(&o.PauseDefault, 30*time.Minute)
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// transport is used bare: redirects, cookies and their like are decided here,
// not by an http.Client.
func (c *Client) transport(private bool) *http.Transport {
	d := &dialer{
		guard: c.guard, private: private, resolver: c.opts.Resolver, dial: c.opts.Dial, timeout: c.opts.ConnectTimeout,
	}
	t := &http.Transport{
		DialContext:            d.DialContext,
		TLSClientConfig:        c.opts.TLS.Clone(),
		TLSHandshakeTimeout:    c.opts.TLSTimeout,
		ResponseHeaderTimeout:  c.opts.HeaderTimeout,
		MaxResponseHeaderBytes: 256 << 10,
		MaxIdleConns:           64,
		MaxIdleConnsPerHost:    1,
		IdleConnTimeout:        30 * time.Second,
		DisableCompression:     true, // Accept-Encoding and the decoding are ours
		ForceAttemptHTTP2:      true,
	}
	if c.opts.Proxy != nil && !private {
		t.Proxy = http.ProxyURL(c.opts.Proxy)
		d.proxy = HostPort(c.opts.Proxy)
	}
	return t
}

// Close closes idle connections.
func (c *Client) Close() {
	c.public.CloseIdleConnections()
	c.private.CloseIdleConnections()
}

// Pause keeps every request away from the host of rawURL until then, as after
// a 429; from that URL alone where the host is a private one that its source
// allows. A restarted crawler hands over the pauses it had.
func (c *Client) Pause(rawURL string, until time.Time) {
	if u, err := parseURL(rawURL); err == nil {
		c.pace.pause(hostName(u), until)
		c.pace.pause(u.String(), until)
	}
}

// Get gets one URL, following redirects. It waits for the host's turn first.
//
// Errors are *crawl.Error with the causes dns, connect, tls, timeout, http,
// gone, too_large, blocked and redirect; *crawl.Throttled for a 429, a 503 with
// Retry-After and for a host that is paused because of one; and ctx's own when
// ctx ended.
func (c *Client) Get(ctx context.Context, r Request) (*Response, error) {
	u, err := parseURL(r.URL)
	if err != nil {
		return nil, &crawl.Error{Cause: ledger.CauseBlocked, Message: err.Error(), Err: err}
	}
	r = c.withDefaults(r)
	ch := &chain{client: c, request: r, first: u, url: u, permanent: true, left: r.Timeout}
	for ch.hops = 0; ; ch.hops++ {
		resp, err := ch.hop(ctx)
		if err != nil {
			c.metrics.failed(r.ForPage, err)
			return nil, err
		}
		if resp != nil {
			c.metrics.succeeded(r.ForPage, resp)
			return resp, nil
		}
	}
}

func (c *Client) withDefaults(r Request) Request {
	setDefault(&r.UserAgent, c.opts.UserAgent)
	setDefault(&r.Timeout, c.opts.Timeout)
	if r.ForPage {
		setDefault(&r.Accept, AcceptPage)
		setDefault(&r.MaxBytes, c.opts.MaxPageBytes)
	}
	setDefault(&r.Accept, AcceptFeed)
	setDefault(&r.MaxBytes, c.opts.MaxFeedBytes)
	return r
}

// throttled says how long the host wants to be left alone, and pauses it.
func (c *Client) throttled(key string, resp *http.Response) *crawl.Throttled {
	now := c.opts.Now()
	until, ok := retryAfter(resp.Header, now)
	if !ok {
		until = now.Add(c.opts.PauseDefault << min(c.pace.strikes(key), 5))
	}
	until = clampPause(until, now)
	c.pace.pause(key, until)
	return &crawl.Throttled{
		Until: until, HTTPStatus: resp.StatusCode,
		Message: fmt.Sprintf("%s asks to wait (%s)", resp.Request.URL.Host, statusText(resp.StatusCode)),
	}
}

// asThrottled turns a pause into the error that callers know.
func asThrottled(host string, err error) error {
	if p, ok := errors.AsType[*pausedError](err); ok {
		return &crawl.Throttled{Until: p.until, Message: host + " asked to wait"}
	}
	return err
}
