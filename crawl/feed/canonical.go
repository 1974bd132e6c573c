package feed

import (
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/idna"
)

// CanonicalURL returns the form of a web address that addresses are compared
// by: scheme and host in lower case, no default port, no "." and ".." in its
// path, escapes as RFC 3986, section 6.2.2, wants them, no tracking parameters,
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
	b.WriteString(withoutDots(normalEscapes(path)))
	if query = withoutTracking(normalEscapes(query)); query != "" {
		b.WriteString("?" + query)
	}
	if strings.HasPrefix(fragment, "!") || strings.HasPrefix(fragment, "/") {
		b.WriteString("#" + normalEscapes(fragment))
	}
	out := b.String()
	if u, err := url.Parse(out); err != nil || u.Hostname() == "" {
		return ""
	}
	return out
}

// canonicalAuthority lowers the host and drops the scheme's own port and the dot
// that ends a full name.
func canonicalAuthority(scheme, authority string) string {
	user := ""
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		user, authority = authority[:at+1], authority[at+1:]
	}
	host := strings.ToLower(authority)
	own := map[string]string{"http": ":80", "https": ":443"}[scheme]
	for before := ""; before != host; { // "a:80:" and worse: what is canonical stays so
		before = host
		host = strings.TrimRight(strings.TrimSuffix(host, own), ":")
	}
	port := ""
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		host, port = host[:i], host[i:]
	}
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil && a.Is6() && host != "" && host[0] == '[' {
		host = "[" + a.String() + "]"
	}
	host = asciiHost(strings.TrimRight(host, "."))
	if host == "" {
		return ""
	}
	return user + host + port
}

// asciiHost returns a host's name as the DNS has it: "пример.рф", the same in
// escapes, and "xn--e1afmkfd.xn--p1ai" are one host.
func asciiHost(host string) string {
	name, err := url.PathUnescape(host)
	if err != nil || isASCII(name) {
		return host
	}
	ascii, err := idna.Lookup.ToASCII(name)
	if err != nil || !isASCII(ascii) {
		return host
	}
	return ascii
}

// withoutDots resolves the "." and ".." in a path that lacks its first slash, as
// browsers do before they ask.
func withoutDots(path string) string {
	if !strings.Contains("/"+path+"/", "/./") && !strings.Contains("/"+path+"/", "/../") {
		return path
	}
	segments := strings.Split(path, "/")
	kept := segments[:0]
	for i, s := range segments {
		last := i == len(segments)-1
		switch s {
		case "..":
			kept = kept[:max(len(kept)-1, 0)]
		case ".":
		default:
			kept = append(kept, s)
			continue
		}
		if last {
			kept = append(kept, "") // "a/.." is a folder
		}
	}
	return strings.Join(kept, "/")
}

// withoutTracking drops the parameters that say how a reader came to a page. One
// that a tool has put behind a second question mark goes too.
func withoutTracking(query string) string {
	if query == "" {
		return ""
	}
	params := strings.Split(query, "&")
	kept := params[:0]
	for _, p := range params {
		for i := strings.IndexByte(p, '?'); i >= 0; {
			if isTracking(p[i+1:]) {
				p = p[:i]
				break
			}
			next := strings.IndexByte(p[i+1:], '?')
			if next < 0 {
				break
			}
			i += 1 + next
		}
		if p != "" && !isTracking(p) {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, "&")
}

// isTracking looks at the name of a parameter.
func isTracking(param string) bool {
	name, _, _ := strings.Cut(param, "=")
	name = strings.ToLower(strings.TrimPrefix(name, "amp;"))
	for _, prefix := range []string{"utm_", "mtm_", "matomo_", "piwik_", "hsa_", "__hs"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	switch name {
	case "ref",
		"fbclid", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "gad_source", "gad_campaignid", "srsltid", "_ga", "_gl",
		"msclkid", "twclid", "ttclid", "li_fat_id", "igshid", "igsh", "__twitter_impression",
		"yclid", "ysclid", "ymclid", "_openstat", "rb_clickid",
		"at_medium", "at_campaign", "at_campaign_type", "at_link_id", "at_link_type", "at_link_origin", "at_format",
		"at_ptr_name", "at_bbc_team", "at_custom1", "at_custom2", "at_custom3", "at_custom4", "xtor", "wt_mc", "wt_zmc",
		"mc_cid", "mc_eid", "mkt_tok", "_hsenc", "_hsmi", "hsctatracking", "vero_id", "oly_anon_id", "oly_enc_id",
		"pk_campaign", "pk_cid", "pk_kwd", "pk_keyword", "pk_source", "pk_medium", "pk_content", "wickedid", "s_cid", "cmpid":
		return true
	default:
		return false
	}
}

// normalEscapes writes s as RFC 3986 does: what is beyond ASCII escaped, as
// browsers send it, letters and digits and "-._~" as they are, and the other
// escapes in capitals, so that the spellings of an address are one.
func normalEscapes(s string) string {
	plain := true
	for i := 0; i < len(s) && plain; i++ {
		plain = s[i] < 0x80 && s[i] != '%'
	}
	if plain {
		return s
	}
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	b.Grow(2 * len(s))
	for i := 0; i < len(s); i++ {
		c, escaped := s[i], s[i] >= 0x80
		if c == '%' && isEscape(s[i:]) {
			c = unhex(s[i+1])<<4 | unhex(s[i+2])
			escaped = !isUnreserved(c)
			i += 2
		}
		if escaped {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

func isUnreserved(c byte) bool {
	return isLetter(c) || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}
