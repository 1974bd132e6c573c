package badgerlog

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"vesti.nixg.ru/ledger"
)

// postRecord is what p holds of a post: the fold of its events and what the
// engine needs to find its newest text, its place in the queue and its claim.
type postRecord struct {
	num      ledger.PostNum // from the key
	id       ledger.PostID
	state    ledger.PostState
	place    ledger.Seq     // the Seq under which it stands in the queue
	text     ledger.Seq     // the event with its newest text
	revised  ledger.Seq     // its newest PostRevised; 0 for none
	decision ledger.Seq     // its newest PostClassified; 0 for none
	linked   ledger.PostNum // see ledger.Post.LinkedTo
	carriers []ledger.Slug  // the sources that carry it, the first one aside
	claim    token          // of whoever has it in hand; 0 for nobody
	deaths   uint8          // how often a process died with it in hand
}

// token fences a claim. Its upper half is the epoch, the number of the store's
// opening: a claim of an earlier epoch is void, because its process is gone.
type token uint64

const tokenBits = 40

func newToken(epoch, n uint64) token { return token(epoch<<tokenBits | n&(1<<tokenBits-1)) }

func (t token) epoch() uint64 { return uint64(t) >> tokenBits }

var errRecord = fmt.Errorf("record %w", ledger.ErrUnreadable)

const recordVersion = 1

// The parts of a record that most posts do not have, as bits of its mask, in
// the order in which they stand.
const (
	hasPlace = 1 << iota // where it is not the post's number
	hasText              // likewise
	hasRevised
	hasDecision
	hasLinked
	hasClaim
	hasDeaths
	hasCarriers
	hasAttempt
	hasRevision
	hasQueued
	hasNotBefore
	hasDirection
	hasScores
	hasDecided
	hasVerdict
	hasCorrected
	hasCause
	hasStory
	isProvisional
	isReviewed
	isRemoved
	isExpired
)

// encode is read and written for every claim, so that it is no codec's affair:
// the parts that every post has, and a mask for the others.
func (r postRecord) encode() []byte {
	s := &r.state
	b := make([]byte, 8, 112)
	b[0], b[1], b[2], b[3] = recordVersion, byte(s.Status), byte(s.Lane), byte(s.Stage)
	b = append(b, r.id[:]...)
	w := writer{b: b}
	w.uint(hasPlace, distance(uint64(r.place), r.num))
	w.uint(hasText, distance(uint64(r.text), r.num))
	w.uint(hasRevised, uint64(r.revised))
	w.uint(hasDecision, uint64(r.decision))
	w.uint(hasLinked, uint64(r.linked))
	w.uint(hasClaim, uint64(r.claim))
	w.uint(hasDeaths, uint64(r.deaths))
	if len(r.carriers) > 0 {
		w.uint(hasCarriers, uint64(len(r.carriers)))
		for _, c := range r.carriers {
			w.b = appendString(w.b, string(c))
		}
	}
	w.uint(hasAttempt, uint64(s.Attempt))
	w.uint(hasRevision, uint64(s.Revision))
	w.time(hasQueued, s.Queued)
	w.time(hasNotBefore, s.NotBefore)
	w.string(hasDirection, string(s.Direction))
	if s.Relevance != 0 || s.Interest != 0 {
		w.mask |= hasScores
		w.b = binary.BigEndian.AppendUint64(w.b, math.Float64bits(s.Relevance))
		w.b = binary.BigEndian.AppendUint64(w.b, math.Float64bits(s.Interest))
	}
	w.time(hasDecided, s.Decided)
	w.string(hasVerdict, string(s.Verdict))
	w.string(hasCorrected, string(s.Corrected))
	w.string(hasCause, string(s.Cause))
	w.uint(hasStory, uint64(s.Story))
	w.flag(isProvisional, s.Provisional)
	w.flag(isReviewed, s.Reviewed)
	w.flag(isRemoved, s.Removed)
	w.flag(isExpired, s.Expired)
	binary.BigEndian.PutUint32(w.b[4:], w.mask)
	return w.b
}

