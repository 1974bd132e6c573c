package fetch

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"time"
)

// dialer connects to hosts. It resolves the name once, judges the addresses and
// dials the very addresses that it judged, so that a second answer of the DNS
// changes nothing.
type dialer struct {
	guard    guard
	private  bool   // every address is allowed
	proxy    string // HostPort of the proxy, which the operator chose; "" for none
	resolver Resolver
	dial     func(ctx context.Context, network, addr string) (net.Conn, error)
	timeout  time.Duration
}

// The head start of an address over the next one (RFC 8305, section 5).
const attemptDelay = 250 * time.Millisecond

// maxAddresses is how many addresses of a host are tried. A name may have
// hundreds, of other people's hosts.
const maxAddresses = 8

// DialContext connects to address, a host and a port.
func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addrs, err := lookup(ctx, d.resolver, host)
	if err != nil {
		return nil, err
	}
	if !d.private && !strings.EqualFold(address, d.proxy) {
		if addrs, err = d.guard.filter(host, addrs); err != nil {
			return nil, err
		}
	}
	addrs = interleave(addrs)
	return d.race(ctx, network, addrs[:min(len(addrs), maxAddresses)], port)
}

// lookup resolves host, which may be an address itself.
func lookup(ctx context.Context, r Resolver, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	addrs, err := r.LookupNetIP(ctx, "ip", host)
	if err == nil && len(addrs) == 0 {
		err = &net.DNSError{Err: "no address", Name: host, IsNotFound: true}
	}
	return addrs, err
}

// interleave puts addresses of the two families in turns, beginning with the
// first one's.
func interleave(addrs []netip.Addr) []netip.Addr {
	var a, b []netip.Addr
	for _, addr := range addrs {
		if addr = addr.Unmap(); addr.Is4() == addrs[0].Unmap().Is4() {
			a = append(a, addr)
		} else {
			b = append(b, addr)
		}
	}
	out := make([]netip.Addr, 0, len(addrs))
	for i := range max(len(a), len(b)) {
		if i < len(a) {
			out = append(out, a[i])
		}
		if i < len(b) {
			out = append(out, b[i])
		}
	}
	return out
}

type dialled struct {
	conn net.Conn
	err  error
}

// race dials the addresses, each with a head start over the next, and returns
// the first connection. It returns when every attempt has ended.
func (d *dialer) race(ctx context.Context, network string, addrs []netip.Addr, port string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan dialled)
	pending := 0
	start := func() {
		addr := net.JoinHostPort(addrs[0].String(), port)
		addrs = addrs[1:]
		pending++
		go func() {
			conn, err := d.dial(ctx, network, addr)
			results <- dialled{conn, err}
		}()
	}
	var won net.Conn
	var failed []error
	delay := time.NewTimer(attemptDelay)
	defer delay.Stop()
	start()
	for pending > 0 {
		select {
		case <-delay.C:
			if won == nil && len(addrs) > 0 {
				start()
				delay.Reset(attemptDelay)
			}
		case r := <-results:
			pending--
			switch {
			case r.err != nil:
				failed = append(failed, r.err)
				if won == nil && len(addrs) > 0 && ctx.Err() == nil {
					start()
					delay.Reset(attemptDelay)
				}
			case won != nil:
				_ = r.conn.Close() // nobody has used it
			default:
				won = r.conn
				cancel()
			}
		}
	}
	if won == nil {
		return nil, errors.Join(failed...)
	}
	return won, nil
}
