package fetch

import (
	"crypto/sha256"
	"net/http"
	"net/url"
	"time"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/ledger"
)

// The values of the Accept header. Some sites choose by it and give a page to
// clients that name no type of feed.
const (
	AcceptFeed = "application/rss+xml, application/atom+xml, application/feed+json, application/rdf+xml;q=0.9, " +
		"application/xml;q=0.8, text/xml;q=0.8, application/json;q=0.7, text/html;q=0.3, */*;q=0.1"
	AcceptPage = "text/html, application/xhtml+xml, application/xml;q=0.8, */*;q=0.5"
)

// Request is one GET. The zero value of each field but URL is a sound default.
type Request struct {
	URL          string
	Headers      map[string]string // sent to URL's own scheme, host and port only, never along a redirect to another
	UserAgent    string            // in place of the client's
	ETag         string            // as the server gave it: neither parsed nor quoted
	LastModified string            // as the server gave it
	Accept       string            // default AcceptFeed, for a page AcceptPage
	MaxBytes     int64             // of the decompressed body; default the client's for feeds or pages
	Timeout      time.Duration     // of the whole exchange; default the client's
	// AllowPrivate lists the hosts, as HostPort writes them, that may have private
	// addresses for this request. Such hosts are paced by URL, not by host.
	AllowPrivate []string
	// ForPage marks an article's page: its own limits apply, and a body over the
	// size limit is cut instead of refused.
	ForPage bool
}

// ForFeed is the request for a job's feed: at the address in force, with the
// source's headers and, unless the job is unconditional, its validators.
// Headers may hold a credential, so they go to the configured host alone.
func ForFeed(job crawl.Job) Request {
	src := job.Source
	r := Request{URL: src.FeedAddress(job.State), UserAgent: src.UserAgent, AllowPrivate: privateHosts(src)}
	if sameOrigin(r.URL, src.FeedURL) {
		r.Headers = src.Headers
	}
	if !job.Unconditional {
		r.ETag, r.LastModified = job.State.Validators.ETag, job.State.Validators.LastModified
	}
	return r
}

// ForPage is the request for the page of one of the source's entries.
func ForPage(src crawl.Source, pageURL string) Request {
	return Request{URL: pageURL, UserAgent: src.UserAgent, AllowPrivate: privateHosts(src), ForPage: true}
}

func privateHosts(src crawl.Source) []string {
	if !src.AllowPrivate {
		return nil
	}
	var hosts []string
	for _, u := range src.OwnURLs() {
		hosts = append(hosts, HostPort(u))
	}
	return hosts
}

func sameOrigin(a, b string) bool {
	ua, err := url.Parse(a)
	if err != nil {
		return false
	}
	ub, err := url.Parse(b)
	return err == nil && ua.Scheme == ub.Scheme && HostPort(ua) == HostPort(ub)
}

// Response is a successful answer: 2xx with a body, or 304 to a request with
// validators.
type Response struct {
	Status       int
	Header       http.Header
	Body         []byte // decompressed; the caller's own
	Bytes        int64  // length of Body
	Truncated    bool   // a page's body was cut at the limit
	NotModified  bool   // 304
	FinalURL     string // that answered: the base of relative links
	PermanentURL string // the target of the chain's leading permanent redirects; "" where the first hop was not one
	Redirected   bool   // by any kind of redirect
}

// Where names the address that answered, for messages: without query and
// credentials.
func (r *Response) Where() string { return where(r.FinalURL) }

// Validators returns what to ask with next time. A 304 that repeats no
// validator leaves the old one; a 200 replaces both, and the body's hash. One
// that is too long to be sent back counts as none.
func (r *Response) Validators(old ledger.Validators) ledger.Validators {
	v := old
	etag, modified := validator(r.Header.Get("ETag")), validator(r.Header.Get("Last-Modified"))
	if !r.NotModified {
		v.ETag, v.LastModified = etag, modified
		v.BodyHash = sha256.Sum256(r.Body)
		return v
	}
	if etag != "" {
		v.ETag = etag
	}
	if modified != "" {
		v.LastModified = modified
	}
	return v
}

// maxValidator is the longest validator that is kept, in bytes: it goes into
// each run's record and into each request, where servers refuse long ones.
const maxValidator = 1 << 10

func validator(v string) string {
	if len(v) > maxValidator {
		return ""
	}
	return v
}