// distance is n as seen from the post's number, which it is never below.
func distance(n uint64, num ledger.PostNum) uint64 { return n - uint64(num) }

func decodePost(num ledger.PostNum, b []byte) (postRecord, error) {
	r := postRecord{num: num}
	if len(b) < 8+len(r.id) || b[0] != recordVersion {
		return r, errRecord
	}
	s := &r.state
	s.Status, s.Lane, s.Stage = ledger.Status(b[1]), ledger.Lane(b[2]), ledger.Stage(b[3])
	d := reader{mask: binary.BigEndian.Uint32(b[4:]), b: b[8:]}
	copy(r.id[:], d.bytes(len(r.id)))
	r.place = ledger.Seq(d.uint(hasPlace) + uint64(num))
	r.text = ledger.Seq(d.uint(hasText) + uint64(num))
	r.revised = ledger.Seq(d.uint(hasRevised))
	r.decision = ledger.Seq(d.uint(hasDecision))
	r.linked = ledger.PostNum(d.uint(hasLinked))
	r.claim = token(d.uint(hasClaim))
	r.deaths = uint8(d.uint(hasDeaths))
	for range d.uint(hasCarriers) {
		if d.bad {
			break
		}
		r.carriers = append(r.carriers, ledger.Slug(d.string()))
	}
	s.Attempt = int(d.uint(hasAttempt))
	s.Revision = int(d.uint(hasRevision))
	s.Queued = d.time(hasQueued)
	s.NotBefore = d.time(hasNotBefore)
	if d.mask&hasDirection != 0 {
		s.Direction = ledger.Direction(d.string())
	}
	if d.mask&hasScores != 0 {
		s.Relevance, s.Interest = math.Float64frombits(d.uint64()), math.Float64frombits(d.uint64())
	}
	s.Decided = d.time(hasDecided)
	if d.mask&hasVerdict != 0 {
		s.Verdict = ledger.Verdict(d.string())
	}
	if d.mask&hasCorrected != 0 {
		s.Corrected = ledger.Direction(d.string())
	}
	if d.mask&hasCause != 0 {
		s.Cause = ledger.Cause(d.string())
	}
	s.Story = ledger.PostNum(d.uint(hasStory))
	s.Provisional, s.Reviewed = d.mask&isProvisional != 0, d.mask&isReviewed != 0
	s.Removed, s.Expired = d.mask&isRemoved != 0, d.mask&isExpired != 0
	if d.bad || len(d.b) > 0 {
		return r, errRecord
	}
	return r, nil
}

// apply returns the record after e, an event of its post. All writers go
// through it, and so do the check and the restore, which fold a post's events
// anew: but for deaths and a live claim, the record follows from its events.
func (r postRecord) apply(e ledger.Event) (postRecord, error) {
	state, err := r.state.Apply(e)
	if err != nil {
		return r, err
	}
	was := r.where()
	r.state = state
	switch p := e.Payload.(type) {
	case ledger.PostFetched:
		r.num, r.id, r.linked = e.Post, p.ID, p.LinkedTo
		r.place, r.text = e.Seq, e.Seq
	case ledger.PostSeenAgain:
		r.carriers = append(slices.Clip(r.carriers), e.Source)
	case ledger.PostRevised:
		r.applyRevision(e.Seq, p)
	case ledger.PostClassified:
		r.decision = e.Seq
		if !p.Provisional {
			r.claim, r.deaths = 0, 0
		}
	case ledger.PostFailed:
		r.claim = 0
		if p.Cause != ledger.CauseLease || p.Parked {
			r.deaths = 0
		}
	case ledger.PostReturned:
		r.claim, r.deaths = 0, 0
		if p.Reason == ledger.ReturnRepair {
			r.place = e.Seq // reading may have passed its old one
		}
	}
	if now := r.where(); now != was && now.kind != 0 {
		r.place = e.Seq
	}
	return r, nil
}

