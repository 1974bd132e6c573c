package feed

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// resolveURL returns ref against base, nil for none, in a form that a browser
// would make of it: white space and line breaks that got into it removed, what
// no URL may hold escaped. A placeholder such as "N/A" is no URL. What cannot
// be read as one is "".
func resolveURL(base *url.URL, ref string) string {
	ref = cleanURL(ref)
	if ref == "" {
		return ""
	}
	u, err := url.Parse(ref)
	if err != nil {
		return ""
	}
	if base != nil && !u.IsAbs() {
		u = base.ResolveReference(u)
	}
	if name := u.Hostname(); !isASCII(name) {
		u.Host = strings.Replace(u.Host, name, asciiHost(name), 1)
	}
	return u.String()
}

// webURL returns ref against base where that is a URL of http or https with a
// host, else "".
func webURL(base *url.URL, ref string) string {
	u, err := url.Parse(resolveURL(base, ref))
	if err != nil || len(ref) > maxURL || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	return u.String()
}

// maxURL is the longest address that is one, in bytes.
const maxURL = 8 << 10

// cleanURL trims ref and escapes what may not stand in a URL.
func cleanURL(ref string) string {
	ref = strings.TrimFunc(ref, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || r == 0xFEFF || r == 0x200B
	})
	if isPlaceholder(ref) {
		return ""
	}
	if len(ref) >= 4 && strings.EqualFold(ref[:4], "www.") {
		ref = "https://" + ref
	}
	return escapeURL(ampersands.Replace(withSlashes(ref)))
}

// ampersands are those that were escaped once too often, as "&#038;" in CDATA,
// which would make a fragment of the rest.
var ampersands = strings.NewReplacer("&amp;", "&", "&#038;", "&", "&#38;", "&", "&#x26;", "&")

// withSlashes writes the slashes of an address as browsers read them: any number
// after "http:" is two, and a backslash before the query is one. A scheme that
// was put before an address that had one goes.
func withSlashes(ref string) string {
	address, rest := ref, ""
	if i := strings.IndexAny(ref, "?#"); i >= 0 {
		address, rest = ref[:i], ref[i:]
	}
	address = strings.ReplaceAll(address, `\`, "/")
	for {
		scheme, after, ok := strings.Cut(address, ":")
		if !ok || !strings.HasPrefix(after, "/") || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
			break
		}
		if after = strings.TrimLeft(after, "/"); !isWeb(after) {
			address = scheme + "://" + after
			break
		}
		address = after
	}
	return address + rest
}

// escapeURL escapes the characters that a URL may not hold, and drops line
// breaks and tabs, which browsers do. Letters beyond ASCII stay.
func escapeURL(ref string) string {
	if strings.IndexFunc(ref, func(r rune) bool {
		return r <= ' ' || r == 0x7F || r == '%' || r < utf8.RuneSelf && strings.ContainsRune(unsafeInURL, r)
	}) < 0 {
		return ref
	}
	var b strings.Builder
	b.Grow(len(ref) + 16)
	for i := range len(ref) {
		switch c := ref[i]; {
		case c == '\t' || c == '\r' || c == '\n':
		case c <= ' ' || c == 0x7F || strings.IndexByte(unsafeInURL, c) >= 0,
			c == '%' && !isEscape(ref[i:]):
			const hex = "0123456789ABCDEF"
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// unsafeInURL are the printing characters that a URL may not hold as they are.
const unsafeInURL = "\"<>\\^`{|}"

func isEscape(s string) bool { return len(s) >= 3 && isHex(s[1]) && isHex(s[2]) }

func isHex(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' }

// isPlaceholder reports whether s stands for nothing: what generators write
// where they have no value.
func isPlaceholder(s string) bool {
	switch strings.ToLower(s) {
	case "", "n/a", "na", "null", "none", "nil", "undefined", "#", "-", "about:blank":
		return true
	default:
		return false
	}
}
