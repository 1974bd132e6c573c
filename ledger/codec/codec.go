// Package codec is the stored form of events and folded states, the same for
// every engine. FORMAT.md of package badgerlog describes its bytes.
//
// An event is a fixed header and a payload in protobuf's wire format. Each
// struct has one function here that lists its fields with their numbers, and
// that list serves both directions. A field whose value is zero is not written; numbers are
// never reused; a number that this version does not know is skipped.
//
// Texts of posts are no part of an event's bytes: engines hold them apart.
// Text and SetText move them between a payload and its engine.
package codec

import (
	"encoding/binary"
	"fmt"
	"time"

	"vesti.nixg.ru/ledger"
)

// Version is the version of every payload that this package writes. A payload
// type gets a higher one of its own only when a change is more than a new
// field; see upcasters.
const Version = 1

// headerSize is what stands before an event's actor: type, version, time, post.
const headerSize = 1 + 1 + 8 + 8

// AppendEvent appends the stored form of e to dst: all but its Seq and text.
func AppendEvent(dst []byte, e ledger.Event) []byte {
	dst = AppendHeader(dst, e)
	return AppendPayload(dst, e.Payload)
}

// AppendHeader appends what stands before the payload, so that an engine can
// encode payloads before it knows an event's time and post.
func AppendHeader(dst []byte, e ledger.Event) []byte {
	version := uint8(Version)
	typ := e.Type
	if u, ok := e.Payload.(ledger.Unknown); ok {
		typ, version = u.Stored, e.Version
	}
	dst = append(dst, byte(typ), version)
	dst = binary.BigEndian.AppendUint64(dst, uint64(micros(e.At)))
	dst = binary.BigEndian.AppendUint64(dst, uint64(e.Post))
	dst = appendBytes(dst, string(e.Actor))
	return appendBytes(dst, string(e.Source))
}

// DecodeEvent reads an event. It keeps no reference to b. It never fails: what
// cannot be read has the payload Unknown, and as much of the envelope as could.
func DecodeEvent(seq ledger.Seq, b []byte) ledger.Event {
	e := ledger.Event{Seq: seq}
	if len(b) < headerSize {
		e.Payload = ledger.Unknown{Raw: append([]byte(nil), b...), Err: "shorter than a header"}
		return e
	}
	e.Type, e.Version = ledger.Type(b[0]), b[1]
	e.At = fromMicros(int64(binary.BigEndian.Uint64(b[2:])))
	e.Post = ledger.PostNum(binary.BigEndian.Uint64(b[10:]))
	rest := b[headerSize:]
	actor, rest, ok1 := cutBytes(rest)
	source, rest, ok2 := cutBytes(rest)
	if !ok1 || !ok2 {
		e.Payload = ledger.Unknown{Stored: e.Type, Raw: append([]byte(nil), b...), Err: "broken envelope"}
		return e
	}
	e.Actor, e.Source = ledger.Actor(actor), ledger.Slug(source)
	p, err := DecodePayload(e.Type, e.Version, rest)
	if err != nil {
		e.Payload = ledger.Unknown{Stored: e.Type, Raw: append([]byte(nil), rest...), Err: err.Error()}
		return e
	}
	e.Payload = withSource(p, e.Source)
	return e
}

// withSource fills in the source of an item, which is stored once, as its
// event's.
func withSource(p ledger.Payload, s ledger.Slug) ledger.Payload {
	if f, ok := p.(ledger.PostFetched); ok {
		f.Item.Source = s
		return f
	}
	return p
}

// AppendPayload appends the payload's fields. Of an Unknown it appends the
// bytes as they were stored.
func AppendPayload(dst []byte, p ledger.Payload) []byte {
	if u, ok := p.(ledger.Unknown); ok {
		return append(dst, u.Raw...)
	}
	c := coder{out: dst}
	c.payload(p)
	return c.out
}

// AppendLink appends the LinkedTo of a PostFetched to its encoded payload: the
// one field that is known only inside the transaction.
func AppendLink(dst []byte, post ledger.PostNum) []byte {
	c := coder{out: dst}
	uintField(&c, fetchedLinkedTo, &post)
	return c.out
}

// DecodePayload reads the payload of an event of type t. It returns an error
// for a type or version it does not know and for bytes that do not decode.
func DecodePayload(t ledger.Type, version uint8, b []byte) (ledger.Payload, error) {
	if t.String() == "unknown" {
		return nil, fmt.Errorf("type %d is of another version", t)
	}
	c := pool.get(string(b))
	defer pool.put(c)
	if err := c.parse(b); err != nil {
		return nil, err
	}
	if err := upcast(upcasters(), t, version, c); err != nil {
		return nil, err
	}
	p := c.decodePayload(t)
	return p, c.err
}

// upcaster turns the fields of a payload of one version into those of the next.
type upcaster func(*coder)

// step names a payload's version before an upcaster.
type step struct {
	t    ledger.Type
	from uint8
}

// upcasters lists the steps from older versions to the present one. A payload
// runs through them one after the other.
func upcasters() map[step]upcaster { return nil }

func upcast(steps map[step]upcaster, t ledger.Type, version uint8, c *coder) error {
	current := uint8(Version)
	for s := range steps {
		if s.t == t && s.from >= current {
			current = s.from + 1
		}
	}
	if version == 0 || version > current {
		return fmt.Errorf("%s of version %d; this vesti knows up to %d", t, version, current)
	}
	for v := version; v < current; v++ {
		f, ok := steps[step{t, v}]
		if !ok {
			return fmt.Errorf("%s of version %d: no way to the present one", t, version)
		}
		f(c)
	}
	return nil
}

// Text returns the text that p carries, which its bytes leave out. ok reports
// whether p is of a type that has a text of its own.
func Text(p ledger.Payload) (text string, ok bool) {
	switch p := p.(type) {
	case ledger.PostFetched:
		return p.Item.Text, true
	case ledger.PostRevised:
		return p.Text, p.TextChanged
	default:
		return "", false
	}
}

// SetText returns p with its text.
func SetText(p ledger.Payload, text string) ledger.Payload {
	switch p := p.(type) {
	case ledger.PostFetched:
		p.Item.Text = text
		return p
	case ledger.PostRevised:
		p.Text = text
		return p
	default:
		return p
	}
}

// micros is t as microseconds since 1970; the zero time is the lowest number,
// which no clock shows.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return zeroTime
	}
	return t.UnixMicro()
}

const zeroTime = -1 << 63

func fromMicros(us int64) time.Time {
	if us == zeroTime {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

func appendBytes(dst []byte, s string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

func cutBytes(b []byte) (string, []byte, bool) {
	n, w := binary.Uvarint(b)
	if w <= 0 || n > uint64(len(b)-w) {
		return "", nil, false
	}
	return string(b[w : w+int(n)]), b[w+int(n):], true
}
