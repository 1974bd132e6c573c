package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"vesti.nixg.ru/ledger"
)

// Config is every setting. It is filled, each layer over the one before, from
// the defaults, the configuration file, the environment and the flags; the
// table in settings is the one place that names them.
type Config struct {
	Data    string
	Sources string // "" for sources.yaml in Data
	Rules   string // "" for rules.yaml in Data

	Listen         string
	ExternalURL    string
	TrustedProxies []netip.Prefix
	MetricsPublic  bool
	TimeZone       string
	LogLevel       string
	LogJSON        bool
	Memory         ByteSize

	Directions []ledger.Direction

	Durability   string
	Lease        time.Duration
	MaxAttempts  int
	FreeSpace    ByteSize
	KeepRuns     time.Duration
	KeepRevision time.Duration
	KeepPosts    time.Duration

	CrawlConcurrency int
	UserAgent        string
	Proxy            string
	FeedBytes        ByteSize
	PageBytes        ByteSize
	FetchTimeout     time.Duration
	IntervalP0       time.Duration
	IntervalP1       time.Duration
	IntervalP2       time.Duration

	Workers        int
	Grace          time.Duration
	SettleKeywords float64
	Learned        bool
	SettleLearned  float64
	FullText       bool

	LLMKind        string
	LLMURL         string
	LLMModel       string
	LLMKey         string
	LLMWorkers     int
	LLMTimeout     time.Duration
	LLMContext     int
	LLMThink       string
	LLMProvisional bool

	TelegramAPIID   int
	TelegramAPIHash string
}

// ByteSize is a number of bytes, written as 512, 64KiB, 10MiB or 2GiB.
type ByteSize int64

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

// defaultConfig is what holds where nobody says otherwise.
func defaultConfig() Config {
	return Config{
		Data:       "data",
		TimeZone:   "Local",
		Directions: ledger.DefaultDirections(),

		Listen:   "127.0.0.1:8080",
		LogLevel: "info",
		Memory:   512 << 20,

		Durability:  "durable",
		Lease:       2 * time.Minute,
		MaxAttempts: 5,
		FreeSpace:   1 << 30,
		KeepRuns:    30 * 24 * time.Hour,

		CrawlConcurrency: 16,
		UserAgent:        "vesti/" + version + " (+https://vesti.nixg.ru)",
		FeedBytes:        20 << 20,
		PageBytes:        8 << 20,
		FetchTimeout:     time.Minute,
		IntervalP0:       ledger.P0.Interval(),
		IntervalP1:       ledger.P1.Interval(),
		IntervalP2:       ledger.P2.Interval(),

		Workers:        8,
		Grace:          20 * time.Second,
		SettleKeywords: 0.75,
		Learned:        true,
		SettleLearned:  0.9,

		LLMKind:        "none",
		LLMURL:         "http://127.0.0.1:11434",
		LLMWorkers:     1,
		LLMTimeout:     2 * time.Minute,
		LLMContext:     4096,
		LLMProvisional: true,
	}
}

// configLayers are the places a configuration comes from.
type configLayers struct {
	file  string // "" for vesti.yaml in the data folder, which may be absent
	env   func(string) string
	flags map[string]string // by key; what was given on the command line
	cwd   string            // that relative paths count from
}

// loadConfig fills a Config and checks it. Errors match errUsage and name the
// layer, the line where there is one, and the setting.
func loadConfig(l configLayers) (Config, error) {
	c := defaultConfig()
	// The data folder decides where the file is, so it is looked at first.
	for _, over := range []string{l.env("VESTI_DATA"), l.flags["data"]} {
		if over != "" {
			c.Data = over
		}
	}
	if err := c.readFile(l); err != nil {
		return Config{}, err
	}
	for _, s := range c.settings() {
		if v := l.env(s.env()); v != "" {
			if err := s.set(v); err != nil {
				return Config{}, usagef("environment %s: %v", s.env(), err)
			}
		}
		if v, ok := l.flags[s.key]; ok {
			if err := s.set(v); err != nil {
				return Config{}, usagef("setting %s: %v", s.key, err)
			}
		}
	}
	for _, p := range []*string{&c.Data, &c.Sources, &c.Rules} {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(l.cwd, *p)
		}
	}
	for _, f := range []struct {
		key, name string
		path      *string
	}{{"sources", "sources.yaml", &c.Sources}, {"rules", "rules.yaml", &c.Rules}} {
		own := filepath.Join(c.Data, f.name)
		switch info, err := os.Stat(*f.path); {
		case *f.path == "", *f.path == own: // written by the first start
			*f.path = own
		case err != nil:
			return Config{}, usagef("setting %s: %v", f.key, err)
		case info.IsDir():
			return Config{}, usagef("setting %s: %s is a folder, want a file", f.key, *f.path)
		}
	}
	return c, c.check()
}

func (c *Config) readFile(l configLayers) error {
	path, explicit := l.file, l.file != ""
	if !explicit {
		path = filepath.Join(c.Data, "vesti.yaml")
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(l.cwd, path)
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !explicit {
		return nil
	}
	if err != nil {
		return usagef("configuration: %v", err)
	}
	return c.parse(path, b)
}

// parse walks the file's syntax tree, so that each error can name its line.
func (c *Config) parse(path string, b []byte) error {
	file, err := parser.ParseBytes(b, 0)
	if err != nil {
		return usagef("configuration %s: %s", path, yaml.FormatError(err, false, false))
	}
	byKey := map[string]setting{}
	for _, s := range c.settings() {
		byKey[s.key] = s
	}
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if err := parseNode(byKey, "", doc.Body); err != nil {
			return usagef("configuration %s: %v", path, err)
		}
	}
	return nil
}

