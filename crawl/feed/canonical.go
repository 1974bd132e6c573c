package feed

import (
	"net/url"
	"strings"

	"golang.org/x/net/idna"
)

// CanonicalURL returns the form of a web address that addresses are compared
// by: scheme and host in lower case, no default port, no tracking parameters,
// no fragment but "#!" and "#/" routes. What remains keeps its order and its
// spelling. It is a key: what is fetched and opened is the address as given. It
// returns "" for what is no http or https URL, and CanonicalURL(CanonicalURL(s))
// is CanonicalURL(s).
func CanonicalURL(s string) string {
	s = cleanURL(s)
	scheme, rest, ok := strings.Cut(s, "://")
	scheme = strings.ToLower(scheme)
	if !ok || scheme != "http" && scheme != "https" {
		return ""
	}
	rest, fragment, _ := strings.Cut(rest, "#")
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	authority = canonicalAuthority(scheme, authority)
	if authority == "" {
		return ""
	}
	var b strings.Builder
	b.Grow(len(s))
	b.WriteString(scheme + "://" + authority + "/")
	b.WriteString(escapeLetters(path))
	if query = withoutTracking(query); query != "" {
		b.WriteString("?" + escapeLetters(query))
	}
	if strings.HasPrefix(fragment, "!") || strings.HasPrefix(fragment, "/") {
		b.WriteString("#" + escapeLetters(fragment))
	}
	out := b.String()
	if u, err := url.Parse(out); err != nil || u.Hostname() == "" {
		return ""
	}
	return out
}

// canonicalAuthority lowers the host and drops the scheme's own port.
func canonicalAuthority(scheme, authority string) string {
	user := ""
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		user, authority = authority[:at+1], authority[at+1:]
	}
	host := strings.ToLower(authority)
	port := map[string]string{"http": ":80", "https": ":443"}[scheme]
	for before := ""; before != host; { // "a:80:" and worse: what is canonical stays so
		before = host
		host = strings.TrimRight(strings.TrimSuffix(host, port), ":")
	}
	if host == "" {
		return ""
	}
	if !isASCII(host) { // "пример.рф" and "xn--e1afmkfd.xn--p1ai" are one host
		name, rest, hasPort := strings.Cut(host, ":")
		if ascii, err := idna.Lookup.ToASCII(name); err == nil && isASCII(ascii) {
			host = ascii
			if hasPort {
				host += ":" + rest
			}
		}
	}
	return user + host
}

// withoutTracking drops the parameters that say how a reader came to a page.
func withoutTracking(query string) string {
	if query == "" {
		return ""
	}
	params := strings.Split(query, "&")
	kept := params[:0]
	for _, p := range params {
		name, _, _ := strings.Cut(p, "=")
		if p != "" && !isTracking(strings.TrimPrefix(name, "amp;")) {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, "&")
}

func isTracking(name string) bool {
	name = strings.ToLower(name)
	if strings.HasPrefix(name, "utm_") || strings.HasPrefix(name, "mtm_") {
		return true
	}
	switch name {
	case "ref",
		"fbclid", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "msclkid", "twclid", "ttclid", "igshid", "igsh",
		"yclid", "ysclid", "ymclid", "_openstat", "rb_clickid",
		"mc_cid", "mc_eid", "mkt_tok", "_hsenc", "_hsmi", "vero_id", "oly_anon_id", "oly_enc_id",
		"pk_campaign", "pk_kwd", "pk_source", "pk_medium", "pk_content", "s_cid", "cmpid":
		return true
	default:
		return false
	}
}

// escapeLetters escapes what is beyond ASCII, as browsers send it, so that the
// two spellings of an address are one.
func escapeLetters(s string) string {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return escapeHigh(s)
		}
	}
	return s
}

func escapeHigh(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	b.Grow(2 * len(s))
	for i := range len(s) {
		if c := s[i]; c >= 0x80 {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
