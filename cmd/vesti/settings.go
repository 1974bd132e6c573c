package main

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agnivade/levenshtein"

	"vesti.nixg.ru/ledger"
)

// setting is one line of the configuration: its key in the file (a dot is a
// level), its environment variable derived from it, and where its value goes.
type setting struct {
	key    string
	doc    string
	value  any // a pointer into Config
	secret bool
}

func (s setting) env() string {
	return "VESTI_" + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(s.key))
}

// unknownEnv tells of the variables of an environment that are named like
// settings and are none.
func unknownEnv(env map[string]string) []string {
	var c Config
	var names, unknown []string
	for _, s := range c.settings() {
		names = append(names, s.env())
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if strings.HasPrefix(name, "VESTI_") && !slices.Contains(names, name) && !slices.Contains(testEnv(), name) {
			unknown = append(unknown, fmt.Sprintf("environment %s: no such setting, it changes nothing%s", name, suggest(name, names)))
		}
	}
	return unknown
}

// testEnv are the variables that the tests and the makefile heed, which whoever
// works on vesti may have set for good.
func testEnv() []string {
	return []string{
		"VESTI_CASES", "VESTI_CORPORA", "VESTI_CRASH_ROUNDS", "VESTI_FLAT", "VESTI_MODEL", "VESTI_OLLAMA",
		"VESTI_QUALITY", "VESTI_QUALITY_JSON", "VESTI_SHOTS", "VESTI_SOAK",
	}
}

// suggest is what an error about an unknown name ends with.
func suggest(name string, known []string) string {
	best, least := "", len(name)/3+1
	for _, k := range slices.Sorted(slices.Values(known)) {
		if d := levenshtein.ComputeDistance(name, k); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return "; \"vesti config\" lists them all"
	}
	return fmt.Sprintf("; did you mean %s? \"vesti config\" lists them all", best)
}

func (c *Config) settings() []setting {
	return []setting{
		{key: "data", doc: "folder of the store, the index and the socket", value: &c.Data},
		{key: "sources", doc: "the registry of sources; empty for sources.yaml in the data folder", value: &c.Sources},
		{key: "rules", doc: "the keyword rules; empty for rules.yaml in the data folder", value: &c.Rules},
		{key: "directions", doc: "subject areas that posts are sorted into, by comma", value: &c.Directions},
		{key: "time_zone", doc: "IANA name of the zone of dates and of \"today\"; Local is the machine's", value: &c.TimeZone},

		{key: "web.listen", doc: "address of the pages, host:port", value: &c.Listen},
		{key: "web.external_url", doc: "address that browsers use where a proxy stands in front, such as https://desk.example.org/vesti; empty for none", value: &c.ExternalURL},
		{key: "web.trusted_proxies", doc: "networks whose X-Forwarded-For is believed, by comma, such as 127.0.0.0/8", value: &c.TrustedProxies},
		{key: "web.metrics_public", doc: "serve /metrics without a password", value: &c.MetricsPublic},
		{key: "memory", doc: "memory that vesti keeps to where it can, files that the system caches aside; GOMEMLIMIT goes before it", value: &c.Memory},
		{key: "log.level", doc: "debug, info, warn or error", value: &c.LogLevel},
		{key: "log.json", doc: "write the log as JSON lines", value: &c.LogJSON},

		{key: "ledger.durability", doc: "durable: what is acknowledged survives a power cut; relaxed: it survives a crash of vesti, the last moments may go with the power", value: &c.Durability},
		{key: "ledger.lease", doc: "time a worker has for a post before another may take it; renewed while it works", value: &c.Lease},
		{key: "ledger.max_attempts", doc: "failed attempts after which a post is parked", value: &c.MaxAttempts},
		{key: "ledger.free_space", doc: "free disk space below which nothing more is stored; at least 64MiB, which the store needs to stay whole", value: &c.FreeSpace},
		{key: "ledger.keep_runs", doc: "age from which runs of sources are folded into a summary; 0 keeps all", value: &c.KeepRuns},
		{key: "ledger.keep_revisions", doc: "age from which texts of older revisions are dropped; 0 keeps all", value: &c.KeepRevision},
		{key: "ledger.keep_posts", doc: "age from which texts of posts that no editor has decided on are dropped; their identities stay; 0 keeps all", value: &c.KeepPosts},

		{key: "crawl.concurrency", doc: "sources crawled at once", value: &c.CrawlConcurrency},
		{key: "crawl.user_agent", doc: "how vesti names itself to sites; keep a way to reach you in it", value: &c.UserAgent},
		{key: "crawl.proxy", doc: "URL of an HTTP or SOCKS5 proxy for feeds, pages and Telegram; empty for none", value: &c.Proxy},
		{key: "crawl.feed_bytes", doc: "largest feed, decompressed", value: &c.FeedBytes},
		{key: "crawl.page_bytes", doc: "largest article page, decompressed", value: &c.PageBytes},
		{key: "crawl.timeout", doc: "longest time for one answer, body included", value: &c.FetchTimeout},
		{key: "crawl.p0", doc: "time between two crawls of a P0 source", value: &c.IntervalP0},
		{key: "crawl.p1", doc: "time between two crawls of a P1 source", value: &c.IntervalP1},
		{key: "crawl.p2", doc: "time between two crawls of a P2 source", value: &c.IntervalP2},

		{key: "work.workers", doc: "posts classified at once", value: &c.Workers},
		{key: "work.grace", doc: "time that work in hand gets at a stop before it goes back to the queue", value: &c.Grace},
		{key: "work.settle_keywords", doc: "confidence, 0 to 1, from which the keyword rules' decision is final where a later stage exists", value: &c.SettleKeywords},
		{key: "work.learned", doc: "train a small model from the editor's decisions and ask it after the keywords", value: &c.Learned},
		{key: "work.settle_learned", doc: "the same confidence for the learned model, where a language model is configured", value: &c.SettleLearned},
		{key: "work.full_text", doc: "before a post is judged, fetch its article where only a summary or a title could be stored and that is not enough to be sure; not for sources with full_text: false", value: &c.FullText},

		{key: "llm.kind", doc: "none, ollama or openai (any server that speaks its protocol)", value: &c.LLMKind},
		{key: "llm.url", doc: "address of the language model's server", value: &c.LLMURL},
		{key: "llm.model", doc: "name of the model", value: &c.LLMModel},
		{key: "llm.key", doc: "key for an OpenAI-compatible server", value: &c.LLMKey, secret: true},
		{key: "llm.workers", doc: "requests to the model at once", value: &c.LLMWorkers},
		{key: "llm.timeout", doc: "longest time for one answer of the model", value: &c.LLMTimeout},
		{key: "llm.context", doc: "the model's context, in tokens; posts are shortened to fit", value: &c.LLMContext},
		{key: "llm.think", doc: "what is asked of models that can think: off, on, low, medium, high, or unset for the server's own default; empty is off with ollama and unset with openai", value: &c.LLMThink},
		{key: "llm.provisional", doc: "show the keywords' decision until the model has answered", value: &c.LLMProvisional},

		{key: "telegram.api_id", doc: "api_id from my.telegram.org; 0 reads public preview pages", value: &c.TelegramAPIID},
		{key: "telegram.api_hash", doc: "api_hash from my.telegram.org", value: &c.TelegramAPIHash, secret: true},
	}
}

