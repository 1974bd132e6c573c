package crawl_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/ledger"
)

// expectations are what exchange cases expect; what is absent is not checked.
type expectations struct {
	Polls               []pollExpectation  `json:"polls"`
	DocumentsTotal      *int               `json:"documents_total"`
	LatestTextContains  []string           `json:"latest_text_contains"`
	NewestTextContains  []string           `json:"newest_text_contains"`
	Search              struct{ Q string } `json:"search"`
	CanonicalURL        string             `json:"canonical_url"`
	FulltextRequests    *int               `json:"fulltext_requests"`
	RequestsToArticle   *int               `json:"requests_to_article"`
	SourceURLAfter      string             `json:"source_url_after"`
	RequestsMax         int                `json:"requests_max"`
	ErrorMentions       []string           `json:"error_mentions"`
	ErrorMentionsIf     []string           `json:"error_mentions_if_error"`
	ErrorNotMentions    []string           `json:"error_not_mentions"`
	CrawlersPageShows   string             `json:"crawlers_page_shows"`
	ReEnabledByHand     bool               `json:"can_be_re_enabled_by_hand"`
	StillPolled         bool               `json:"still_polled_after_5_errors"`
	BadValidatorsUnkept bool               `json:"validators_from_bad_answer_not_stored"`
	MaxSeconds          any                `json:"max_seconds"`
	BytesReadMax        string             `json:"bytes_read_max"`
	RSSGrowthMBMax      int64              `json:"rss_growth_mb_max"`
	AcceptContains      []string           `json:"request_accept_contains"`
	RequestPathRaw      string             `json:"request_path_raw"`
	NoConnectTo         []netip.AddrPort   `json:"no_connect_to"`
	NoConnectAllExcept  []string           `json:"no_connect_at_all_except"`
	UTF8Valid           bool               `json:"utf8_valid"`
	Items               []itemExpectation  `json:"items"`
	ConfigBetweenPolls  map[string]string  `json:"config_between_polls"`

	OtherSourcesUnaffected bool `json:"other_sources_unaffected"`

	UserAgent struct {
		Contains    string `json:"contains"`
		NotContains string `json:"not_contains"`
	} `json:"user_agent"`
}

type pollExpectation struct {
	Poll              int      `json:"poll"`
	SourceStatus      string   `json:"source_status"`
	SourceStatusAnyOf []string `json:"source_status_any_of"`
	NewDocuments      *int     `json:"new_documents"`
	ErrorCount        *int     `json:"error_count"`
	ErrorMentions     []string `json:"error_mentions"`
	SourceDisabled    *bool    `json:"source_disabled"`
}

type itemExpectation struct {
	N                 int      `json:"n"`
	Title             string   `json:"title"`
	CanonicalURL      string   `json:"canonical_url"`
	CanonicalURLAnyOf []string `json:"canonical_url_any_of"`
	Link              string   `json:"link"`
	TextContains      []string `json:"text_contains"`
	TextNotContains   []string `json:"text_not_contains"`
	TextSource        string   `json:"text_source"`
}

// statusNames are vesti's words for how a run ended, in the words of the cases.
// A status that says less includes those that say more.
func (p poll) is(status string) bool {
	failed, isFailed := p.payload.(ledger.SourceFailed)
	crawled, isCrawled := p.payload.(ledger.SourceCrawled)
	cause := func(causes ...ledger.Cause) bool { return isFailed && slices.Contains(causes, failed.Cause) }
	switch status {
	case "ok":
		return isCrawled
	case "not_modified":
		return isCrawled && crawled.NotModified
	case "rate_limited":
		_, throttled := p.payload.(ledger.SourceThrottled)
		return throttled
	case "gone":
		return cause(ledger.CauseGone) && p.after.Status == ledger.SourceGone
	case "blocked":
		return cause(ledger.CauseBlocked) || isFailed && (failed.HTTPStatus == 401 || failed.HTTPStatus == 403)
	case "not_a_feed":
		return cause(ledger.CauseNotFeed)
	case "parse_error":
		return cause(ledger.CauseParse)
	case "too_large":
		return cause(ledger.CauseTooLarge)
	case "timeout":
		return cause(ledger.CauseTimeout)
	case "temporary_error":
		return cause(ledger.CauseDNS, ledger.CauseConnect, ledger.CauseTLS, ledger.CauseTimeout, ledger.CauseHTTP, ledger.CauseRedirect)
	case "permanent_error":
		return isFailed
	default:
		return false
	}
}

