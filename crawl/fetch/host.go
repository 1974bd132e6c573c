package fetch

import (
	"net"
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

// where is rawURL for messages: without query, fragment and credentials.
func where(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "an address that cannot be read"
	}
	u.User, u.RawQuery, u.Fragment, u.ForceQuery = nil, "", "", false
	return u.String()
}
