package cases

import "encoding/json"

// The owners: packages with a TestPublicCases.
const (
	Ledger     = "ledger"
	Badgerlog  = "ledger/badgerlog"
	Crawl      = "crawl"
	Feed       = "crawl/feed"
	Telegram   = "crawl/telegram"
	Keyword    = "classify/keyword"
	Classify   = "classify"
	LLM        = "classify/llm"
	Search     = "projections/search"
	HTTPUI     = "httpui"
	Vesti      = "cmd/vesti"
	ownerless  = ""
	prefixSize = 3 // digits of a case's number
)

// ownerOf returns the package whose test runs c: by its number where it is one
// of a kind, else by its kind and its input. A case that a later edition adds
// falls to the owner of its kind.
func ownerOf(c Case) string {
	if o := byNumber(c.ID[:min(prefixSize, len(c.ID))]); o != ownerless {
		return o
	}
	var in struct{ Type string }
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return ownerless
	}
	switch in.Type {
	case "exchange", "feeds":
		return Crawl
	case "feed", "dates", "html", "urls":
		return Feed
	case "texts":
		return Ledger
	case "telegram":
		return Telegram
	case "search", "search_generated":
		return Search
	case "classify":
		return LLM
	}
	switch c.Kind {
	case "feed", "date", "text", "url":
		return Feed
	case "http":
		return Crawl
	case "dedup":
		return Ledger
	case "search":
		return Search
	case "classify":
		return Classify
	default:
		return Vesti
	}
}

func byNumber(number string) string {
	switch number {
	case "225":
		return Badgerlog
	case "085", "086":
		return Telegram
	case "223", "224":
		return Keyword
	case "231":
		return HTTPUI
	case "228", "229", "230":
		return Vesti
	default:
		return ownerless
	}
}
