package ledger

import "time"

// Outcome is what an engine made of an item.
type Outcome uint8

// The outcomes, one for each identity rule.
const (
	OutcomeKnown     Outcome = iota // the item is known with this text and title: nothing was written
	OutcomeNew                      // PostFetched
	OutcomeSeenAgain                // PostSeenAgain, or only a further key where the source carries the post already
	OutcomeRevised                  // PostRevised with a text new to the post
	OutcomeTouched                  // PostRevised of the title alone, or back to a text the post had: counts as nothing new
	OutcomeCount     = iota
)

// String returns the outcome as metrics call it.
func (o Outcome) String() string {
	names := [OutcomeCount]string{"known", "new", "seen_again", "revised", "touched"}
	if int(o) < len(names) {
		return names[o]
	}
	return "unknown"
}

// Appended is an engine's answer to one Item.
type Appended struct {
	Outcome Outcome
	Post    PostNum // the item's post
	ID      PostID
	Seq     Seq // of the event written; zero for none
}

// KnownItem is what the ledger knows of an item before it is fetched whole.
type KnownItem struct {
	Post        PostNum  // zero for an item that is not known
	Fingerprint Hash     // as last appended
	Text        [16]byte // what the PostID of its text begins with
}

// Has reports whether the item's text, as last appended, is the one that id
// identifies.
func (k KnownItem) Has(id PostID) bool { return k.Post != 0 && k.Text == [16]byte(id[:16]) }

// KnownText is what the ledger knows of a text before an item with it is
// appended: whose it is.
type KnownText struct {
	Post         PostNum // zero for a text that no post has
	Title        string  // of the post, the newest
	CanonicalURL string
	Carried      bool // by the source that asks
}

// Post is a post with what its events made of it.
type Post struct {
	Num       PostNum
	ID        PostID
	State     PostState
	Fetched   time.Time
	Item      Item // as first fetched, with the newest title and text
	Revisions int
	LinkedTo  PostNum // another post with the same canonical URL or the text of a revision; zero for none
	// Decision is the newest classification, zero for none.
	Decision Classification
}

// ClaimRequest asks an engine for work.
type ClaimRequest struct {
	Worker string
	Stages []Stage // the stages this worker can do; none means StageFirst
	// NoWait makes Claim return ErrQueueEmpty at once when nothing can be claimed;
	// otherwise it waits until something can or the context ends.
	NoWait bool
}

// Claim is a post in a worker's hands until Lease ends. It holds what is
// needed to judge the post.
type Claim struct {
	Post     PostNum
	ID       PostID
	Worker   string
	Token    uint64 // the engine's; fences the claim against later ones
	Lease    time.Time
	Attempt  int // this attempt: 1 for the first
	Revision int // of the text
	Lane     Lane
	Stage    Stage
	Item     Item
}

// Failure is why a worker gives a post up.
type Failure struct {
	Cause   Cause
	Message string
	// Final parks the post at once: no later attempt could do better.
	Final bool
}

// QueueGauge is what the engine alone knows of the queue.
type QueueGauge struct {
	Processing int // claims in hand
	Waiting    int // pending posts whose delay is not over
}
