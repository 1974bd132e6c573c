package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/idna"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/ledger"
)

// chain is one exchange: a request and the redirects that it leads through.
type chain struct {
	client    *Client
	request   Request
	first     *url.URL // the request's own
	url       *url.URL // of this hop
	seen      []string // of the hops before
	hops      int
	permanent bool          // every redirect until now was permanent
	moved     string        // the last target of the permanent ones
	left      time.Duration // of the exchange's time
}

// phase is how far a hop has come; it makes a timeout's message precise.
type phase struct{ atomic.Int32 }

const (
	phaseConnect = iota
	phaseTLS
	phaseHeaders
	phaseBody
)

func (p *phase) String() string {
	switch p.Load() {
	case phaseConnect:
		return "connecting"
	case phaseTLS:
		return "the TLS handshake"
	case phaseHeaders:
		return "waiting for the answer's headers"
	default:
		return "reading the body"
	}
}

// hop makes one request. It returns neither response nor error after a
// redirect, having moved the chain on to the target.
func (ch *chain) hop(ctx context.Context) (*Response, error) {
	release, err := ch.client.pace.acquire(ctx, ch.paceKey())
	if err != nil {
		return nil, asThrottled(ch.url.Host, err)
	}
	defer release()
	defer ch.client.metrics.enter()()

	started := time.Now()
	defer func() { ch.left -= time.Since(started) }()
	hopCtx, cancel := context.WithTimeout(ctx, ch.left)
	defer cancel()

	at := new(phase)
	resp, err := ch.send(hopCtx, at)
	if err != nil {
		return nil, ch.failure(ctx, at, err)
	}
	defer resp.Body.Close()
	if isRedirect(resp) {
		return nil, ch.redirect(resp)
	}
	if err := ch.refusal(resp); err != nil {
		return nil, err
	}
	ch.client.pace.forgive(ch.paceKey())
	return ch.answer(ctx, at, resp)
}

// paceKey is what requests are paced by: the host, whatever the scheme and
// port; the whole URL where the host is one that the source's owner runs.
func (ch *chain) paceKey() string {
	if ch.allowed() {
		return ch.url.String()
	}
	return hostName(ch.url)
}

func (ch *chain) allowed() bool {
	return slices.Contains(ch.request.AllowPrivate, HostPort(ch.url))
}

func (ch *chain) send(ctx context.Context, at *phase) (*http.Response, error) {
	if ch.client.opts.Proxy != nil && !ch.allowed() {
		if err := ch.client.guard.checkBehindProxy(ctx, ch.client.opts.Resolver, hostName(ch.url)); err != nil {
			return nil, err
		}
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		TLSHandshakeStart:    func() { at.Store(phaseTLS) },
		GotConn:              func(httptrace.GotConnInfo) { at.Store(phaseHeaders) },
		GotFirstResponseByte: func() { at.Store(phaseBody) },
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, ch.url.String(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("build request: %w", err)
	}
	ch.setHeaders(req)
	if ch.allowed() {
		return ch.client.private.RoundTrip(req)
	}
	return ch.client.public.RoundTrip(req)
}

func (ch *chain) setHeaders(req *http.Request) {
	r := ch.request
	h := req.Header
	if u := ch.url.User; u != nil {
		password, _ := u.Password()
		req.SetBasicAuth(u.Username(), password)
	}
	h.Set("Accept", r.Accept)
	h.Set("Accept-Encoding", acceptEncoding)
	if r.ETag != "" {
		h["If-None-Match"] = []string{r.ETag}
	}
	if r.LastModified != "" {
		h["If-Modified-Since"] = []string{r.LastModified}
	}
	if ch.url.Scheme == ch.first.Scheme && HostPort(ch.url) == HostPort(ch.first) {
		for name, value := range r.Headers {
			if strings.EqualFold(name, "Host") {
				req.Host = value
				continue
			}
			h.Set(name, value)
		}
	}
	h.Set("User-Agent", r.UserAgent)
}

func isRedirect(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect:
		return resp.Header.Get("Location") != ""
	default:
		return false
	}
}

// redirect moves the chain on to the answer's target.
func (ch *chain) redirect(resp *http.Response) error {
	fail := func(cause ledger.Cause, format string, args ...any) error {
		return &crawl.Error{Cause: cause, HTTPStatus: resp.StatusCode, Message: fmt.Sprintf(format, args...)}
	}
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10) // a short body leaves the connection usable
	target, err := ch.url.Parse(strings.TrimSpace(resp.Header.Get("Location")))
	if err != nil {
		return fail(ledger.CauseRedirect, "%s: redirect to an address that cannot be read", where(ch.url.String()))
	}
	if target, err = parseURL(target.String()); err != nil {
		return fail(ledger.CauseBlocked, "%s: redirect refused: %v", where(ch.url.String()), err)
	}
	ch.seen = append(ch.seen, ch.url.String())
	if slices.Contains(ch.seen, target.String()) {
		return fail(ledger.CauseRedirect, "redirect loop: %s leads back to %s", where(ch.url.String()), where(target.String()))
	}
	if ch.hops+1 > maxRedirects {
		return fail(ledger.CauseRedirect, "more than %d redirects, the last to %s", maxRedirects, where(target.String()))
	}
	if code := resp.StatusCode; code != http.StatusMovedPermanently && code != http.StatusPermanentRedirect {
		ch.permanent = false
	}
	if ch.permanent {
		ch.moved = target.String()
	}
	ch.url = target
	return nil
}