func parseNode(byKey map[string]setting, prefix string, n ast.Node) error {
	m, ok := n.(ast.MapNode)
	if !ok {
		return fmt.Errorf("line %d: want settings as \"key: value\"", n.GetToken().Position.Line)
	}
	for it := m.MapRange(); it.Next(); {
		key := prefix + it.Key().GetToken().Value
		line := it.Key().GetToken().Position.Line
		s, known := byKey[key]
		_, nested := it.Value().(ast.MapNode)
		switch {
		case known:
			v, err := scalar(it.Value())
			if err == nil {
				err = s.set(v)
			}
			if err != nil {
				return fmt.Errorf("line %d: %s: %w", line, key, err)
			}
		case nested && len(below(byKey, key)) > 0:
			if err := parseNode(byKey, key+".", it.Value()); err != nil {
				return err
			}
		case len(below(byKey, key)) > 0:
			return fmt.Errorf("line %d: %s: want a mapping with keys of %s", line, key, strings.Join(below(byKey, key), ", "))
		default:
			return fmt.Errorf("line %d: unknown setting %q; \"vesti config\" lists them all", line, key)
		}
	}
	return nil
}

// below lists what a section of the file may hold.
func below(byKey map[string]setting, section string) []string {
	var names []string
	for k := range byKey {
		if name, ok := strings.CutPrefix(k, section+"."); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// scalar returns a value as it would stand in the environment.
func scalar(n ast.Node) (string, error) {
	switch n := n.(type) {
	case *ast.SequenceNode:
		var parts []string
		for _, v := range n.Values {
			p, err := scalar(v)
			if err != nil {
				return "", err
			}
			parts = append(parts, p)
		}
		return strings.Join(parts, ","), nil
	case *ast.NullNode:
		return "", nil
	case *ast.StringNode:
		return n.Value, nil
	case ast.ScalarNode:
		return n.GetToken().Value, nil
	default:
		return "", errors.New("want a single value")
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

func (c *Config) check() error {
	if _, err := time.LoadLocation(c.TimeZone); err != nil {
		return usagef("setting time_zone: %q is no known zone; use a name such as Europe/Moscow, UTC or Local", c.TimeZone)
	}
	if len(c.Directions) == 0 {
		return usagef("setting directions: want at least one")
	}
	for i, d := range c.Directions {
		if slices.Contains(c.Directions[:i], d) {
			return usagef("setting directions: %s is there twice", d)
		}
	}
	for _, one := range []struct {
		key, value string
		allowed    []string
	}{
		{"ledger.durability", c.Durability, []string{"durable", "relaxed"}},
		{"llm.kind", c.LLMKind, []string{"none", "ollama", "openai"}},
		{"llm.think", c.LLMThink, []string{"", "off", "unset", "on", "low", "medium", "high"}},
		{"log.level", c.LogLevel, []string{"debug", "info", "warn", "error"}},
	} {
		if !slices.Contains(one.allowed, one.value) {
			return usagef("setting %s: %q is not one of %s", one.key, one.value, strings.Join(one.allowed, ", "))
		}
	}
	for _, n := range []struct {
		key      string
		value    float64
		min, max float64
		format   func(float64) string
	}{
		{"work.workers", float64(c.Workers), 1, 1024, plainNumber},
		{"work.settle_keywords", c.SettleKeywords, 0, 1, plainNumber},
		{"work.settle_learned", c.SettleLearned, 0, 1, plainNumber},
		{"llm.workers", float64(c.LLMWorkers), 1, 256, plainNumber},
		{"llm.context", float64(c.LLMContext), 512, 1 << 20, plainNumber},
		{"ledger.free_space", float64(c.FreeSpace), 64 << 20, 1 << 60, inBytes},
		{"memory", float64(c.Memory), 128 << 20, 1 << 50, inBytes},
		{"ledger.max_attempts", float64(c.MaxAttempts), 1, 1000, plainNumber},
		{"ledger.lease", c.Lease.Seconds(), 1, 86400, inSeconds},
		{"crawl.concurrency", float64(c.CrawlConcurrency), 1, 1024, plainNumber},
		{"crawl.timeout", c.FetchTimeout.Seconds(), 1, 3600, inSeconds},
		{"crawl.p0", c.IntervalP0.Seconds(), 60, 30 * 86400, inSeconds},
		{"crawl.p1", c.IntervalP1.Seconds(), 60, 30 * 86400, inSeconds},
		{"crawl.p2", c.IntervalP2.Seconds(), 60, 30 * 86400, inSeconds},
	} {
		if n.value < n.min || n.value > n.max {
			return usagef("setting %s: %s is outside %s to %s", n.key, n.format(n.value), n.format(n.min), n.format(n.max))
		}
	}
	if c.LLMKind != "none" && c.LLMModel == "" {
		return usagef("setting llm.model: want the model's name when llm.kind is %s", c.LLMKind)
	}
	return nil
}

// location is the configured time zone; check has seen that it exists.
func (c *Config) location() *time.Location {
	loc, err := time.LoadLocation(c.TimeZone)
	if err != nil {
		return time.UTC
	}
	return loc
}
