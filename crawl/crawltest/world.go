// Package crawltest is for tests of crawlers: an internet of one machine. Any
// host name resolves to a public address, and whatever is dialled there ends at
// one real HTTP server, with a certificate for the name that was asked for.
package crawltest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"vesti.nixg.ru/crawl/fetch"
)

// World is such an internet. It is safe for concurrent use.
type World struct {
	plain, secure *listener
	roots         *x509.CertPool
	ca            *x509.Certificate
	key           *ecdsa.PrivateKey
	inMemory      bool
	http1         bool

	read atomic.Int64

	mu     sync.Mutex
	dns    map[string][][]netip.Addr // answers still to give; the last one stays
	lost   map[string]error
	dialed []netip.AddrPort
	leaves map[string]*tls.Certificate
}

// Option alters a World.
type Option func(*World)

// InMemory lets connections be pipes instead of sockets, for tests in a
// testing/synctest bubble, where time stands still while a socket is read.
func InMemory(w *World) { w.inMemory = true }

// HTTP1 keeps HTTP/2 out, for handlers that take the connection over.
func HTTP1(w *World) { w.http1 = true }

// New returns a world in which h answers all requests: r.Host says at which
// host, r.TLS whether by https. It ends with the test.
func New(t testing.TB, h http.Handler, options ...Option) *World {
	t.Helper()
	w := &World{
		dns: map[string][][]netip.Addr{}, lost: map[string]error{}, leaves: map[string]*tls.Certificate{}, roots: x509.NewCertPool(),
	}
	for _, o := range options {
		o(w)
	}
	w.makeCA(t)
	w.plain, w.secure = w.listen(t), w.listen(t)
	var serving sync.WaitGroup
	plain, secure := w.server(h), w.server(h)
	serving.Go(func() { _ = plain.Serve(w.plain) })
	serving.Go(func() { _ = secure.ServeTLS(w.secure, "", "") })
	t.Cleanup(func() {
		_, _ = plain.Close(), secure.Close()
		serving.Wait()
	})
	return w
}

func (w *World) server(h http.Handler) *http.Server {
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(discard{}, "", 0),
		TLSConfig: &tls.Config{GetCertificate: w.certificate, MinVersion: tls.VersionTLS12},
	}
	if w.http1 {
		s.Protocols = new(http.Protocols)
		s.Protocols.SetHTTP1(true)
	}
	return s
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// Options returns o with the world's resolver, dialer and roots.
func (w *World) Options(o fetch.Options) fetch.Options {
	o.Resolver, o.Dial = w, w.dial
	o.TLS = &tls.Config{RootCAs: w.roots, MinVersion: tls.VersionTLS12}
	return o
}

// SetDNS scripts the answers for host, one for each lookup; the last one stays.
func (w *World) SetDNS(host string, answers ...[]netip.Addr) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dns[host] = answers
}

// Lose makes lookups of host fail; a nil err makes it a name that does not exist.
func (w *World) Lose(host string, err error) {
	if err == nil {
		err = &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost[host] = err
}

// Dialed returns the addresses that were dialled, in order.
func (w *World) Dialed() []netip.AddrPort {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.dialed)
}

// LookupNetIP implements fetch.Resolver. A host without a script has a public
// address made from its name.
func (w *World) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.lost[host]; err != nil {
		return nil, err
	}
	if answers := w.dns[host]; len(answers) > 0 {
		if len(answers) > 1 {
			w.dns[host] = answers[1:]
		}
		return answers[0], nil
	}
	h := sha256.Sum256([]byte(host))
	return []netip.Addr{netip.AddrFrom4([4]byte{9, h[0], h[1], h[2]})}, nil
}

func (w *World) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.dialed = append(w.dialed, ap)
	w.mu.Unlock()
	to := w.plain
	if ap.Port() == 443 {
		to = w.secure
	}
	conn, err := to.dial(ctx)
	if err != nil {
		return nil, err
	}
	return &counted{Conn: conn, read: &w.read}, nil
}

// BytesRead is how much clients have read from their connections, TLS and
// headers included.
func (w *World) BytesRead() int64 { return w.read.Load() }

type counted struct {
	net.Conn
	read *atomic.Int64
}

// Read implements net.Conn.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.read.Add(int64(n))
	return n, err
}

// The times between which certificates are valid: real clocks and fake ones
// are both in there.
func validity() (from, to time.Time) {
	return time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2090, 1, 1, 0, 0, 0, 0, time.UTC)
}

func (w *World) makeCA(t testing.TB) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	from, to := validity()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "crawltest"}, NotBefore: from, NotAfter: to,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	if w.ca, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	w.key = key
	w.roots.AddCert(w.ca)
}

// certificate makes, once per name, a certificate for whatever name the client
// asks for. Names that begin with "expired.", "wronghost." or "unknownca." get one that
// is out of date, for another host, or of an authority that nobody knows.
func (w *World) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := hello.ServerName
	if c := w.leaves[name]; c != nil {
		return c, nil
	}
	from, to := validity()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(len(w.leaves) + 2)), NotBefore: from, NotAfter: to,
		DNSNames: []string{name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	switch {
	case strings.HasPrefix(name, "expired."):
		template.NotAfter = from.Add(time.Hour)
	case strings.HasPrefix(name, "wronghost."):
		template.DNSNames = []string{"some." + name}
	}
	parent, key := w.ca, w.key
	if strings.HasPrefix(name, "unknownca.") {
		var err error
		if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return nil, err
		}
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &w.key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	c := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: w.key}
	w.leaves[name] = c
	return c, nil
}
