package crawl

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/andybalholm/cascadia"
	"github.com/goccy/go-yaml/ast"
	"golang.org/x/net/http/httpguts"

	"vesti.nixg.ru/ledger"
)

// The limits and defaults of a source's numbers.
const (
	DefaultMaxItems = 25
	DefaultBackfill = 100

	mostMaxItems = 1000
	mostBackfill = 100_000
)

// sourceReader reads the keys of one source into src.
type sourceReader struct {
	*registryParser
	src Source
	set map[string]int // the lines of the keys that were read
}

// mapping reads m's keys; depth counts merges.
func (r *sourceReader) mapping(m *ast.MappingNode, depth int) {
	for _, kv := range m.Values {
		if kv.Key.IsMergeKey() {
			continue
		}
		key := keyOf(kv)
		if _, seen := r.set[key]; seen {
			continue // a merge's key under the source's own
		}
		value := r.resolve(kv.Value)
		if value == nil {
			continue
		}
		r.set[key] = lineOf(kv.Key)
		if saysNothing(value) && slices.Contains(fieldNames(), key) {
			continue
		}
		if !r.field(key, value) {
			r.fail(kv.Key, key, "unknown key; a source has %s", strings.Join(fieldNames(), ", "))
		}
	}
	for _, kv := range m.Values {
		if !kv.Key.IsMergeKey() {
			continue
		}
		merged, ok := r.resolve(kv.Value).(*ast.MappingNode)
		if !ok || depth > 8 {
			r.fail(kv.Value, "<<", "want an alias of a mapping")
			continue
		}
		r.mapping(merged, depth+1)
	}
}

// saysNothing reports whether a key's value is none: a null or an empty text. So
// registries that list every key write "channel: null" for a feed.
func saysNothing(value ast.Node) bool {
	switch v := value.(type) {
	case *ast.NullNode:
		return true
	case *ast.StringNode:
		return strings.TrimSpace(v.Value) == ""
	default:
		return false
	}
}

func fieldNames() []string {
	return []string{
		"slug", "name", "url", "feed_url", "channel", "crawler", "direction", "lang", "priority", "enabled", "is_own", "max_items",
		"full_text", "selector", "keep", "block", "allow_private", "timezone", "date_order", "headers", "user_agent", "backfill",
	}
}

// field reads one key; false says that there is no such key.
func (r *sourceReader) field(key string, n ast.Node) bool {
	s := &r.src
	switch key {
	case "slug":
		s.Slug = ledger.Slug(r.text(key, n))
		r.check(n, key, s.Slug.Validate())
	case "name":
		s.Name = r.text(key, n)
	case "url":
		s.URL = r.address(key, n)
	case "feed_url":
		s.FeedURL = r.address(key, n)
	case "channel":
		name, err := ChannelName(r.text(key, n))
		s.Channel = name
		r.check(n, key, err)
	case "crawler":
		s.Crawler = ledger.Crawler(r.oneOf(key, n, string(ledger.CrawlerRSS), string(ledger.CrawlerTelegram)))
	case "direction":
		s.Direction = ledger.Direction(r.text(key, n))
		if !r.known(s.Direction) {
			r.fail(n, key, "%q is none of the configured directions: %s", s.Direction, r.directionNames())
		}
	case "lang":
		s.Lang = Language(r.text(key, n))
		if s.Lang == "" {
			r.fail(n, key, "want a language's code, such as ru, en or pt-BR")
		}
	case "priority":
		p, err := ledger.ParsePriority(strings.ToUpper(r.text(key, n)))
		s.Priority = p
		r.check(n, key, err)
	case "enabled":
		s.Enabled = r.boolean(key, n)
	case "is_own":
		s.IsOwn = r.boolean(key, n)
	case "allow_private":
		s.AllowPrivate = r.boolean(key, n)
	default:
		return r.option(key, n)
	}
	return true
}

// option reads the keys that most sources do not have.
func (r *sourceReader) option(key string, n ast.Node) bool {
	s := &r.src
	switch key {
	case "max_items":
		s.MaxItems = r.number(key, n, 1, mostMaxItems)
	case "backfill":
		s.Backfill = r.number(key, n, 1, mostBackfill)
	case "full_text":
		s.FullText = FullText(r.oneOf(key, n, string(FullTextAuto), string(FullTextTrue), string(FullTextFalse)))
	case "selector":
		s.Selector = r.text(key, n)
		_, err := cascadia.ParseGroup(s.Selector)
		r.check(n, key, err)
	case "keep":
		s.Keep = r.rules(key, n)
	case "block":
		s.Block = r.rules(key, n)
	case "timezone":
		s.Timezone = r.text(key, n)
		_, err := time.LoadLocation(s.Timezone)
		r.check(n, key, err)
	case "date_order":
		s.DateOrder = r.oneOf(key, n, "dmy", "mdy", "ymd")
	case "headers":
		s.Headers = r.headers(key, n)
	case "user_agent":
		s.UserAgent = r.text(key, n)
		if !httpguts.ValidHeaderFieldValue(s.UserAgent) {
			r.fail(n, key, "may not stand in an HTTP header")
		}
	default:
		return false
	}
	return true
}

