package badgerlog

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/codec"
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

var errRecord = errors.New("record does not decode")

const recordVersion = 1

func (r postRecord) encode() []byte {
	b := make([]byte, 0, 128)
	b = append(b, recordVersion)
	b = append(b, r.id[:]...)
	n := uint64(r.num)
	// These are mostly the post's own number: their distance to it is one byte.
	b = binary.AppendUvarint(b, uint64(r.place)-n)
	b = binary.AppendUvarint(b, uint64(r.text)-n)
	b = binary.AppendUvarint(b, uint64(r.revised))
	b = binary.AppendUvarint(b, uint64(r.decision))
	b = binary.AppendUvarint(b, uint64(r.linked))
	b = binary.AppendUvarint(b, uint64(r.claim))
	b = append(b, r.deaths)
	b = binary.AppendUvarint(b, uint64(len(r.carriers)))
	for _, c := range r.carriers {
		b = binary.AppendUvarint(b, uint64(len(c)))
		b = append(b, c...)
	}
	return codec.AppendPostState(b, r.state)
}

func decodePost(num ledger.PostNum, b []byte) (postRecord, error) {
	r := postRecord{num: num}
	d := reader{b: b}
	if d.byte() != recordVersion {
		return r, errRecord
	}
	copy(r.id[:], d.bytes(len(r.id)))
	n := uint64(num)
	r.place = ledger.Seq(d.uvarint() + n)
	r.text = ledger.Seq(d.uvarint() + n)
	r.revised = ledger.Seq(d.uvarint())
	r.decision = ledger.Seq(d.uvarint())
	r.linked = ledger.PostNum(d.uvarint())
	r.claim = token(d.uvarint())
	r.deaths = d.byte()
	for range d.uvarint() {
		if d.bad {
			break
		}
		r.carriers = append(r.carriers, ledger.Slug(d.bytes(int(d.uvarint())))) //nolint:gosec // bytes checks it
	}
	if d.bad {
		return r, errRecord
	}
	var err error
	r.state, err = codec.DecodePostState(d.b)
	return r, err
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
		r.carriers = append(r.carriers[:len(r.carriers):len(r.carriers)], e.Source)
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

// reader takes a value apart; bad says that it ended too early.
type reader struct {
	b   []byte
	bad bool
}

func (d *reader) bytes(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.bad, d.b = true, nil
		return nil
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

func (d *reader) byte() byte {
	if v := d.bytes(1); v != nil {
		return v[0]
	}
	return 0
}

func (d *reader) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}
