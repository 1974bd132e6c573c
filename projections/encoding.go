package projections

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"vesti.nixg.ru/ledger"
)

// Encoder appends values in a compact form that only the Decoder of the same
// schema version reads: numbers as varints, strings behind their length. The
// zero Encoder is empty.
type Encoder struct{ b []byte }

// Bytes returns what was written.
func (e *Encoder) Bytes() []byte { return e.b }

// Uint appends a number.
func (e *Encoder) Uint(v uint64) { e.b = binary.AppendUvarint(e.b, v) }

// Int appends a number that may be negative.
func (e *Encoder) Int(v int64) { e.b = binary.AppendVarint(e.b, v) }

// Float appends a number with all its bits.
func (e *Encoder) Float(v float64) { e.b = binary.BigEndian.AppendUint64(e.b, math.Float64bits(v)) }

// Bool appends a truth value.
func (e *Encoder) Bool(v bool) {
	var n byte
	if v {
		n = 1
	}
	e.b = append(e.b, n)
}

// String appends a string.
func (e *Encoder) String(s string) {
	e.Uint(uint64(len(s)))
	e.b = append(e.b, s...)
}

// Time appends a time to the microsecond, the zero time as such.
func (e *Encoder) Time(t time.Time) {
	if t.IsZero() {
		e.Int(math.MinInt64)
		return
	}
	e.Int(t.UnixMicro())
}

// State appends a post's state.
func (e *Encoder) State(s ledger.PostState) {
	for _, v := range []uint64{
		uint64(s.Status), uint64(s.Lane), uint64(s.Stage), uint64(s.Attempt), uint64(s.Revision), uint64(s.Story),
	} {
		e.Uint(v)
	}
	for _, t := range []time.Time{s.Queued, s.NotBefore, s.Decided} {
		e.Time(t)
	}
	for _, v := range []string{string(s.Direction), string(s.Verdict), string(s.Corrected), string(s.Cause)} {
		e.String(v)
	}
	e.Float(s.Relevance)
	e.Float(s.Interest)
	for _, v := range []bool{s.Provisional, s.Reviewed, s.Removed, s.Expired} {
		e.Bool(v)
	}
}

// Decoder reads what an Encoder wrote, value by value in the same order. The
// first value that does not fit makes every later one zero; Err tells.
type Decoder struct {
	b   []byte
	err error
}

// NewDecoder reads b, which it keeps until the last call.
func NewDecoder(b []byte) *Decoder { return &Decoder{b: b} }

// Err returns what went wrong, an error matching ErrDamaged.
func (d *Decoder) Err() error { return d.err }

// Uint reads a number.
func (d *Decoder) Uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if !d.take(n) {
		return 0
	}
	return v
}

// Int reads a number that may be negative.
func (d *Decoder) Int() int64 {
	v, n := binary.Varint(d.b)
	if !d.take(n) {
		return 0
	}
	return v
}

// Float reads a number with all its bits.
func (d *Decoder) Float() float64 {
	b := d.bytes(8)
	if b == nil {
		return 0
	}
	return math.Float64frombits(binary.BigEndian.Uint64(b))
}

// Bool reads a truth value.
func (d *Decoder) Bool() bool {
	b := d.bytes(1)
	return b != nil && b[0] != 0
}

// String reads a string.
func (d *Decoder) String() string { return string(d.bytes(d.Uint())) }

// Time reads a time, in UTC.
func (d *Decoder) Time() time.Time {
	v := d.Int()
	if d.err != nil || v == math.MinInt64 {
		return time.Time{}
	}
	return time.UnixMicro(v).UTC()
}

// State reads a post's state.
func (d *Decoder) State() ledger.PostState {
	var s ledger.PostState
	s.Status, s.Lane, s.Stage = ledger.Status(d.Uint()), ledger.Lane(d.Uint()), ledger.Stage(d.Uint())
	s.Attempt, s.Revision, s.Story = int(d.Uint()), int(d.Uint()), ledger.PostNum(d.Uint())
	s.Queued, s.NotBefore, s.Decided = d.Time(), d.Time(), d.Time()
	s.Direction, s.Verdict = ledger.Direction(d.String()), ledger.Verdict(d.String())
	s.Corrected, s.Cause = ledger.Direction(d.String()), ledger.Cause(d.String())
	s.Relevance, s.Interest = d.Float(), d.Float()
	s.Provisional, s.Reviewed, s.Removed, s.Expired = d.Bool(), d.Bool(), d.Bool(), d.Bool()
	return s
}

// bytes returns the next n bytes of the input, nil where there are fewer.
func (d *Decoder) bytes(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.take(-1)
		return nil
	}
	b := d.b[:n]
	d.b = d.b[n:]
	return b
}

func (d *Decoder) take(n int) bool {
	if n <= 0 {
		if d.err == nil {
			d.err = fmt.Errorf("%w: a record is cut %d bytes before its end", ErrDamaged, len(d.b))
		}
		d.b = nil
		return false
	}
	d.b = d.b[n:]
	return true
}
