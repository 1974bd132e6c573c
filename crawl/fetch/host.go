package fetch

import (
	"net"
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/idna"
)

// HostPort is the host of u as it is compared: lower-case ASCII without a
// closing dot, and the port, written out.
func HostPort(u *url.URL) string {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	case u.Scheme == "socks5", u.Scheme == "socks5h":
		port = "1080"
	default:
		port = "80"
	}
	return net.JoinHostPort(hostName(u), port)
}

// hostName is the host of u without its port, as it is compared and resolved.
func hostName(u *url.URL) string {
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if ascii, err := idna.Lookup.ToASCII(host); err == nil {
		return ascii
	}
	return host
}

// isOddAddress reports whether host is an IPv4 address as browsers and C
// libraries read it, of one number, octal or hexadecimal ones, though not in the
// plain form. No host name ends in a number (WHATWG URL, "ends in a number
// checker"), and what it resolves to is for a proxy or a library to say.
func isOddAddress(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return false
	}
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	if hex, ok := strings.CutPrefix(strings.ToLower(last), "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

// where is rawURL for messages: without query, fragment and credentials.
func where(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "an address that cannot be read"
	}
	u.User, u.RawQuery, u.Fragment, u.ForceQuery = nil, "", "", false
	return u.String()
}