func (p *play) checkPoll(n int, got poll) error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, want := range p.expect.Polls {
		if want.Poll != n {
			continue
		}
		anyOf := want.SourceStatusAnyOf
		if want.SourceStatus != "" {
			anyOf = append(anyOf, want.SourceStatus)
		}
		if len(anyOf) > 0 && !slices.ContainsFunc(anyOf, got.is) {
			fail("the run is %T %+v, want %q", got.payload, got.result, anyOf)
		}
		if fresh := got.result.New + got.result.Revised; want.NewDocuments != nil && fresh != *want.NewDocuments {
			fail("%d new documents, want %d (%+v)", fresh, *want.NewDocuments, got.result)
		}
		if want.ErrorCount != nil && got.after.ErrorCount != *want.ErrorCount {
			fail("error count %d, want %d", got.after.ErrorCount, *want.ErrorCount)
		}
		if want.SourceDisabled != nil && *want.SourceDisabled != p.due(caseSlug).IsZero() {
			fail("source disabled: %v, want %v", p.due(caseSlug).IsZero(), *want.SourceDisabled)
		}
		errs = append(errs, mentions(got, want.ErrorMentions))
	}
	if got.result.Outcome == crawl.OutcomeFailed {
		errs = append(errs, mentions(got, p.expect.ErrorMentions), mentions(got, p.expect.ErrorMentionsIf))
		for _, word := range p.expect.ErrorNotMentions {
			if strings.Contains(got.after.LastError, word) {
				fail("the error %q mentions %q", got.after.LastError, word)
			}
		}
		if p.expect.BadValidatorsUnkept && got.after.Validators != got.before.Validators {
			fail("a failed run changed the validators: %+v", got.after.Validators)
		}
	}
	errs = append(errs, p.checkCost(got))
	return errors.Join(errs...)
}

// checkCost holds a poll to its time, its bytes and its memory.
func (p *play) checkCost(got poll) error {
	most := 30 * time.Second
	switch v := p.expect.MaxSeconds.(type) {
	case float64:
		most = time.Duration(v * float64(time.Second))
	case string: // "configured total timeout + 5"
		most = p.timeout + 5*time.Second
	}
	if got.took > most {
		return fmt.Errorf("the poll took %s, want %s at most", got.took, most)
	}
	const slack = 64 << 10
	if read := p.world.BytesRead() - p.captured; p.expect.BytesReadMax != "" && read > playLimit+slack+playLimit/100 { // TLS adds its share
		return fmt.Errorf("%d bytes read, want %d at most", read, playLimit+slack)
	}
	if grown := residentMB() - p.rss; p.expect.RSSGrowthMBMax > 0 && grown > p.expect.RSSGrowthMBMax {
		return fmt.Errorf("resident memory grew by %d MB, want %d at most", grown, p.expect.RSSGrowthMBMax)
	}
	return nil
}

func mentions(got poll, words []string) error {
	for _, word := range words {
		if !strings.Contains(strings.ToLower(got.after.LastError), strings.ToLower(word)) {
			return fmt.Errorf("the error %q does not mention %q", got.after.LastError, word)
		}
	}
	return nil
}

func (d *desktop) due(slug ledger.Slug) time.Time {
	for _, v := range d.Status() {
		if v.Source.Slug == slug {
			return v.Due
		}
	}
	return time.Time{}
}

// final checks what holds when all polls are over.
func (p *play) final() []error {
	e := p.expect
	errs := append(p.checkPosts(), p.checkRequests()...)
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	state := p.state(p.t, caseSlug)
	if at := p.sources[0].FeedAddress(state); e.SourceURLAfter != "" && at != e.SourceURLAfter {
		fail("the source is asked at %s, want %s", at, e.SourceURLAfter)
	}
	for _, a := range p.world.Dialed() {
		if slices.Contains(e.NoConnectTo, a) {
			fail("dialled %s", a)
		}
	}
	if e.StillPolled && p.due(caseSlug).IsZero() {
		fail("the source is not polled any more")
	}
	if e.CrawlersPageShows != "" && state.Status.String() != e.CrawlersPageShows {
		fail("status %s, want %s", state.Status, e.CrawlersPageShows)
	}
	if state.Status == ledger.SourceGone {
		errs = append(errs, p.checkGone(e.ReEnabledByHand)...)
	}
	return errs
}

