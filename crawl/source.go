// Package crawl keeps the registry of sources and crawls them on schedule. It
// knows when a source is due and what a run's end means; how a source is read
// is the business of the packages below it, one for each Kind.
package crawl

import (
	"net/url"
	"strings"

	"vesti.nixg.ru/ledger"
)

// Source is one entry of sources.yaml.
type Source struct {
	Slug      ledger.Slug
	Name      string
	URL       string // the site, for people
	FeedURL   string // for CrawlerRSS
	Channel   string // for CrawlerTelegram: the name without "@" or "https://t.me/"
	Crawler   ledger.Crawler
	Direction ledger.Direction
	Lang      string // as Language returns it; "" leaves it to what its entries say
	Priority  ledger.Priority
	Enabled   bool // default true
	IsOwn     bool

	MaxItems     int               // newest entries a run; default 25
	FullText     FullText          // whether to fetch article pages
	Selector     string            // CSS selector of the article's text on its page; "" leaves it to the extraction
	Keep         []string          // if any: only entries whose title or text one of these matches (a word, or /regular expression/)
	Block        []string          // entries that one of these matches are dropped and counted
	AllowPrivate bool              // its own hosts may be private addresses
	Timezone     string            // of dates without a zone; default UTC
	DateOrder    string            // of numeric dates: "dmy", "mdy"; default dmy for lang ru, else unknown
	Headers      map[string]string // sent with each request to its feed
	UserAgent    string            // in place of the configured one
	Backfill     int               // Telegram: messages of the first run; default 100
}

// Lane is the queue's lane for the source's new posts.
func (s Source) Lane() ledger.Lane {
	if s.IsOwn {
		return ledger.LaneOwn
	}
	return s.Priority.Lane()
}

// FeedAddress is the URL to ask for the source's feed: the target of a
// permanent redirect where there was one, else the configured one. A dead
// source's probe goes back to the configured one, since the target may be what
// is wrong; so does a source whose configured URL was changed after the move.
func (s Source) FeedAddress(state ledger.SourceState) string {
	moved := state.MovedTo != "" && state.MovedFrom == s.FeedURL
	if !moved || state.Status == ledger.SourceDead {
		return s.FeedURL
	}
	return state.MovedTo
}

// address is the configured address, of a feed or a channel.
func (s Source) address() string {
	if s.FeedURL == "" && s.Channel != "" {
		return "https://t.me/" + s.Channel
	}
	return s.FeedURL
}

// OwnURLs are the configured addresses of the source: with AllowPrivate their
// hosts, by name and port, may be private addresses.
func (s Source) OwnURLs() []*url.URL {
	var own []*url.URL
	for _, raw := range []string{s.FeedURL, s.URL} {
		if u, err := url.Parse(raw); err == nil && u.Host != "" {
			own = append(own, u)
		}
	}
	return own
}

// Language returns the primary subtag of a language's tag, "ru" for "ru-RU": what
// posts are labelled with. It is "" for what is no such tag.
func Language(tag string) string {
	tag, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
	tag, _, _ = strings.Cut(tag, "_")
	letters := strings.Trim(tag, "abcdefghijklmnopqrstuvwxyz") == ""
	if !letters || len(tag) != 2 && len(tag) != 3 {
		return ""
	}
	return tag
}

// FullText says when the article's page is fetched for an entry.
type FullText string

// The values of full_text.
const (
	FullTextAuto  FullText = "auto"  // without full content, or under 220 characters
	FullTextTrue  FullText = "true"  // always
	FullTextFalse FullText = "false" // never
)
