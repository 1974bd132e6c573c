package ledger

import "time"

// Trigger is what started a run.
type Trigger string

// The triggers.
const (
	TriggerSchedule Trigger = "schedule"
	TriggerManual   Trigger = "manual" // a button or a command
	TriggerProbe    Trigger = "probe"  // the daily look at a dead source
)

// Run is what every run of a source records, however it ended. Next is when
// the source is due again; it is stored, so that a restart keeps the pace.
type Run struct {
	Trigger    Trigger
	Started    time.Time
	Duration   time.Duration
	HTTPStatus int // of the last answer; 0 for none
	Fetched    int // entries in the feed that were looked at
	New        int
	SeenAgain  int
	Revised    int
	Dropped    int // entries that the source's own rules left out
	Bytes      int64
	Truncated  bool // the document was not read whole: cut, or with too many entries; what was complete is kept
	Next       time.Time
}

// Validators are what a server gave to ask it again with, and what the body
// was, since servers lie about the former.
type Validators struct {
	ETag          string
	LastModified  string
	BodyHash      Hash
	LastBuildDate string    // of the feed itself
	FullAt        time.Time // the last fetch without conditions
}

// SourceCrawled records a run that worked, a 304 among them.
type SourceCrawled struct {
	Run
	NotModified bool // 304, or the same bytes as before
	Empty       bool // a valid feed without an entry
	Validators  Validators
	Title       string // the feed's own title
	Cursor      string // how far an incremental source was read; "" leaves the old one
}

// SourceFailed records a run that failed.
type SourceFailed struct {
	Run
	Cause   Cause
	Message string
}

// SourceThrottled records that a source was told to wait. It is no error.
type SourceThrottled struct {
	Run
	Until   time.Time
	Message string
}

// SourceReset records that an operator makes the source alive, with no error.
type SourceReset struct{}

// SourceMoved records a permanent redirect. URL is used from the next fetch on.
type SourceMoved struct {
	From string
	URL  string // "" takes the move back
}

// RunsSummarised records the fold of runs that retention has removed.
type RunsSummarised struct {
	Through Seq // the last run that is in it
	From    time.Time
	To      time.Time
	Runs    int
	Failed  int
	Fetched int
	New     int
	State   SourceState // of the source after Through
}

// BodiesDropped records that retention removed the texts of old revisions. Posts, their
// identities and their newest texts stay.
type BodiesDropped struct {
	Through Seq
	Count   int
}

// EventType implements Payload.
func (SourceCrawled) EventType() Type { return TypeSourceCrawled }

// EventType implements Payload.
func (SourceFailed) EventType() Type { return TypeSourceFailed }

// EventType implements Payload.
func (SourceThrottled) EventType() Type { return TypeSourceThrottled }

// EventType implements Payload.
func (SourceReset) EventType() Type { return TypeSourceReset }

// EventType implements Payload.
func (SourceMoved) EventType() Type { return TypeSourceMoved }

// EventType implements Payload.
func (RunsSummarised) EventType() Type { return TypeRunsSummarised }

// EventType implements Payload.
func (BodiesDropped) EventType() Type { return TypeBodiesDropped }