func (s setting) set(v string) error {
	v = strings.TrimSpace(v)
	var err error
	switch p := s.value.(type) {
	case *string:
		*p = v
	case *bool:
		*p, err = strconv.ParseBool(v)
	case *int:
		*p, err = strconv.Atoi(v)
	case *float64:
		*p, err = strconv.ParseFloat(v, 64)
	case *time.Duration:
		*p, err = parseDuration(v)
	case *ByteSize:
		*p, err = parseByteSize(v)
	case *[]ledger.Direction:
		*p = nil
		for _, d := range splitList(v) {
			*p = append(*p, ledger.Direction(d))
		}
	case *[]netip.Prefix:
		*p = nil
		for _, n := range splitList(v) {
			var prefix netip.Prefix
			if prefix, err = netip.ParsePrefix(n); err != nil {
				break
			}
			*p = append(*p, prefix)
		}
	default:
		err = fmt.Errorf("setting of unknown kind %T", p)
	}
	if err != nil {
		return fmt.Errorf("%q is no %s", v, s.kind())
	}
	return nil
}

// kind names what a setting takes, for people.
func (s setting) kind() string {
	switch s.value.(type) {
	case *bool:
		return "true or false"
	case *int:
		return "whole number"
	case *float64:
		return "number"
	case *time.Duration:
		return "duration such as 30s, 15m, 4h or 30d"
	case *ByteSize:
		return "size such as 512KiB, 20MiB or 1GiB"
	case *[]netip.Prefix:
		return "list of networks such as 127.0.0.0/8"
	default:
		return "text"
	}
}

func (s setting) String() string {
	switch p := s.value.(type) {
	case *string:
		if s.secret && *p != "" {
			return "(set)"
		}
		return *p
	case *bool:
		return strconv.FormatBool(*p)
	case *int:
		return strconv.Itoa(*p)
	case *float64:
		return strconv.FormatFloat(*p, 'g', -1, 64)
	case *time.Duration:
		return formatDuration(*p)
	case *ByteSize:
		return p.String()
	case *[]ledger.Direction:
		return joinList(*p, func(d ledger.Direction) string { return string(d) })
	case *[]netip.Prefix:
		return joinList(*p, netip.Prefix.String)
	default:
		return ""
	}
}

func splitList(v string) []string {
	return strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ' ' })
}

func joinList[T any](list []T, format func(T) string) string {
	parts := make([]string, len(list))
	for i, v := range list {
		parts[i] = format(v)
	}
	return strings.Join(parts, ",")
}
