package ledger

import "time"

// Type is the type of an event. Its numbers are part of the stored format:
// they are never reused.
type Type uint8

// The types. Post events have a Post, source events a Source.
const (
	TypePostFetched     Type = 1
	TypePostSeenAgain   Type = 2
	TypePostRevised     Type = 3
	TypePostClassified  Type = 4
	TypePostFailed      Type = 5
	TypePostReturned    Type = 6
	TypePostMeasured    Type = 7
	TypePostRemoved     Type = 8
	TypePostPrioritised Type = 9
	TypePostReviewed    Type = 10
	TypeStoryGrouped    Type = 11
	TypeStoryUngrouped  Type = 12
	TypePostExpired     Type = 13

	TypeSourceCrawled   Type = 32
	TypeSourceFailed    Type = 33
	TypeSourceThrottled Type = 34
	TypeSourceReset     Type = 35
	TypeSourceMoved     Type = 36
	TypeRunsSummarised  Type = 37
	TypeBodiesDropped   Type = 38
)

// Types lists every type that this version knows.
func Types() []Type {
	return []Type{
		TypePostFetched, TypePostSeenAgain, TypePostRevised, TypePostClassified, TypePostFailed, TypePostReturned,
		TypePostMeasured, TypePostRemoved, TypePostPrioritised, TypePostReviewed, TypeStoryGrouped, TypeStoryUngrouped,
		TypePostExpired,
		TypeSourceCrawled, TypeSourceFailed, TypeSourceThrottled, TypeSourceReset, TypeSourceMoved, TypeRunsSummarised,
		TypeBodiesDropped,
	}
}

// String returns the type's name, "PostFetched"; "unknown" for a type of
// another version.
func (t Type) String() string {
	switch t {
	case TypePostFetched:
		return "PostFetched"
	case TypePostSeenAgain:
		return "PostSeenAgain"
	case TypePostRevised:
		return "PostRevised"
	case TypePostClassified:
		return "PostClassified"
	case TypePostFailed:
		return "PostFailed"
	case TypePostReturned:
		return "PostReturned"
	case TypePostMeasured:
		return "PostMeasured"
	case TypePostRemoved:
		return "PostRemoved"
	case TypePostPrioritised:
		return "PostPrioritised"
	case TypePostReviewed:
		return "PostReviewed"
	case TypeStoryGrouped:
		return "StoryGrouped"
	case TypeStoryUngrouped:
		return "StoryUngrouped"
	case TypePostExpired:
		return "PostExpired"
	case TypeSourceCrawled:
		return "SourceCrawled"
	case TypeSourceFailed:
		return "SourceFailed"
	case TypeSourceThrottled:
		return "SourceThrottled"
	case TypeSourceReset:
		return "SourceReset"
	case TypeSourceMoved:
		return "SourceMoved"
	case TypeRunsSummarised:
		return "RunsSummarised"
	case TypeBodiesDropped:
		return "BodiesDropped"
	default:
		return "unknown"
	}
}

// OfPost reports whether events of this type belong to a post.
func (t Type) OfPost() bool { return t >= TypePostFetched && t < TypeSourceCrawled }

// Event is one entry of the ledger: the envelope and what happened.
type Event struct {
	Seq     Seq       // given by the engine; zero before
	At      time.Time // UTC, microseconds; given by the engine where zero
	Type    Type      // always that of Payload
	Version uint8     // of the payload's encoding, as it was stored
	Actor   Actor
	Post    PostNum // the post; zero for events of sources
	Source  Slug    // the source; for PostFetched and PostSeenAgain the carrier
	Payload Payload
}

// Payload is what an event says, one struct for each Type. An event of a type
// or version that this vesti does not know, or whose bytes do not decode, has
// the payload Unknown.
type Payload interface{ EventType() Type }

// Unknown is the payload of an event that cannot be read: kept, counted, shown
// by "vesti verify" and skipped by everybody else.
type Unknown struct {
	Stored Type   // as stored
	Raw    []byte // as stored
	Err    string // why it could not be read
}

// EventType returns the type as stored.
func (u Unknown) EventType() Type { return u.Stored }

// Actor is who caused an event: a kind, and a name where there are several of
// the kind, as in "worker/3".
type Actor string

// The kinds of actors.
const (
	ActorCrawler  Actor = "crawler"  // the schedule
	ActorWorker   Actor = "worker"   // a classifier
	ActorEditor   Actor = "editor"   // a person, on the pages
	ActorOperator Actor = "operator" // a person, on the command line
	ActorLedger   Actor = "ledger"   // the engine: ended leases, retention
)

// NewEvent returns an event about post (0 for none) and source ("" for none)
// with payload's type, its time and Seq left to the engine.
func NewEvent(actor Actor, post PostNum, source Slug, payload Payload) Event {
	return Event{Type: payload.EventType(), Actor: actor, Post: post, Source: source, Payload: payload}
}