// finish sets defaults and checks what hangs together.
func (r *sourceReader) finish(line int) {
	s := &r.src
	if s.Slug == "" {
		r.failAt(line, "slug", "is missing")
	}
	if s.Name == "" {
		s.Name = string(s.Slug)
	}
	if s.Crawler == "" {
		s.Crawler = ledger.CrawlerRSS
		if s.Channel != "" && s.FeedURL == "" {
			s.Crawler = ledger.CrawlerTelegram
		}
	}
	switch {
	case s.Crawler == ledger.CrawlerRSS && s.FeedURL == "":
		r.failAt(line, "feed_url", "is missing: crawler rss needs it")
	case s.Crawler == ledger.CrawlerRSS && s.Channel != "":
		r.failAt(r.set["channel"], "channel", "is for crawler telegram, this source has rss")
	case s.Crawler == ledger.CrawlerTelegram && s.Channel == "":
		r.failAt(line, "channel", "is missing: crawler telegram needs it")
	case s.Crawler == ledger.CrawlerTelegram && s.FeedURL != "":
		r.failAt(r.set["feed_url"], "feed_url", "is for crawler rss, this source has telegram")
	}
	if s.Direction == "" {
		r.failAt(line, "direction", "is missing: one of %s", r.directionNames())
	}
	if s.MaxItems == 0 {
		s.MaxItems = DefaultMaxItems
	}
	if s.Backfill == 0 {
		s.Backfill = DefaultBackfill
	}
	if s.FullText == "" {
		s.FullText = FullTextAuto
	}
	if s.URL == "" && s.Channel != "" {
		s.URL = "https://t.me/" + s.Channel
	}
}

func (r *sourceReader) check(n ast.Node, field string, err error) {
	if err != nil {
		r.fail(n, field, "%s", strings.TrimPrefix(err.Error(), ledger.ErrInvalid.Error()+": "))
	}
}

// text reads a scalar as it stands in the file.
func (r *sourceReader) text(field string, n ast.Node) string {
	switch v := n.(type) {
	case *ast.StringNode:
		return strings.TrimSpace(v.Value)
	case *ast.LiteralNode:
		return strings.TrimSpace(v.Value.Value)
	case *ast.NullNode:
		return ""
	case ast.ScalarNode:
		return n.GetToken().Value
	default:
		r.fail(n, field, "want a single value")
		return ""
	}
}

func (r *sourceReader) oneOf(field string, n ast.Node, values ...string) string {
	got := strings.ToLower(r.text(field, n))
	for _, v := range values {
		if got == v {
			return v
		}
	}
	r.fail(n, field, "%q is none of %s", got, strings.Join(values, ", "))
	return ""
}

func (r *sourceReader) boolean(field string, n ast.Node) bool {
	return r.oneOf(field, n, "true", "false") == "true"
}

func (r *sourceReader) number(field string, n ast.Node, least, most int) int {
	i, err := strconv.Atoi(r.text(field, n))
	if err != nil || i < least || i > most {
		r.fail(n, field, "want a number from %d to %d", least, most)
		return 0
	}
	return i
}

func (r *sourceReader) address(field string, n ast.Node) string {
	s := r.text(field, n)
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		r.fail(n, field, "want an address that begins with http:// or https://")
	}
	return s
}

// list reads a list of texts, or one text for a list of one.
func (r *sourceReader) list(field string, n ast.Node) []string {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		if one := r.text(field, n); one != "" {
			return []string{one}
		}
		return nil
	}
	var list []string
	for _, v := range seq.Values {
		if v = r.resolve(v); v != nil {
			list = append(list, r.text(field, v))
		}
	}
	return list
}

func (r *sourceReader) rules(field string, n ast.Node) []string {
	list := r.list(field, n)
	_, err := CompileRules(list, nil)
	r.check(n, field, err)
	return list
}

func (r *sourceReader) headers(field string, n ast.Node) map[string]string {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		r.fail(n, field, "want a mapping of names to values")
		return nil
	}
	headers := make(map[string]string, len(m.Values))
	for _, kv := range m.Values {
		name, v := keyOf(kv), r.resolve(kv.Value)
		if v == nil {
			continue
		}
		value := r.text(field, v)
		switch {
		case !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value):
			r.fail(kv.Key, fmt.Sprintf("%s.%s", field, name), "may not stand in an HTTP request")
		case strings.EqualFold(name, "User-Agent"):
			r.fail(kv.Key, field+"."+name, "is set by user_agent")
		}
		headers[name] = value
	}
	return headers
}
