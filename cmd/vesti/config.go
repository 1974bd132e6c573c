package main

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"vesti.nixg.ru/ledger"
)

// Config is every setting. It is filled, each layer over the one before, from
// the defaults, the configuration file, the environment and the flags; the
// table in settings is the one place that names them.
type Config struct {
	Data    string
	Sources string // "" for sources.yaml in Data
	Rules   string // "" for rules.yaml in Data
	File    string // the configuration file, which may be absent

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
	env   map[string]string
	flags map[string]string // by key; what was given on the command line
	cwd   string            // that relative paths count from
}

// loadConfig fills a Config and checks it. Errors match errUsage and name the
// layer, the line where there is one, and the setting.
func loadConfig(l configLayers) (Config, error) {
	c := defaultConfig()
	// The data folder decides where the file is, so it is looked at first.
	for _, over := range []string{l.env["VESTI_DATA"], l.flags["data"]} {
		if over != "" {
			c.Data = over
		}
	}
	if err := c.readFile(l); err != nil {
		return Config{}, err
	}
	for _, s := range c.settings() {
		if v := l.env[s.env()]; v != "" {
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

// leastFreeSpace is what ledger.free_space may be lowered to: the store is opened
// with half of it, and may grow by the rest before anybody looks again.
const leastFreeSpace ByteSize = 64 << 20

const mostWorkers = 1024 // at once, of a command too

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
		{"work.workers", float64(c.Workers), 1, mostWorkers, plainNumber},
		{"work.grace", c.Grace.Seconds(), 0, 3600, inSeconds},
		{"work.settle_keywords", c.SettleKeywords, 0, 1, plainNumber},
		{"work.settle_learned", c.SettleLearned, 0, 1, plainNumber},
		{"llm.workers", float64(c.LLMWorkers), 1, 256, plainNumber},
		{"llm.timeout", c.LLMTimeout.Seconds(), 1, 3600, inSeconds},
		{"llm.context", float64(c.LLMContext), 512, 1 << 20, plainNumber},
		{"ledger.free_space", float64(c.FreeSpace), float64(leastFreeSpace), 1 << 60, inBytes},
		{"memory", float64(c.Memory), 128 << 20, 1 << 50, inBytes},
		{"ledger.max_attempts", float64(c.MaxAttempts), 1, 1000, plainNumber},
		{"ledger.lease", c.Lease.Seconds(), 1, 86400, inSeconds},
		{"crawl.concurrency", float64(c.CrawlConcurrency), 1, 1024, plainNumber},
		{"crawl.feed_bytes", float64(c.FeedBytes), 64 << 10, 1 << 30, inBytes},
		{"crawl.page_bytes", float64(c.PageBytes), 64 << 10, 1 << 30, inBytes},
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
