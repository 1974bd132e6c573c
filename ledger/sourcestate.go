package ledger

import "time"

// DeadAfter is the number of failed runs in a row that makes a source dead.
const DeadAfter = 5

// SourceStatus is how a source is doing.
type SourceStatus uint8

// The statuses of sources.
const (
	SourceNew       SourceStatus = iota // never crawled
	SourceAlive                         // the last run worked
	SourceEmpty                         // the last run worked; the feed has no entries
	SourceFailing                       // the last run failed, fewer than DeadAfter in a row
	SourceThrottle                      // told to wait
	SourceDead                          // DeadAfter failures in a row; probed once a day
	SourceGone                          // 410: not asked again until a reset
	SourceStatusLen = iota
)

// String returns the status as pages, metrics and "vesti status" call it.
func (s SourceStatus) String() string {
	names := [SourceStatusLen]string{"new", "alive", "empty", "failing", "throttled", "dead", "gone"}
	if int(s) < len(names) {
		return names[s]
	}
	return "unknown"
}

// SourceState is what a source's events say of it, taken together. The zero
// value is a source that was never crawled.
type SourceState struct {
	Status         SourceStatus
	LastFetch      time.Time // the start of the last run
	LastOK         time.Time // the start of the last run that worked
	LastNew        time.Time // the start of the last run that found something new
	Next           time.Time // due again; zero for at once
	HTTPStatus     int       // of the last answer
	ErrorCount     int       // failed runs in a row
	LastError      string    // "" since the last success
	LastCause      Cause
	ThrottledUntil time.Time
	Validators     Validators
	Title          string // the feed's own
	MovedFrom      string
	MovedTo        string // the address in use where it is not the configured one
	Cursor         string
	Runs           int
	Failures       int
	Fetched        int
	New            int
	SeenAgain      int
	Revised        int
	Dropped        int
}

// Apply returns the state after e, which is an event of the source. Events of
// posts and Unknown ones leave it as it is.
func (s SourceState) Apply(e Event) SourceState {
	switch p := e.Payload.(type) {
	case SourceCrawled:
		return s.crawled(p)
	case SourceFailed:
		s = s.run(p.Run)
		s.Failures++
		s.ErrorCount++
		s.LastError, s.LastCause = p.Message, p.Cause
		s.Status = failedStatus(s, p.Cause)
	case SourceThrottled:
		s = s.run(p.Run)
		s.ThrottledUntil = p.Until
		if s.Status != SourceDead {
			s.Status = SourceThrottle
		}
	case SourceReset:
		s.Status, s.ErrorCount, s.LastError, s.LastCause = SourceAlive, 0, "", ""
		s.ThrottledUntil, s.Next = time.Time{}, time.Time{}
	case SourceMoved:
		s.MovedFrom, s.MovedTo = p.From, p.URL
	case RunsSummarised:
		if s.Runs < p.State.Runs {
			return p.State
		}
	}
	return s
}

// crawled leaves the status as it was on a 304 of a source that was well; one
// that was not can only have been asked without conditions, so an answer that
// nothing changed says that it is well again.
func (s SourceState) crawled(p SourceCrawled) SourceState {
	s = s.run(p.Run)
	s.LastOK = p.Started
	s.ErrorCount, s.LastError, s.LastCause, s.ThrottledUntil = 0, "", "", time.Time{}
	s.Validators = p.Validators
	switch {
	case p.NotModified && (s.Status == SourceAlive || s.Status == SourceEmpty):
	case p.Empty:
		s.Status = SourceEmpty
	default:
		s.Status = SourceAlive
	}
	if p.New > 0 {
		s.LastNew = p.Started
	}
	if p.Title != "" {
		s.Title = p.Title
	}
	if p.Cursor != "" {
		s.Cursor = p.Cursor
	}
	return s
}

// run folds what every run has.
func (s SourceState) run(r Run) SourceState {
	s.LastFetch, s.Next, s.HTTPStatus = r.Started, r.Next, r.HTTPStatus
	s.Runs++
	s.Fetched += r.Fetched
	s.New += r.New
	s.SeenAgain += r.SeenAgain
	s.Revised += r.Revised
	s.Dropped += r.Dropped
	return s
}

func failedStatus(s SourceState, cause Cause) SourceStatus {
	switch {
	case cause == CauseGone:
		return SourceGone
	case s.Status == SourceDead || s.ErrorCount >= DeadAfter:
		return SourceDead
	default:
		return SourceFailing
	}
}