// refusal is the error for an answer that is no success; nil for one that is.
func (ch *chain) refusal(resp *http.Response) error {
	code := resp.StatusCode
	fail := func(cause ledger.Cause, hint string) error {
		return &crawl.Error{Cause: cause, HTTPStatus: code, Message: ch.prefix() + "answered " + statusText(code) + hint}
	}
	switch {
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable && hasRetryAfter(resp.Header):
		return ch.client.throttled(ch.paceKey(), resp)
	case code == http.StatusGone:
		return fail(ledger.CauseGone, ": it is gone for good")
	case code == http.StatusNotModified && ch.request.ETag == "" && ch.request.LastModified == "":
		return fail(ledger.CauseHTTP, " to a request without conditions")
	case code == http.StatusNotModified:
		return nil
	case code == http.StatusAccepted:
		return fail(ledger.CauseHTTP, ": a promise or a challenge, no document")
	case code == http.StatusNoContent, code == http.StatusResetContent:
		return fail(ledger.CauseHTTP, ": no document")
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return fail(ledger.CauseHTTP, "; if the site wants another user agent or a key, set user_agent or headers of the source")
	case code < 200 || code > 299:
		return fail(ledger.CauseHTTP, "")
	default:
		return nil
	}
}

func (ch *chain) answer(ctx context.Context, at *phase, resp *http.Response) (*Response, error) {
	r := &Response{
		Status: resp.StatusCode, Header: resp.Header, FinalURL: ch.url.String(), PermanentURL: ch.moved, Redirected: ch.hops > 0,
	}
	if resp.StatusCode == http.StatusNotModified {
		r.NotModified = true
		return r, nil
	}
	body, truncated, err := readBody(resp, ch.request.MaxBytes, ch.request.ForPage)
	if err == nil {
		// A server that sees the connection go at the end of the exchange's time may
		// still end its half-sent body as if it were whole.
		err = resp.Request.Context().Err()
	}
	if err != nil {
		if failed, ok := errors.AsType[*bodyError](err); ok {
			return nil, &crawl.Error{
				Cause: failed.cause, HTTPStatus: resp.StatusCode, Message: ch.prefix() + failed.message, Err: failed.err,
			}
		}
		return nil, ch.failure(ctx, at, err)
	}
	r.Body, r.Bytes, r.Truncated = body, int64(len(body)), truncated
	return r, nil
}

// prefix names who answered, and how the chain came there.
func (ch *chain) prefix() string {
	if ch.hops > 0 {
		return fmt.Sprintf("%s redirects to %s, which ", ch.first.Host, where(ch.url.String()))
	}
	return ch.url.Host + " "
}

// maxURL is the longest address that is asked, in bytes.
const maxURL = 8 << 10

// parseURL reads an address as people and servers write it: with blanks
// around it, with letters that need escaping, with a host in its own script.
func parseURL(raw string) (*url.URL, error) {
	if len(raw) > maxURL {
		return nil, fmt.Errorf("the address is longer than %d KiB", maxURL>>10)
	}
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil {
		return nil, errors.New("the address cannot be read as a URL")
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("crawlers ask only http and https, nothing local or private: %q has the scheme %q", where(raw), u.Scheme)
	}
	if u.Hostname() == "" {
		return nil, fmt.Errorf("the address %q has no host", where(raw))
	}
	if ascii, err := idna.Lookup.ToASCII(u.Hostname()); err == nil && ascii != u.Hostname() {
		u.Host = strings.Replace(u.Host, u.Hostname(), ascii, 1)
	}
	if isOddAddress(u.Hostname()) {
		return nil, fmt.Errorf("%q is an IP address in a form that programs read differently, perhaps a private one; write it as four decimal numbers", u.Hostname())
	}
	u.RawQuery = escapeQuery(u.RawQuery)
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// escapeQuery escapes what may not stand in a request's first line and leaves
// the rest as it came.
func escapeQuery(q string) string {
	var b strings.Builder
	for i := range len(q) {
		if c := q[i]; c <= ' ' || c >= 0x7F || strings.IndexByte("\"<>", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(q[i])
	}
	return b.String()
}

func statusText(code int) string {
	if text := http.StatusText(code); text != "" {
		return fmt.Sprintf("%d %s", code, text)
	}
	return fmt.Sprintf("%d", code)
}
