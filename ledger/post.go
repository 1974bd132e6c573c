package ledger

import (
	"strings"
	"time"
)

// TextOrigin is how the text of a post was got.
type TextOrigin string

// The origins of texts.
const (
	TextContent  TextOrigin = "content"  // the entry's full content
	TextSummary  TextOrigin = "summary"  // the entry's summary
	TextPage     TextOrigin = "page"     // extracted from the article's page
	TextTitle    TextOrigin = "title"    // there was nothing but a title
	TextMessage  TextOrigin = "message"  // a Telegram message by MTProto
	TextPreview  TextOrigin = "preview"  // a Telegram message from the preview page
	TextCorrect  TextOrigin = "editor"   // given by an editor
	TextSelector TextOrigin = "selector" // from the article's page by the source's CSS selector
)

// Item is one entry of a feed or one message of a channel, as a crawler hands
// it over. Text is final: plain, decoded, with its paragraphs as lines.
type Item struct {
	Source       Slug
	Key          ItemKey
	Fingerprint  Hash   // of what the source gave before any page was fetched; zero for none
	URL          string // as fetched and opened, with all its parameters
	CanonicalURL string // the key to compare by; "" for none
	Title        string
	Author       string
	Published    time.Time // zero for unknown
	PublishedRaw string    // as the source wrote it
	Text         string
	TextFrom     TextOrigin
	Truncated    bool // Text was cut to MaxText
	Lang         string
	Direction    Direction // of the source: the fallback of classification
	IsOwn        bool
	Lane         Lane
	Measures     Measures
	ForwardOf    string // where it was forwarded from: a URL, or a name where there is no link
	Media        []string
	ItemID       string // the source's own id, where later events need it: a Telegram message id
}

// maxHeadline is how much of a text stands for a missing title, in bytes.
const maxHeadline = 160

// Headline is what a list calls the item: its title, without one the beginning
// of its text, on one line. It is "" for an item that has neither, such as a
// picture.
func (i Item) Headline() string {
	if title := strings.Join(strings.Fields(i.Title), " "); title != "" {
		return title
	}
	line, _, _ := strings.Cut(strings.TrimSpace(i.Text), "\n")
	line = strings.Join(strings.Fields(line), " ")
	if len(line) <= maxHeadline {
		return line
	}
	line = CutText(line, maxHeadline)
	if space := strings.LastIndexByte(line, ' '); space > maxHeadline/2 {
		line = line[:space]
	}
	return line + "…"
}

// Measures are the counts that a source shows with a post. A nil count is
// unknown, not zero.
type Measures struct {
	Views     *int64
	Reactions *int64
	Rounded   bool // the source rounds: "8.67M"
}

// PostFetched records a new post. Fields as in Item.
type PostFetched struct {
	ID          PostID
	NormVersion uint8
	Item        Item // Text is held apart by engines and read only on request
	TextLen     int  // bytes
	LinkedTo    PostNum
}

// PostSeenAgain records the text of a known post at another item.
type PostSeenAgain struct {
	Key          ItemKey
	URL          string
	CanonicalURL string
	Title        string
	Published    time.Time
	ItemID       string
	Measures     Measures
}

// PostRevised records a known item with another text or title. A revision that is not
// New changed the title alone, or brought back a text the post had before: it
// is recorded and requeues nothing.
type PostRevised struct {
	Key      ItemKey
	Revision int // 1 for the first; counts New ones only
	New      bool
	Requeued bool // the post goes back to the queue: more than a tenth of its words changed
	// TextChanged: the post's newest text is now this event's. Where it is false
	// only the title or the URL changed, and Text is empty.
	TextChanged  bool
	Hash         Hash // of the normalised text, whether it changed or not
	Title        string
	Text         string // held apart by engines and read only on request; "" where the text did not change
	TextLen      int    // bytes; 0 where the text did not change
	TextFrom     TextOrigin
	URL          string
	CanonicalURL string
	Published    time.Time
	LinkedTo     PostNum // another post that has this text already
}

// Reason is one ground of a decision.
type Reason struct {
	Stage   string  // keyword, learned, llm, default
	Rule    string  // the rule's name; "" for none
	Matched string  // what it matched in the text
	Weight  float64 // what it added to its direction's score
	Note    string
}

// Classification is a decision on a post.
type Classification struct {
	Direction   Direction
	Relevance   float64 // 0 to 1: how surely it belongs to Direction
	Interest    float64 // 0 to 1: how much an editor would want to see it
	Summary     string
	Confidence  float64 // 0 to 1: how sure the stage is of Direction
	Stage       string  // what settled it: keyword, learned, llm, default
	Reasons     []Reason
	RuleSet     string // hash of the rules
	PromptHash  string
	Model       string
	ModelDigest string
	RawReply    string
	Duration    time.Duration
}