func (r *postRecord) applyRevision(seq ledger.Seq, p ledger.PostRevised) {
	r.revised = seq
	if p.LinkedTo != 0 {
		r.linked = p.LinkedTo
	}
	if p.TextChanged {
		r.text = seq
	}
	if p.New {
		r.claim = 0 // whoever judges the old text judges in vain
	}
	if p.Requeued {
		r.place = seq
	}
}

// place is where a post stands: under which key, if any, it waits.
type place struct {
	kind  byte // keyReady, keyDelayed, keyParked; 0 for nowhere
	queue queueID
	seq   ledger.Seq
	dueMS int64
	cause ledger.Cause
	post  ledger.PostNum
}

// where follows from the record alone, so that the queue's entries can be
// checked and rebuilt.
func (r postRecord) where() place {
	switch {
	case r.state.Status == ledger.StatusParked:
		return place{kind: keyParked, cause: r.state.Cause, post: r.num}
	case r.state.Status != ledger.StatusPending:
		return place{}
	case !r.state.NotBefore.IsZero():
		return place{kind: keyDelayed, dueMS: dueMS(r.state.NotBefore), seq: r.place, post: r.num}
	default:
		return place{kind: keyReady, queue: queueID{r.state.Stage, r.state.Lane}, seq: r.place, post: r.num}
	}
}

// dueMS rounds up: nothing is due before its time.
func dueMS(t time.Time) int64 { return t.Add(time.Millisecond - 1).UnixMilli() }

func (p place) key() []byte {
	switch p.kind {
	case keyReady:
		return readyKey(p.queue, p.seq)
	case keyDelayed:
		return delayedKey(p.dueMS, p.seq)
	case keyParked:
		return parkedKey(p.cause, p.post)
	default:
		return nil
	}
}

// itemRecord is what i holds: whose item it is and what it gave last.
type itemRecord struct {
	post        ledger.PostNum
	fingerprint ledger.Hash
	text        sum16 // of the text's hash
	title       [8]byte
}

const itemRecordSize = 1 + 8 + 32 + 16 + 8

func (r itemRecord) encode() []byte {
	b := make([]byte, 0, itemRecordSize)
	b = append(b, recordVersion)
	b = binary.BigEndian.AppendUint64(b, uint64(r.post))
	b = append(b, r.fingerprint[:]...)
	b = append(b, r.text[:]...)
	return append(b, r.title[:]...)
}

func decodeItem(b []byte) (itemRecord, error) {
	var r itemRecord
	if len(b) != itemRecordSize || b[0] != recordVersion {
		return r, errRecord
	}
	r.post = ledger.PostNum(binary.BigEndian.Uint64(b[1:]))
	copy(r.fingerprint[:], b[9:])
	copy(r.text[:], b[41:])
	copy(r.title[:], b[57:])
	return r, nil
}

// maxURLPosts bounds the list of posts of one URL; a page that every item
// links to is no relation.
const maxURLPosts = 16

func encodePosts(posts []ledger.PostNum) []byte {
	b := make([]byte, 0, 8*len(posts))
	for _, p := range posts {
		b = binary.BigEndian.AppendUint64(b, uint64(p))
	}
	return b
}

func decodePosts(b []byte) []ledger.PostNum {
	posts := make([]ledger.PostNum, 0, len(b)/8)
	for ; len(b) >= 8; b = b[8:] {
		posts = append(posts, ledger.PostNum(binary.BigEndian.Uint64(b)))
	}
	return posts
}

// withPost returns posts with n, or nil where it is there or the list is full.
func withPost(posts []ledger.PostNum, n ledger.PostNum) []ledger.PostNum {
	if slices.Contains(posts, n) || len(posts) >= maxURLPosts {
		return nil
	}
	return append(posts, n)
}
