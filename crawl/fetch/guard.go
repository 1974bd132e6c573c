package fetch

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"code.dny.dev/ssrf"
)

// guard says which addresses crawlers may ask: those of the public internet by
// IANA's special-purpose registries, as the ssrf module's tables have them.
// That leaves out loopback, private, link-local, CGNAT, multicast, reserved
// and documentation ranges, and the metadata services that live there.
type guard struct{ tables *ssrf.Guardian }

func newGuard() guard {
	return guard{tables: ssrf.New(
		ssrf.WithAnyPort(), ssrf.WithAnyNetwork(),
		// The host services of Azure's machines have a public address of no registry.
		ssrf.WithDeniedV4Prefixes(netip.MustParsePrefix("168.63.129.16/32")),
	)}
}

// ErrPrivate is matched by the error of a request to a host whose address is
// private or reserved, and which nobody has allowed.
var ErrPrivate = errors.New("private address")

// blockedError: a host that crawlers may not ask.
type blockedError struct {
	host string
	addr netip.Addr
}

// Is makes it match ErrPrivate.
func (e *blockedError) Is(target error) bool { return target == ErrPrivate }

func (e *blockedError) Error() string {
	subject := e.host + " has"
	if e.host == e.addr.String() {
		subject = "the host is"
	}
	return fmt.Sprintf("%s the private or reserved address %s; crawlers ask public addresses only "+
		"(allow_private: true allows the hosts of a source's own feed_url and url)", subject, e.addr)
}

// filter returns those of the host's addresses that may be dialled, and an
// error where there is none.
func (g guard) filter(host string, addrs []netip.Addr) ([]netip.Addr, error) {
	var public []netip.Addr
	for _, a := range addrs {
		if g.public(a) {
			public = append(public, a)
		}
	}
	if len(public) == 0 {
		return nil, &blockedError{host: host, addr: addrs[0].Unmap()}
	}
	return public, nil
}

func (g guard) public(a netip.Addr) bool {
	a = embedded(a.Unmap().WithZone(""))
	return g.tables.SafeAddr(a) == nil
}

// embedded returns the IPv4 address that a NAT64 gateway would ask (RFC 6052,
// 64:ff9b::/96), and any other address as it is.
func embedded(a netip.Addr) netip.Addr {
	if !ssrf.IPv6NAT64Prefix.Contains(a) {
		return a
	}
	b := a.As16()
	var v4 [4]byte
	binary.BigEndian.PutUint32(v4[:], binary.BigEndian.Uint32(b[12:]))
	return netip.AddrFrom4(v4)
}

// checkBehindProxy is the check where a proxy resolves and dials: an address as
// such is judged as always, and a name by what it resolves to here. A name that
// only the proxy can resolve is the proxy's to judge.
func (g guard) checkBehindProxy(ctx context.Context, r Resolver, host string) error {
	addrs, err := lookup(ctx, r, host)
	if err != nil || len(addrs) == 0 {
		return nil //nolint:nilerr // see above: what does not resolve here is left to the proxy
	}
	for _, a := range addrs {
		if !g.public(a) {
			return &blockedError{host: host, addr: a.Unmap()}
		}
	}
	return nil
}
