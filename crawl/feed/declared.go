package feed

import (
	"bytes"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// maxHead is how much of a page is searched for what it declares.
const maxHead = 256 << 10

// declaredFeed returns the address of the first feed that a page declares in its
// head, "" where it declares none. Addresses in it are relative to base.
func declaredFeed(page []byte, base string) string {
	from, err := url.Parse(base)
	if err != nil {
		return ""
	}
	z := html.NewTokenizer(bytes.NewReader(page[:min(len(page), maxHead)]))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return ""
		case html.StartTagToken, html.SelfClosingTagToken:
			token := z.Token()
			if token.Data == "body" {
				return ""
			}
			link := feedLink(token)
			if link == "" {
				continue
			}
			if u, err := from.Parse(link); err == nil && u.String() != base && (u.Scheme == "http" || u.Scheme == "https") {
				u.User = nil
				return u.String()
			}
		default:
		}
	}
}

// feedLink returns the address of a link element that declares a feed, "" for any
// other.
func feedLink(token html.Token) string {
	attr := map[string]string{}
	for _, a := range token.Attr {
		attr[a.Key] = strings.TrimSpace(a.Val)
	}
	if token.Data != "link" || !slices.Contains(strings.Fields(strings.ToLower(attr["rel"])), "alternate") {
		return ""
	}
	switch strings.ToLower(attr["type"]) {
	case "application/rss+xml", "application/atom+xml", "application/feed+json":
		return attr["href"]
	default:
		return ""
	}
}