// checkGone sees that a source that is gone is left alone until its reset.
func (p *play) checkGone(reset bool) []error {
	var errs []error
	before := len(p.server.seen())
	if _, err := p.run(p.t, caseSlug); !errors.Is(err, ledger.ErrInvalid) {
		errs = append(errs, fmt.Errorf("a run of a source that is gone: %w, want a refusal", err))
	}
	if !p.due(caseSlug).IsZero() || len(p.server.seen()) != before {
		errs = append(errs, errors.New("a source that is gone is still asked"))
	}
	if reset {
		err := p.Reset(p.t.Context(), ledger.ActorOperator, caseSlug)
		if s := p.state(p.t, caseSlug); err != nil || s.Status != ledger.SourceAlive || p.due(caseSlug).IsZero() {
			errs = append(errs, fmt.Errorf("after a reset: %s, %w", s.Status, err))
		}
	}
	return errs
}

func (p *play) checkRequests() []error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	e, pages := p.expect, 0
	all := p.server.seen()
	if e.RequestsMax > 0 && len(all) > e.RequestsMax {
		fail("%d requests, want %d at most", len(all), e.RequestsMax)
	}
	for _, r := range all {
		agent, accept := r.header.Get("User-Agent"), r.header.Get("Accept")
		if !strings.Contains(agent, e.UserAgent.Contains) || e.UserAgent.NotContains != "" && strings.Contains(agent, e.UserAgent.NotContains) {
			fail("%s was asked for by %q", r.url, agent)
		}
		for _, kind := range e.AcceptContains {
			if !strings.Contains(accept, kind) {
				fail("Accept %q lacks %s", accept, kind)
			}
		}
		if e.RequestPathRaw != "" && r.uri != e.RequestPathRaw {
			fail("the path went out as %s, want %s", r.uri, e.RequestPathRaw)
		}
		if r.url != p.sources[0].FeedURL {
			pages++
		}
	}
	for _, want := range []*int{e.FulltextRequests, e.RequestsToArticle} {
		if want != nil && pages != *want {
			fail("%d requests for article pages, want %d", pages, *want)
		}
	}
	return errs
}

func (p *play) checkPosts() []error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	e, posts := p.expect, p.posts(p.t)
	documents := 0
	for _, got := range p.polls {
		documents += got.result.New + got.result.Revised
	}
	if e.DocumentsTotal != nil && documents != *e.DocumentsTotal {
		fail("%d documents in all, want %d", documents, *e.DocumentsTotal)
	}
	all := ""
	for _, post := range posts {
		all += post.Item.Title + "\n" + post.Item.Text + "\n"
		if e.CanonicalURL != "" && post.Item.CanonicalURL != e.CanonicalURL {
			fail("canonical URL %q, want %q", post.Item.CanonicalURL, e.CanonicalURL)
		}
	}
	for _, words := range append(slices.Concat(e.LatestTextContains, e.NewestTextContains), e.Search.Q) {
		if !strings.Contains(flat(all), flat(words)) {
			fail("the newest text does not contain %q: %q", words, all)
		}
	}
	if e.UTF8Valid && !utf8.ValidString(all) {
		fail("the text is no valid UTF-8")
	}
	for _, want := range e.Items {
		errs = append(errs, checkItem(want, posts))
	}
	return errs
}

func flat(s string) string { return strings.Join(strings.Fields(s), " ") }

func checkItem(want itemExpectation, posts []ledger.Post) error {
	i := slices.IndexFunc(posts, func(p ledger.Post) bool { return p.Item.Title == want.Title })
	if want.Title == "" && len(posts) > 0 {
		i = max(want.N-1, 0)
	}
	if i < 0 || i >= len(posts) {
		return fmt.Errorf("no post %q", want.Title)
	}
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	it := posts[i].Item
	anyOf := want.CanonicalURLAnyOf
	if want.CanonicalURL != "" {
		anyOf = append(anyOf, want.CanonicalURL)
	}
	if len(anyOf) > 0 && !slices.Contains(anyOf, it.CanonicalURL) {
		fail("canonical URL %q, want %q", it.CanonicalURL, anyOf)
	}
	if want.Link != "" && it.URL != want.Link {
		fail("link %q, want %q", it.URL, want.Link)
	}
	for _, words := range want.TextContains {
		if !strings.Contains(flat(it.Text), flat(words)) {
			fail("the text does not contain %q: %q", words, it.Text)
		}
	}
	for _, words := range want.TextNotContains {
		if strings.Contains(flat(it.Text), flat(words)) {
			fail("the text contains %q: %q", words, it.Text)
		}
	}
	if want.TextSource == "article" && it.TextFrom != ledger.TextPage {
		fail("the text is from %s, want the page", it.TextFrom)
	}
	return errors.Join(errs...)
}

// residentMB is the process's resident memory, 0 where the system does not say.
func residentMB() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize()) >> 20
}
