package codec

import (
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"vesti.nixg.ru/ledger"
)

// maxField is the highest field number in use, with room to grow.
const maxField = 48

// coder writes the fields of a struct to out, or reads them from the parsed
// ones, depending on decoding. The functions below are called with each field
// in turn, once per struct and direction.
type coder struct {
	decoding bool
	out      []byte
	src      string // what is decoded; the strings that are read are parts of it
	fields   *[maxField + 1]field
	set      []uint8 // the fields that parse has met
	err      error
}

// field is a parsed field. Of a repeated one, more holds the further values.
type field struct {
	set        bool
	num        uint64 // varint and fixed64
	start, end int    // of a length-delimited value in src
	more       []span
}

type span struct{ start, end int }

// decoders are used again: their tables of fields are large.
type decoders struct{ pool sync.Pool }

//nolint:gochecknoglobals // a cache of memory, of no effect on what is decoded
var pool = decoders{sync.Pool{New: func() any { return &coder{decoding: true, fields: new([maxField + 1]field)} }}}

func (d *decoders) get(src string) *coder {
	c := d.pool.Get().(*coder) //nolint:forcetypeassert // the pool holds nothing else
	c.src = src
	return c
}

func (d *decoders) put(c *coder) {
	c.reset()
	c.src, c.err = "", nil
	d.pool.Put(c)
}

func (c *coder) reset() {
	for _, n := range c.set {
		c.fields[n] = field{}
	}
	c.set = c.set[:0]
}

var errMalformed = errors.New("malformed payload")

// parse reads all fields of a message; those with unknown numbers are skipped.
func (c *coder) parse(b []byte) error {
	at := 0
	for at < len(b) {
		n, typ, w := protowire.ConsumeTag(b[at:])
		if w < 0 {
			return errMalformed
		}
		at += w
		var f field
		switch typ {
		case protowire.VarintType:
			f.num, w = protowire.ConsumeVarint(b[at:])
		case protowire.Fixed64Type:
			f.num, w = protowire.ConsumeFixed64(b[at:])
		case protowire.BytesType:
			var v []byte
			v, w = protowire.ConsumeBytes(b[at:])
			f.start, f.end = at+w-len(v), at+w
		default:
			w = protowire.ConsumeFieldValue(n, typ, b[at:])
		}
		if w < 0 {
			return errMalformed
		}
		at += w
		if n > maxField {
			continue
		}
		c.add(uint8(n), typ, f)
	}
	return nil
}

func (c *coder) add(n uint8, typ protowire.Type, f field) {
	old := &c.fields[n]
	if old.set && typ == protowire.BytesType {
		old.more = append(old.more, span{f.start, f.end})
		return
	}
	if !old.set {
		c.set = append(c.set, n)
	}
	f.set = true
	*old = f
}

func (c *coder) data(f *field) string { return c.src[f.start:f.end] }

func (c *coder) tag(n protowire.Number, typ protowire.Type) {
	c.out = protowire.AppendTag(c.out, n, typ)
}

type number = protowire.Number

// stringField codes text of any kind. It need not be valid UTF-8.
func stringField[T ~string](c *coder, n number, v *T) {
	if c.decoding {
		*v = T(c.data(&c.fields[n]))
		return
	}
	if *v != "" {
		c.tag(n, protowire.BytesType)
		c.out = protowire.AppendString(c.out, string(*v))
	}
}

// uintField codes a number that is never negative.
func uintField[T ~uint8 | ~uint64](c *coder, n number, v *T) {
	if c.decoding {
		*v = T(c.fields[n].num)
		return
	}
	if *v != 0 {
		c.tag(n, protowire.VarintType)
		c.out = protowire.AppendVarint(c.out, uint64(*v))
	}
}

// intField codes a number of either sign.
func intField[T ~int | ~int64](c *coder, n number, v *T) {
	if c.decoding {
		*v = T(protowire.DecodeZigZag(c.fields[n].num))
		return
	}
	if *v != 0 {
		c.tag(n, protowire.VarintType)
		c.out = protowire.AppendVarint(c.out, protowire.EncodeZigZag(int64(*v)))
	}
}

// countField codes a number whose absence is no zero.
func countField(c *coder, n number, v **int64) {
	if c.decoding {
		if f := c.fields[n]; f.set {
			i := protowire.DecodeZigZag(f.num)
			*v = &i
		}
		return
	}
	if *v != nil {
		c.tag(n, protowire.VarintType)
		c.out = protowire.AppendVarint(c.out, protowire.EncodeZigZag(**v))
	}
}

