package ledger

import (
	"fmt"
	"time"
)

// Status is where a post stands.
//
//	            ┌── PostFailed, PostReturned, PostRevised ──┐
//	            ▼                                           │
//	PostFetched ─► pending ──── PostClassified ───► classified
//	                 │ ▲                                    │
//	   PostFailed    │ └── PostReturned, PostRevised ───────┘
//	   (parked)      ▼
//	               parked ──── PostReturned, PostRevised ──► pending
//
// A claim is no status: it is a lease beside the log, on a pending post.
type Status uint8

// The statuses. A post whose PostFetched was not seen has none.
const (
	StatusNone Status = iota
	StatusPending
	StatusClassified
	StatusParked
)

// String returns the status as pages and metrics call it.
func (s Status) String() string {
	switch s {
	case StatusPending:
		return "pending"
	case StatusClassified:
		return "classified"
	case StatusParked:
		return "parked"
	case StatusNone:
		return "none"
	default:
		return "unknown"
	}
}

// PostState is what a post's events say of it, taken together. The zero value
// is a post of which nothing is known.
type PostState struct {
	Status      Status
	Lane        Lane
	Stage       Stage
	Attempt     int       // failed attempts since it was last queued
	Revision    int       // of the newest text
	Queued      time.Time // since when it is pending; zero when it is not
	NotBefore   time.Time // no claim before; zero for none
	Provisional bool      // Direction and the rest come from a provisional decision
	Direction   Direction // the classifier's
	Relevance   float64
	Interest    float64
	Decided     time.Time // the first final classification; zero for none
	Verdict     Verdict
	Corrected   Direction // the editor's direction; outranks Direction
	Reviewed    bool      // an editor has decided
	Cause       Cause     // of the last failure; "" since the last success
	Removed     bool      // gone at its source
	Story       PostNum   // zero for none
	Expired     bool      // retention removed its texts
}

// EffectiveDirection is the editor's direction where there is one, else the
// classifier's.
func (s PostState) EffectiveDirection() Direction {
	if s.Corrected != "" {
		return s.Corrected
	}
	return s.Direction
}

// Apply returns the state after e. An event that may not follow from s gives
// s unchanged and an error matching ErrStale; an event that says nothing of a
// post's state, of a source or Unknown, gives s and no error. It is what
// engines check before they write and what projections fold by.
func (s PostState) Apply(e Event) (PostState, error) {
	if _, unknown := e.Payload.(Unknown); unknown || !e.Type.OfPost() {
		return s, nil
	}
	if fetched, ok := e.Payload.(PostFetched); ok {
		if s.Status != StatusNone {
			return s, refuse(s, e)
		}
		return PostState{Status: StatusPending, Lane: fetched.Item.Lane, Queued: e.At}, nil
	}
	if s.Status == StatusNone {
		return s, refuse(s, e)
	}
	switch p := e.Payload.(type) {
	case PostRevised:
		return s.revised(e, p), nil
	case PostClassified:
		return s.classified(e, p)
	case PostFailed:
		return s.failed(e, p)
	case PostReturned:
		if s.Expired {
			return s, refuse(s, e) // there is nothing left to judge
		}
		return s.returned(e, p), nil
	case PostPrioritised:
		s.Lane = p.Lane
	case PostReviewed:
		s.Verdict, s.Corrected = p.Verdict, p.Direction
		s.Reviewed = p.Verdict != VerdictNone || p.Direction != ""
	case PostRemoved:
		s.Removed = true
	case StoryGrouped:
		s.Story = p.Story
	case StoryUngrouped:
		s.Story = 0
	case PostExpired:
		if s.Status == StatusPending || s.Expired {
			return s, refuse(s, e)
		}
		s.Expired = true
	}
	return s, nil
}

func (s PostState) revised(e Event, p PostRevised) PostState {
	s.Revision = p.Revision
	if p.TextChanged {
		s.Expired = false
	}
	if p.Requeued {
		s = s.queue(e.At, StageFirst)
	}
	return s
}

// TakesReplay reports whether a classification may be written that is a replay: a
// decision of before is replaced, a post that waits in the queue or is parked is
// not settled past it, and an editor's decision stands. Engines ask before they
// write; Apply folds what was written all the same.
func (s PostState) TakesReplay() bool { return s.Status == StatusClassified && !s.Reviewed }

// classified refuses what was judged on an older revision. A post that is not
// pending takes only a replay: a second worker's answer is not one.
func (s PostState) classified(e Event, p PostClassified) (PostState, error) {
	if p.Revision != s.Revision || s.Status != StatusPending && !p.Replay {
		return s, refuse(s, e)
	}
	s.Direction, s.Relevance, s.Interest = p.Direction, p.Relevance, p.Interest
	s.Provisional = p.Provisional
	s.Cause = ""
	if p.Provisional {
		return s, nil
	}
	s.Status, s.Attempt, s.Queued, s.NotBefore, s.Stage = StatusClassified, 0, time.Time{}, time.Time{}, StageFirst
	if s.Decided.IsZero() {
		s.Decided = e.At
	}
	return s, nil
}

func (s PostState) failed(e Event, p PostFailed) (PostState, error) {
	if s.Status != StatusPending {
		return s, refuse(s, e)
	}
	s.Attempt, s.Cause, s.NotBefore, s.Stage = p.Attempt, p.Cause, p.RetryAt, p.Stage
	if p.Parked {
		s.Status, s.Queued, s.NotBefore = StatusParked, time.Time{}, time.Time{}
	}
	return s, nil
}

func (s PostState) returned(e Event, p PostReturned) PostState {
	if s.Status == StatusPending {
		s.Lane, s.Stage, s.NotBefore = p.Lane, p.Stage, time.Time{}
		if p.Reason == ReturnReplay || p.Reason == ReturnEditor {
			s.Attempt = 0
		}
		return s
	}
	s.Lane = p.Lane
	return s.queue(e.At, p.Stage)
}

// queue makes the post pending from its first attempt.
func (s PostState) queue(at time.Time, stage Stage) PostState {
	if s.Status != StatusPending {
		s.Queued = at
	}
	s.Status, s.Attempt, s.NotBefore, s.Stage, s.Cause = StatusPending, 0, time.Time{}, stage, ""
	return s
}

func refuse(s PostState, e Event) error {
	return fmt.Errorf("%w: %s of post %d, which is %s at revision %d", ErrStale, e.Type, e.Post, s.Status, s.Revision)
}
