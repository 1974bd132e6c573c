package page

import (
	"net/url"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// canonical returns the address that a page says it has by rel=canonical, where
// that may be believed: it stays on the page's host, www. aside, or leads out
// of an AMP cache, and it is not the front page, which broken templates name on
// every page. Else it is the page's own address.
func canonical(doc *html.Node, pageURL string) string {
	page, err := url.Parse(pageURL)
	if err != nil {
		return pageURL
	}
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode || n.DataAtom != atom.Link || !hasToken(attr(n, "rel"), "canonical") {
			continue
		}
		ref, err := url.Parse(strings.TrimSpace(attr(n, "href")))
		if err != nil || ref.String() == "" {
			continue
		}
		u := base(doc, page).ResolveReference(ref)
		if believable(page, u) {
			return u.String()
		}
	}
	return pageURL
}

// base is what relative addresses in the page are relative to.
func base(doc *html.Node, page *url.URL) *url.URL {
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode || n.DataAtom != atom.Base || attr(n, "href") == "" {
			continue
		}
		if u, err := page.Parse(strings.TrimSpace(attr(n, "href"))); err == nil {
			return u
		}
		return page
	}
	return page
}

func believable(page, u *url.URL) bool {
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return false
	}
	if IsFront(u) && !IsFront(page) {
		return false
	}
	return bareHost(u) == bareHost(page) || isAMPCache(page)
}

// IsFront reports whether u is a site's front page.
func IsFront(u *url.URL) bool { return strings.Trim(u.Path, "/") == "" && u.RawQuery == "" }

func bareHost(u *url.URL) string {
	return strings.TrimPrefix(strings.ToLower(u.Hostname()), "www.")
}

func isAMPCache(u *url.URL) bool {
	host := bareHost(u)
	return host == "cdn.ampproject.org" || strings.HasSuffix(host, ".cdn.ampproject.org") ||
		strings.HasSuffix(host, ".ampproject.net") || strings.HasSuffix(host, ".bing-amp.com") ||
		strings.HasPrefix(host, "google.") && strings.HasPrefix(u.Path, "/amp/")
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Namespace == "" && a.Key == key {
			return a.Val
		}
	}
	return ""
}

func hasToken(list, token string) bool {
	for t := range strings.FieldsSeq(list) {
		if strings.EqualFold(t, token) {
			return true
		}
	}
	return false
}
