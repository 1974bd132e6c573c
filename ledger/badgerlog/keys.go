package badgerlog

import (
	"crypto/sha256"
	"encoding/binary"

	"vesti.nixg.ru/ledger"
)

// The key table. Every key begins with one of these bytes; numbers in keys are
// big-endian, so that byte order is their order. FORMAT.md says what the values
// hold.
//
// Only e, b, i, s and c are history or cannot be had again. The others are
// derived from them, and Verify can rebuild each.
const (
	keyEvent   = 'e' // e <seq8>                        an event, without its text
	keyBody    = 'b' // b <seq8>                        the text of the event
	keyHash    = 'h' // h <sha32>                       the post that has this text
	keyItem    = 'i' // i <sum16 of item key>           the item's post, fingerprint, text and title
	keyURL     = 'u' // u <sum16 of canonical URL>      the posts that have it
	keyVariant = 'v' // v <post8><sha32>                a text of this post whose h is another post's
	keyPost    = 'p' // p <post8>                       the post's folded state and its claim
	keyReady   = 'r' // r <stage1><lane1><seq8>         a post that can be claimed
	keyDelayed = 'd' // d <due ms8><seq8>               a post that waits for its delay
	keyParked  = 'k' // k <cause>\0<post8>              a parked post
	keyPostIdx = 'x' // x <post8><seq8>                 events of a post, but its PostFetched
	keySrcIdx  = 'y' // y <slug>\0<seq8>                events of a source
	keySource  = 'o' // o <slug>                        the source's folded state
	keyStore   = 's' // s <namespace>\0<key>            what is beside the log; see Store
	keyControl = 'c' // c <name>                        the engine's own; see the names below
)

// The names below keyControl.
const (
	controlFormat  = "cformat"  // the format's version
	controlStore   = "cstore"   // the store's own random id
	controlEpoch   = "cepoch"   // how often the store was opened
	controlCursor  = "ccursor"  // per queue, no ready entry is below; a hint
	controlUpgrade = "cupgrade" // how far an upgrade has come
	controlPad     = "cpad"     // padding; see flushTables
)

// sum16 is what item keys and canonical URLs are looked up by.
type sum16 [16]byte

func sumOf(s string) sum16 {
	h := sha256.Sum256([]byte(s))
	return sum16(h[:16])
}

func key8(prefix byte, n uint64) []byte {
	k := make([]byte, 9)
	k[0] = prefix
	binary.BigEndian.PutUint64(k[1:], n)
	return k
}

func eventKey(s ledger.Seq) []byte    { return key8(keyEvent, uint64(s)) }
func bodyKey(s ledger.Seq) []byte     { return key8(keyBody, uint64(s)) }
func postKey(n ledger.PostNum) []byte { return key8(keyPost, uint64(n)) }

// seqOf reads the number that ends a key.
func seqOf(key []byte) uint64 { return binary.BigEndian.Uint64(key[len(key)-8:]) }

func hashKey(h ledger.Hash) []byte { return append([]byte{keyHash}, h[:]...) }
func itemKey(s sum16) []byte       { return append([]byte{keyItem}, s[:]...) }
func urlKey(s sum16) []byte        { return append([]byte{keyURL}, s[:]...) }

func variantKey(n ledger.PostNum, h ledger.Hash) []byte {
	return append(key8(keyVariant, uint64(n)), h[:]...)
}

func readyKey(q queueID, s ledger.Seq) []byte {
	k := make([]byte, 0, 11)
	k = append(k, keyReady, byte(q.stage), byte(q.lane))
	return binary.BigEndian.AppendUint64(k, uint64(s))
}

func delayedKey(dueMS int64, s ledger.Seq) []byte {
	k := make([]byte, 0, 17)
	k = append(k, keyDelayed)
	k = binary.BigEndian.AppendUint64(k, uint64(max(dueMS, 0)))
	return binary.BigEndian.AppendUint64(k, uint64(s))
}

// dueOf reads the time, in milliseconds, of a delayed key.
func dueOf(key []byte) int64 {
	return int64(binary.BigEndian.Uint64(key[1:]))
}

func parkedPrefix(c ledger.Cause) []byte { return append([]byte{keyParked}, string(c)+"\x00"...) }

func parkedKey(c ledger.Cause, n ledger.PostNum) []byte {
	return binary.BigEndian.AppendUint64(parkedPrefix(c), uint64(n))
}

func postIdxPrefix(n ledger.PostNum) []byte { return key8(keyPostIdx, uint64(n)) }

func postIdxKey(n ledger.PostNum, s ledger.Seq) []byte {
	return binary.BigEndian.AppendUint64(postIdxPrefix(n), uint64(s))
}

func srcIdxPrefix(s ledger.Slug) []byte { return append([]byte{keySrcIdx}, string(s)+"\x00"...) }

func srcIdxKey(slug ledger.Slug, s ledger.Seq) []byte {
	return binary.BigEndian.AppendUint64(srcIdxPrefix(slug), uint64(s))
}

func sourceKey(s ledger.Slug) []byte { return append([]byte{keySource}, string(s)...) }

func storePrefix(namespace string) []byte { return append([]byte{keyStore}, namespace+"\x00"...) }

// queueID names one of the queues: each stage has one for each lane.
type queueID struct {
	stage ledger.Stage
	lane  ledger.Lane
}

// queues lists all of them in the order of their keys.
func queues() []queueID {
	all := make([]queueID, 0, ledger.StageCount*ledger.LaneCount)
	for s := range ledger.Stage(ledger.StageCount) {
		for l := range ledger.Lane(ledger.LaneCount) {
			all = append(all, queueID{s, l})
		}
	}
	return all
}