// PostClassified records a decision. A provisional one is shown and leaves the post in
// the queue. A replay comes from reclassification and counts for no day.
type PostClassified struct {
	Classification
	Revision    int // the revision that was judged
	Provisional bool
	Replay      bool
}

// PostFailed records an attempt that came to nothing.
type PostFailed struct {
	Attempt int // 1 for the first; counts the attempts since the post was last queued
	Cause   Cause
	Message string
	RetryAt time.Time // zero when parked
	Parked  bool      // out of the queue until somebody replays it
	Stage   Stage     // the stage that failed
}

// Stage is a part of the cascade with a queue of its own, so that posts which
// need something that is away wait apart from those that do not.
type Stage uint8

// The stages.
const (
	StageFirst Stage = iota // keywords and the learned model: always at hand
	StageLLM                // posts that only a language model can settle

	StageCount = iota
)

// String returns the stage's name as used in metrics.
func (s Stage) String() string {
	switch s {
	case StageFirst:
		return "first"
	case StageLLM:
		return "llm"
	default:
		return "unknown"
	}
}

// PostReturned records that the post is back in the queue, with no attempt burnt.
type PostReturned struct {
	Reason Return
	Stage  Stage
	Lane   Lane
	Note   string
}

// Return is why a post came back to the queue, from a closed set.
type Return string

// The reasons for a return.
const (
	ReturnReplay   Return = "replay"   // an operator replays parked posts
	ReturnEditor   Return = "editor"   // an editor wants it judged again
	ReturnRules    Return = "rules"    // a new rule set or model
	ReturnStage    Return = "stage"    // on to the next stage of the cascade
	ReturnDelay    Return = "delay"    // its delay after a failure is over
	ReturnShutdown Return = "shutdown" // the worker stops
	ReturnAway     Return = "away"     // what does the work is away
	ReturnRepair   Return = "repair"   // a check found it missing from its queue
)

// Returns lists the reasons for a return.
func Returns() []Return {
	return []Return{
		ReturnReplay, ReturnEditor, ReturnRules, ReturnStage, ReturnDelay, ReturnShutdown, ReturnAway, ReturnRepair,
	}
}

// PostMeasured records that views or reactions changed notably.
type PostMeasured struct{ Measures Measures }

// PostRemoved records that the post is gone at its source. The post stays.
type PostRemoved struct {
	Key   ItemKey
	Cause string
}

// PostPrioritised records that an editor asks for this post to be judged before others.
type PostPrioritised struct{ Lane Lane }

// Verdict is an editor's decision on a post.
type Verdict string

// The verdicts. VerdictNone takes an earlier one back.
const (
	VerdictNone     Verdict = ""
	VerdictPicked   Verdict = "picked"
	VerdictRejected Verdict = "rejected"
)

// PostReviewed records an editor's word. It replaces the editor's earlier word on the
// post and outranks every classification; the zero value takes it back.
type PostReviewed struct {
	Verdict   Verdict
	Direction Direction // corrected direction; "" leaves the classifier's
	Note      string
}

// StoryGrouped records near-duplicates that were put together; the event's post joins Story.
type StoryGrouped struct {
	Story      PostNum // the story's first post
	Similarity float64 // 0 to 1; 1 for an editor's word
}

// StoryUngrouped records that the post leaves its story.
type StoryUngrouped struct{ Story PostNum }

// PostExpired records that retention removed the texts of a post that is older than a
// setting. It leaves search and the lists; its identity, its events and its
// state stay, so that the same text or item never comes back as new. A later
// revision with another text brings it back.
type PostExpired struct{}

// EventType implements Payload.
func (PostFetched) EventType() Type { return TypePostFetched }

// EventType implements Payload.
func (PostSeenAgain) EventType() Type { return TypePostSeenAgain }

// EventType implements Payload.
func (PostRevised) EventType() Type { return TypePostRevised }

// EventType implements Payload.
func (PostClassified) EventType() Type { return TypePostClassified }

// EventType implements Payload.
func (PostFailed) EventType() Type { return TypePostFailed }

// EventType implements Payload.
func (PostReturned) EventType() Type { return TypePostReturned }

// EventType implements Payload.
func (PostMeasured) EventType() Type { return TypePostMeasured }

// EventType implements Payload.
func (PostRemoved) EventType() Type { return TypePostRemoved }

// EventType implements Payload.
func (PostPrioritised) EventType() Type { return TypePostPrioritised }

// EventType implements Payload.
func (PostReviewed) EventType() Type { return TypePostReviewed }

// EventType implements Payload.
func (StoryGrouped) EventType() Type { return TypeStoryGrouped }

// EventType implements Payload.
func (StoryUngrouped) EventType() Type { return TypeStoryUngrouped }

// EventType implements Payload.
func (PostExpired) EventType() Type { return TypePostExpired }
