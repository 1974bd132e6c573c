package crawl_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/ledger"
)

const registry = `# The desk's sources
sources:
  - slug: lwn
    name: LWN.net
    url: https://lwn.net/
    feed_url: https://lwn.net/headlines/rss
    crawler: rss
    direction: linux
    lang: en
    priority: P0
  - &own
    slug: own
    channel: " https://t.me/s/Our_Channel/ "
    crawler: telegram
    direction: tech
    is_own: true
    enabled: false
    backfill: 7
  - slug: full
    feed_url: http://127.0.0.1:8080/feed
    direction: games
    priority: p2
    max_items: 3
    full_text: true
    selector: "div.article > p"
    keep: [игра, "title:/^release/i"]
    block: реклам*
    allow_private: yes-please
`

func parse(t *testing.T, text string) []crawl.Source {
	t.Helper()
	sources, err := crawl.ParseSources([]byte(text), "sources.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	return sources
}

func TestParseSources(t *testing.T) {
	sources := parse(t, strings.Replace(registry, "yes-please", `true
    timezone: Europe/Moscow
    date_order: dmy
    user_agent: curl/8
    headers: {Authorization: Bearer x, X-Number: 5}`, 1))
	if len(sources) != 3 {
		t.Fatalf("%d sources", len(sources))
	}
	lwn, own, full := sources[0], sources[1], sources[2]
	if lwn.Priority != ledger.P0 || !lwn.Enabled || lwn.IsOwn || lwn.MaxItems != 25 || lwn.FullText != crawl.FullTextAuto || lwn.Lane() != ledger.LaneP0 {
		t.Errorf("lwn: %+v", lwn)
	}
	if own.Channel != "our_channel" || own.Name != "own" || own.Enabled || own.Lane() != ledger.LaneOwn || own.Backfill != 7 || own.Priority != ledger.P1 {
		t.Errorf("own: %+v", own)
	}
	if full.Crawler != ledger.CrawlerRSS || full.Priority != ledger.P2 || full.MaxItems != 3 || full.FullText != crawl.FullTextTrue ||
		!full.AllowPrivate || full.Timezone != "Europe/Moscow" || full.Headers["X-Number"] != "5" || full.UserAgent != "curl/8" ||
		!slices.Equal(full.Block, []string{"реклам*"}) || len(full.Keep) != 2 {
		t.Errorf("full: %+v", full)
	}
}

func TestParseSourcesTakesABareListAndMerges(t *testing.T) {
	sources := parse(t, `
- &base
  slug: a
  feed_url: https://a.example/
  direction: tech
  priority: P2
- <<: *base
  slug: b
  feed_url: https://b.example/
`)
	if len(sources) != 2 || sources[1].Slug != "b" || sources[1].Priority != ledger.P2 || sources[1].Direction != "tech" {
		t.Errorf("%+v", sources)
	}
	for _, empty := range []string{"# nothing yet\nsources: []\n", "sources: []\n", "[]"} {
		if got := parse(t, empty); len(got) != 0 {
			t.Errorf("%q: %+v", empty, got)
		}
	}
}

// A list that is not there yet is no list of nothing: the file may be half written.
func TestParseSourcesWantsTheList(t *testing.T) {
	for _, half := range []string{"sources:\n", "# nothing yet\nsources:\n", "sources: ~\n", "sources: null # soon", "~", "null\n", "---\nsources:\n---\n"} {
		_, err := crawl.ParseSources([]byte(half), "sources.yaml", nil)
		if !is(err, ledger.ErrInvalid) || !strings.Contains(err.Error(), "write sources: []") {
			t.Errorf("%q: %v", half, err)
		}
	}
}

// A key without a value is one that is not there, as exports and generators
// write them.
func TestParseSourcesTakesNullForNothing(t *testing.T) {
	sources := parse(t, `
- &base
  slug: a
  name: ~
  url: null
  feed_url: https://a.example/
  channel: null # for telegram only
  direction: tech
  lang:
  priority:
  enabled:
  max_items: null
  selector: ""
  headers: null
  keep:
- <<: *base
  slug: b
  feed_url: null
  channel: durov
`)
	if len(sources) != 2 {
		t.Fatalf("%d sources", len(sources))
	}
	a, b := sources[0], sources[1]
	if a.Name != "a" || a.Channel != "" || !a.Enabled || a.Priority != ledger.P1 || a.MaxItems != 25 || len(a.Keep) > 0 {
		t.Errorf("a: %+v", a)
	}
	if b.Crawler != ledger.CrawlerTelegram || b.FeedURL != "" {
		t.Errorf("b: %+v", b)
	}
}

func TestErrorsNameLineAndField(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"unknown key":       {"sources:\n  - slug: a\n    feedurl: x\n", "s.yaml:3: feedurl: unknown key"},
		"unknown, null":     {"- slug: a\n  feedurl:\n", "s.yaml:2: feedurl: unknown key"},
		"null for slug":     {"- slug: null\n  feed_url: https://a.example/\n  direction: tech\n", "s.yaml:1: slug: is missing"},
		"unknown at top":    {"sauces: []\n", "s.yaml:1: sauces: unknown key"},
		"direction":         {"- slug: a\n  feed_url: https://a.example/\n  direction: cooking\n", `s.yaml:3: direction: "cooking" is none of`},
		"slug":              {"- slug: Not A Slug\n", "s.yaml:1: slug:"},
		"priority":          {"- slug: a\n  priority: P7\n", "s.yaml:2: priority:"},
		"number":            {"- slug: a\n  max_items: many\n", "s.yaml:2: max_items: want a number"},
		"boolean":           {"- slug: a\n  enabled: perhaps\n", "s.yaml:2: enabled:"},
		"address":           {"- slug: a\n  feed_url: file:///etc/passwd\n", "s.yaml:2: feed_url: want an address"},
		"channel":           {"- slug: a\n  channel: 'no such thing'\n", "s.yaml:2: channel:"},
		"no feed":           {"- slug: a\n  direction: tech\n", "s.yaml:1: feed_url: is missing"},
		"no channel":        {"- slug: a\n  crawler: telegram\n  direction: tech\n", "s.yaml:1: channel: is missing"},
		"no direction":      {"- slug: a\n  feed_url: https://a.example/\n", "s.yaml:1: direction: is missing"},
		"no slug":           {"- feed_url: https://a.example/\n  direction: tech\n", "s.yaml:1: slug: is missing"},
		"both":              {"- slug: a\n  direction: tech\n  feed_url: https://a.example/\n  channel: durov\n", "s.yaml:4: channel: is for crawler telegram"},
		"rule":              {"- slug: a\n  block:\n    - '/[/'\n", "s.yaml:3: block: rule"},
		"zone":              {"- slug: a\n  timezone: Mars/Base\n", "s.yaml:2: timezone:"},
		"selector":          {"- slug: a\n  selector: 'div['\n", "s.yaml:2: selector:"},
		"language":          {"- slug: a\n  lang: english\n", "s.yaml:2: lang: want a language's code"},
		"header":            {"- slug: a\n  headers:\n    'Bad Name': x\n", "s.yaml:3: headers.Bad Name:"},
		"duplicate slug":    {"- {slug: a, feed_url: 'https://a.example/', direction: tech}\n- {slug: a, feed_url: 'https://b.example/', direction: tech}\n", `s.yaml:2: slug: "a" is in line 1 already`},
		"duplicate feed":    {"- {slug: a, feed_url: 'https://a.example/', direction: tech}\n- {slug: b, feed_url: 'https://a.example/', direction: tech}\n", "s.yaml:2: feed_url:"},
		"duplicate channel": {"- {slug: a, channel: durov, direction: tech}\n- {slug: b, channel: '@Durov', direction: tech}\n", "s.yaml:2: channel:"},
		"syntax":            {"sources:\n  - slug: 'a\n", "s.yaml:2:"},
		"empty":             {"", "s.yaml:1: the file is empty; to have no sources write sources: []"},
		"blank":             {" \n\n", "s.yaml:1: the file is empty"},
		"comments alone":    {"# nothing yet\n", "s.yaml:1: the file is empty"},
		"an end alone":      {"---\n", "s.yaml:1: the file is empty"},
		"no list":           {"sources: 5\n", "s.yaml:1: sources: want a list"},
		"no mapping":        {"- just text\n", "s.yaml:1: want a source"},
		"mapping for text":  {"- slug: {a: b}\n", "s.yaml:1: slug: want a single value"},
	} {
		sources, err := crawl.ParseSources([]byte(c.text), "s.yaml", nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || !is(err, ledger.ErrInvalid) || sources != nil {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	_, err := crawl.ParseSources([]byte("- slug: A\n  priority: 7\n- slug: b\n  lang: [x]\n"), "s.yaml", nil)
	if got := strings.Count(err.Error(), "s.yaml:"); got < 3 {
		t.Errorf("%d errors are told of, want all three: %v", got, err)
	}
}

func TestDirectionsAreConfiguration(t *testing.T) {
	text := []byte("- {slug: a, feed_url: 'https://a.example/', direction: cooking}\n")
	if _, err := crawl.ParseSources(text, "s.yaml", []ledger.Direction{"cooking"}); err != nil {
		t.Error(err)
	}
}

func TestLoadSources(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sources.yaml")
	if _, err := crawl.LoadSources(path, nil); !is(err, os.ErrNotExist) {
		t.Errorf("got %v, want os.ErrNotExist", err)
	}
	if err := os.WriteFile(path, []byte("- slug: A\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := crawl.LoadSources(path, nil); err == nil || !strings.HasPrefix(err.Error(), "sources.yaml:1: slug:") {
		t.Errorf("got %v", err)
	}
}

func TestChannelName(t *testing.T) {
	for _, s := range []string{"port_example ", "@Port_Example", "https://t.me/port_example", "t.me/s/port_example/", "http://telegram.me/port_example/123?single"} {
		if got, err := crawl.ChannelName(s); err != nil || got != "port_example" {
			t.Errorf("%q: got %q, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "abc", "two words", "https://example.org/port_example", "https://t.me/+invite", "1abcd", "канал"} {
		if got, err := crawl.ChannelName(s); !is(err, ledger.ErrInvalid) {
			t.Errorf("%q: got %q, %v; want ErrInvalid", s, got, err)
		}
	}
}

func TestRules(t *testing.T) {
	for _, c := range []struct {
		keep, block []string
		title, text string
		want        string // "" keeps the entry
	}{
		{nil, nil, "Anything", "", ""},
		{nil, []string{"реклама"}, "РЕКЛАМА недели", "", "block реклама"},
		{nil, []string{"реклама"}, "О рекламах", "саморекламация", ""},
		{nil, []string{"реклам*"}, "О рекламах", "", "block реклам*"},
		{nil, []string{"самолет"}, "", "Новый самолёт.", "block самолет"},
		{nil, []string{"cat"}, "concatenate", "scatter", ""},
		{nil, []string{"cat"}, "concatenate", "a cat, at last", "block cat"},
		{nil, []string{"c++"}, "C++ is out", "", "block c++"},
		{nil, []string{"black  friday"}, "", "black\nfriday", "block black  friday"},
		{nil, []string{"title: cat"}, "dog", "cat", ""},
		{nil, []string{"text:cat"}, "cat", "dog", ""},
		{nil, []string{`/\bv\d+\.\d+\b/`}, "Release v1.2", "", `block /\bv\d+\.\d+\b/`},
		{nil, []string{"/release/"}, "Release", "", ""},
		{nil, []string{"/release/i"}, "Release", "", "block /release/i"},
		{[]string{"linux", "kernel"}, nil, "On the Kernel", "", ""},
		{[]string{"linux", "kernel"}, nil, "On gardens", "", "keep"},
		{[]string{"linux"}, []string{"sponsored"}, "Linux, sponsored", "", "block sponsored"},
	} {
		r, err := crawl.CompileRules(c.keep, c.block)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		if rule, drops := r.Drops(c.title, c.text); rule != c.want || drops != (c.want != "") {
			t.Errorf("keep %q block %q of %q %q: got %q, %v; want %q", c.keep, c.block, c.title, c.text, rule, drops, c.want)
		}
	}
	for _, bad := range []string{"", "*", "title:", "/[/", "//", "/x/g", "/", "/.*/", "..."} {
		if _, err := crawl.CompileRules(nil, []string{bad}); !is(err, ledger.ErrInvalid) {
			t.Errorf("rule %q: got %v, want ErrInvalid", bad, err)
		}
	}
}

func TestOPML(t *testing.T) {
	const file = `<?xml version="1.0"?><opml version="1.0"><head><title>Mine</title></head><body>
<outline text="Linux"><outline type="rss" text="LWN" xmlUrl="https://lwn.net/rss" htmlUrl="https://lwn.net/"/>
  <outline text="Deeper"><outline text="Хабр &mdash; всё" xmlUrl="https://habr.com/rss" language="ru-RU"/></outline></outline>
<outline text="LWN" xmlUrl="https://lwn.net/kernel.rss" category="/tech"/>
<outline text="Again" xmlUrl="https://lwn.net/rss"/>
<outline text="" xmlUrl="http://www.example.org/feed" language="unknown"/>
<outline text="A file" xmlUrl="file:///etc/passwd"/>
<outline text="A link" type="link" url="https://example.org/"/>
<outline text="Durov" type="link" url="https://t.me/durov"/>
<outline text="Reading"><outline title="Sport"><outline text="Chess" xmlUrl="https://chess.example/rss"/></outline></outline>
</body></opml>`
	im := crawl.Import{Direction: "politics", Priority: ledger.P2, Existing: []crawl.Source{{Slug: "durov", FeedURL: "https://x.example/"}}}
	imported, err := crawl.ImportOPML(strings.NewReader(file), im)
	if err != nil {
		t.Fatal(err)
	}
	sources := imported.Sources
	var got []string
	for _, s := range sources {
		got = append(got, strings.Join([]string{string(s.Slug), string(s.Direction), s.FeedURL, s.Channel}, " "))
	}
	want := []string{
		"lwn linux https://lwn.net/rss ", "khabr-vse linux https://habr.com/rss ", "lwn-2 tech https://lwn.net/kernel.rss ",
		"example-org politics http://www.example.org/feed ", "durov-2 politics  durov",
		"chess politics https://chess.example/rss ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if sources[1].Lang != "ru" || sources[3].Lang != "" {
		t.Errorf("languages %q and %q, want ru and none", sources[1].Lang, sources[3].Lang)
	}
	if len(imported.Skipped) != 3 {
		t.Errorf("skipped %+v", imported.Skipped)
	}
	if want := []crawl.Defaulted{{"", "politics", 2}, {"Reading / Sport", "politics", 1}}; !slices.Equal(imported.Defaulted, want) {
		t.Errorf("folders without a direction: %+v, want %+v", imported.Defaulted, want)
	}

	var yaml, out bytes.Buffer
	if err := crawl.WriteSources(&yaml, sources); err != nil {
		t.Fatal(err)
	}
	written := parse(t, yaml.String())
	if err := crawl.ExportOPML(&out, "vesti", written); err != nil {
		t.Fatal(err)
	}
	back, err := crawl.ImportOPML(&out, crawl.Import{Priority: ledger.P2})
	if err != nil || len(back.Skipped) > 0 || len(back.Sources) != len(sources) || len(back.Defaulted) > 0 {
		t.Fatalf("round trip: %+v, %v", back, err)
	}
	for _, s := range back.Sources {
		i := slices.IndexFunc(sources, func(o crawl.Source) bool { return o.FeedURL == s.FeedURL && o.Channel == s.Channel })
		if i < 0 || sources[i].Name != s.Name && s.FeedURL != "http://www.example.org/feed" || sources[i].Direction != s.Direction || sources[i].Lang != s.Lang {
			t.Errorf("round trip changed %+v", s)
		}
	}
	if _, err := crawl.ImportOPML(strings.NewReader("<html>"), im); !is(err, ledger.ErrInvalid) {
		t.Errorf("no OPML: got %v, want ErrInvalid", err)
	}
}
