package ledger

import (
	"fmt"
	"time"
)

// Slug is the short name of a source, unique in sources.yaml: 1 to 64 of a–z,
// 0–9, "-" and "_", beginning with a letter or a digit.
type Slug string

// Validate returns an error matching ErrInvalid unless s has a slug's form.
func (s Slug) Validate() error {
	if len(s) == 0 || len(s) > 64 {
		return fmt.Errorf("%w: slug %q: want 1 to 64 characters", ErrInvalid, string(s))
	}
	for i := range len(s) {
		c := s[i]
		ok := c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || i > 0 && (c == '-' || c == '_')
		if !ok {
			return fmt.Errorf("%w: slug %q: want a-z, 0-9, - and _, beginning with a letter or digit", ErrInvalid, string(s))
		}
	}
	return nil
}

// Direction is a subject area that posts are sorted into, such as "linux". The
// set of directions is configuration. The empty Direction means none.
type Direction string

// DefaultDirections is the set in force where the configuration names none.
func DefaultDirections() []Direction {
	return []Direction{"linux", "tech", "politics", "games", "electronics", "llm"}
}

// Crawler is a kind of source.
type Crawler string

// The kinds of sources.
const (
	CrawlerRSS      Crawler = "rss" // RSS, Atom, RDF and JSON feeds
	CrawlerTelegram Crawler = "telegram"
)

// Priority says how often a source is crawled. The zero Priority is P0.
type Priority uint8

// The priorities.
const (
	P0 Priority = iota
	P1
	P2
)

// Interval is the time between two crawls of a source of this priority.
func (p Priority) Interval() time.Duration {
	switch p {
	case P0:
		return 15 * time.Minute
	case P1:
		return time.Hour
	case P2:
		return 4 * time.Hour
	default:
		return 4 * time.Hour
	}
}

// Lane is the lane that posts of a source of this priority queue in.
func (p Priority) Lane() Lane { return min(LaneP0+Lane(p), LaneP2) }

// String returns "P0", "P1" or "P2".
func (p Priority) String() string { return fmt.Sprintf("P%d", uint8(p)) }

// ParsePriority reads the form that Priority.String writes.
func ParsePriority(s string) (Priority, error) {
	for _, p := range []Priority{P0, P1, P2} {
		if p.String() == s {
			return p, nil
		}
	}
	return 0, fmt.Errorf("%w: priority %q: want P0, P1 or P2", ErrInvalid, s)
}

// Lane is a queue's lane. Lower lanes go first; every lane that has work gets
// at least one claim in 16, so that none starves.
type Lane uint8

// The lanes, in their order.
const (
	LaneOwn      Lane = iota // posts of the editor's own sources
	LaneEditor               // what an editor asked for
	LaneP0                   // new posts by their source's priority
	LaneP1                   //
	LaneP2                   //
	LaneBackfill             // history: first runs and reclassification

	LaneCount = iota
)

// String returns the lane's name as used in metrics and logs.
func (l Lane) String() string {
	names := [LaneCount]string{"own", "editor", "p0", "p1", "p2", "backfill"}
	if int(l) < len(names) {
		return names[l]
	}
	return "unknown"
}

// Cause is the kind of a failure, from a closed set: it is what metrics count
// by and what parked posts can be replayed by. The text of an error is kept
// beside it, never in its place.
type Cause string

// The causes for which a run of a source fails.
const (
	CauseDNS       Cause = "dns"        // the host's name did not resolve
	CauseConnect   Cause = "connect"    // refused, unreachable or reset
	CauseTLS       Cause = "tls"        // certificate or handshake
	CauseTimeout   Cause = "timeout"    // connect, headers or body took too long
	CauseHTTP      Cause = "http"       // an HTTP status that is no success
	CauseGone      Cause = "gone"       // 410
	CauseNotFeed   Cause = "not_a_feed" // an HTML page, a login form, an empty body
	CauseParse     Cause = "parse"      // a feed that cannot be read
	CauseTooLarge  Cause = "too_large"  // the body exceeds the size limit
	CauseBlocked   Cause = "blocked"    // the address is not one that crawlers may ask
	CauseRedirect  Cause = "redirect"   // a loop, or too many
	CauseNoPreview Cause = "no_preview" // Telegram: the channel has no public preview
	CausePrivate   Cause = "private"    // Telegram: the channel cannot be read by this account
	CauseRenamed   Cause = "renamed"    // Telegram: the name leads to another channel
	CauseVanished  Cause = "vanished"   // Telegram: the name leads nowhere
	CauseLogin     Cause = "login"      // Telegram: a login is needed or was revoked
)

// The causes for which the classification of a post fails. CauseTimeout and
// CauseTooLarge serve here as well.
const (
	CauseUnavailable Cause = "unavailable" // what does the work is away: burns no attempt
	CauseBadReply    Cause = "bad_reply"   // an answer that is not what was asked for
	CauseEmptyReply  Cause = "empty_reply" // no answer in the answer
	CauseTruncated   Cause = "truncated"   // the answer was cut
	CauseLease       Cause = "lease"       // the worker let its lease end
	CauseInternal    Cause = "internal"    // a defect of vesti's own: a panic, a broken text
)

// RunCauses lists the causes of failed runs.
func RunCauses() []Cause {
	return []Cause{
		CauseDNS, CauseConnect, CauseTLS, CauseTimeout, CauseHTTP, CauseGone, CauseNotFeed, CauseParse, CauseTooLarge,
		CauseBlocked, CauseRedirect, CauseNoPreview, CausePrivate, CauseRenamed, CauseVanished, CauseLogin, CauseInternal,
	}
}

// PostCauses lists the causes of failed classifications.
func PostCauses() []Cause {
	return []Cause{
		CauseUnavailable, CauseTimeout, CauseBadReply, CauseEmptyReply, CauseTruncated, CauseTooLarge, CauseLease, CauseInternal,
	}
}