func boolField(c *coder, n number, v *bool) {
	if c.decoding {
		*v = c.fields[n].num != 0
		return
	}
	if *v {
		c.tag(n, protowire.VarintType)
		c.out = protowire.AppendVarint(c.out, 1)
	}
}

func floatField(c *coder, n number, v *float64) {
	if c.decoding {
		*v = math.Float64frombits(c.fields[n].num)
		return
	}
	if *v != 0 {
		c.tag(n, protowire.Fixed64Type)
		c.out = protowire.AppendFixed64(c.out, math.Float64bits(*v))
	}
}

// timeField codes a time in microseconds; the zero time is left out.
func timeField(c *coder, n number, v *time.Time) {
	if c.decoding {
		if f := c.fields[n]; f.set {
			*v = time.UnixMicro(protowire.DecodeZigZag(f.num)).UTC()
		}
		return
	}
	if !v.IsZero() {
		c.tag(n, protowire.VarintType)
		c.out = protowire.AppendVarint(c.out, protowire.EncodeZigZag(v.UnixMicro()))
	}
}

// hashField codes 32 bytes.
func hashField[T ~[32]byte](c *coder, n number, v *T) {
	if c.decoding {
		f := &c.fields[n]
		if f.set && f.end-f.start != len(*v) {
			c.err = errMalformed
		}
		copy((*v)[:], c.data(f))
		return
	}
	if *v != (T{}) {
		c.tag(n, protowire.BytesType)
		c.out = protowire.AppendBytes(c.out, (*v)[:])
	}
}

func stringsField(c *coder, n number, v *[]string) {
	if c.decoding {
		f := &c.fields[n]
		if !f.set {
			return
		}
		*v = append(*v, c.data(f))
		for _, d := range f.more {
			*v = append(*v, c.src[d.start:d.end])
		}
		return
	}
	for _, s := range *v {
		c.tag(n, protowire.BytesType)
		c.out = protowire.AppendString(c.out, s)
	}
}

// messageField codes a struct inside another; list names its fields. A zero
// struct is left out.
func messageField[T comparable](c *coder, n number, v *T, list func(*coder, *T)) {
	if c.decoding {
		if f := &c.fields[n]; f.set {
			decodeInto(c, c.data(f), v, list)
		}
		return
	}
	var zero T
	if *v != zero {
		encodeInto(c, n, v, list)
	}
}

func messagesField[T any](c *coder, n number, v *[]T, list func(*coder, *T)) {
	if c.decoding {
		f := &c.fields[n]
		if !f.set {
			return
		}
		*v = make([]T, 1+len(f.more))
		decodeInto(c, c.data(f), &(*v)[0], list)
		for i, d := range f.more {
			decodeInto(c, c.src[d.start:d.end], &(*v)[i+1], list)
		}
		return
	}
	for i := range *v {
		encodeInto(c, n, &(*v)[i], list)
	}
}

// encodeInto writes a struct behind its length, for which it leaves the one
// byte that is mostly enough.
func encodeInto[T any](c *coder, n number, v *T, list func(*coder, *T)) {
	c.tag(n, protowire.BytesType)
	c.out = append(c.out, 0)
	start := len(c.out)
	list(c, v)
	size := len(c.out) - start
	if size < 0x80 {
		c.out[start-1] = byte(size)
		return
	}
	length := protowire.AppendVarint(nil, uint64(size))
	c.out = slices.Insert(c.out, start, length[1:]...)
	c.out[start-1] = length[0]
}

func decodeInto[T any](c *coder, src string, v *T, list func(*coder, *T)) {
	inner := pool.get(src)
	defer pool.put(inner)
	if err := inner.parse([]byte(src)); err != nil {
		c.err = err
		return
	}
	list(inner, v)
	if inner.err != nil {
		c.err = inner.err
	}
}

// AppendSourceState appends the stored form of a source's folded state.
func AppendSourceState(dst []byte, s ledger.SourceState) []byte {
	c := coder{out: dst}
	sourceState(&c, &s)
	return c.out
}

// DecodeSourceState reads what AppendSourceState wrote.
func DecodeSourceState(b []byte) (ledger.SourceState, error) {
	var s ledger.SourceState
	c := pool.get(string(b))
	defer pool.put(c)
	if err := c.parse(b); err != nil {
		return s, err
	}
	sourceState(c, &s)
	return s, c.err
}
