package feed

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"vesti.nixg.ru/crawl/plain"
)

// NotFeedError is a body that is no feed.
type NotFeedError struct {
	What string // in words: "an HTML page", "an empty body"
	Page bool   // it is an HTML page
}

// Error says what came instead.
func (e *NotFeedError) Error() string { return "not a feed: " + e.What }

// notFeed tells what text is that was expected to be a feed.
func notFeed(text string) *NotFeedError {
	text = strings.TrimSpace(text)
	lower := strings.ToLower(text[:min(len(text), 64<<10)])
	switch {
	case text == "":
		return &NotFeedError{What: "an empty body"}
	case strings.HasPrefix(text, "{") || strings.HasPrefix(text, "["):
		return &NotFeedError{What: "JSON, but no JSON Feed"}
	case strings.HasPrefix(lower, "<?xml") && !strings.Contains(afterProlog(lower), "<"):
		return &NotFeedError{What: "an XML prolog and nothing after it"}
	case strings.Contains(lower, "<html") || strings.Contains(lower, "<!doctype html") || strings.Contains(lower, "<head") || strings.Contains(lower, "<body"):
		return &NotFeedError{What: htmlPage(text, lower), Page: true}
	case strings.Contains(lower, "<opml"):
		return &NotFeedError{What: "an OPML list of feeds"}
	case strings.Contains(lower, "<urlset") || strings.Contains(lower, "<sitemapindex"):
		return &NotFeedError{What: "a sitemap"}
	case strings.HasPrefix(text, "<"):
		return &NotFeedError{What: "XML without a feed in it"}
	case strings.IndexFunc(text[:min(len(text), 512)], isBinary) >= 0:
		return &NotFeedError{What: "binary data"}
	default:
		return &NotFeedError{What: "plain text: " + quote(text)}
	}
}

func afterProlog(s string) string {
	_, after, _ := strings.Cut(s, "?>")
	return after
}

func isBinary(r rune) bool {
	return r == utf8.RuneError || unicode.IsControl(r) && !unicode.IsSpace(r)
}

// htmlPage says what kind of page it is, with its title.
func htmlPage(text, lower string) string {
	what := "an HTML page"
	switch {
	case containsAny(lower, "cf-chl", "cdn-cgi/challenge", "challenge-platform", "just a moment...", "ddos-guard", "checking your browser", "captcha", "__ddg"):
		what = "an HTML page that checks for robots"
	case strings.Contains(lower, `type="password"`), strings.Contains(lower, "type=password"), containsAny(lower, "<title>sign in", "<title>log in", "<title>login", "<title>вход"):
		what = "an HTML page that asks to log in"
	}
	if title := pageTitle(text, lower); title != "" {
		what += " with the title " + quote(title)
	}
	return what
}

func pageTitle(text, lower string) string {
	start := strings.Index(lower, "<title")
	if start < 0 || len(text) < len(lower) {
		return ""
	}
	_, after, ok := strings.Cut(text[start:], ">")
	if !ok {
		return ""
	}
	title, _, _ := strings.Cut(after, "<")
	return plain.Line(decodeReferences(title))
}

func containsAny(s string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}

// quote shows the start of s for a message.
func quote(s string) string {
	const most = 60
	s = plain.Line(s)
	if utf8.RuneCountInString(s) > most {
		s = string([]rune(s)[:most]) + "…"
	}
	return "“" + s + "”"
}
