package codec

import (
	"errors"
	"math"
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
	fields   [maxField + 1]field
	err      error
}

// field is a parsed field. A repeated one has its further values in more.
type field struct {
	set  bool
	num  uint64 // varint and fixed64
	data []byte // length-delimited
	more [][]byte
}

var errMalformed = errors.New("malformed payload")

// parse reads all fields of a message; those with unknown numbers are skipped.
func (c *coder) parse(b []byte) error {
	for len(b) > 0 {
		n, typ, w := protowire.ConsumeTag(b)
		if w < 0 {
			return errMalformed
		}
		b = b[w:]
		var f field
		switch typ {
		case protowire.VarintType:
			f.num, w = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			f.num, w = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			f.data, w = protowire.ConsumeBytes(b)
		default:
			w = protowire.ConsumeFieldValue(n, typ, b)
		}
		if w < 0 {
			return errMalformed
		}
		b = b[w:]
		if n > maxField {
			continue
		}
		old := &c.fields[n]
		if old.set && typ == protowire.BytesType {
			old.more = append(old.more, f.data)
			continue
		}
		f.set = true
		*old = f
	}
	return nil
}

func (c *coder) tag(n protowire.Number, typ protowire.Type) {
	c.out = protowire.AppendTag(c.out, n, typ)
}

type number = protowire.Number

// stringField codes text of any kind. It need not be valid UTF-8.
func stringField[T ~string](c *coder, n number, v *T) {
	if c.decoding {
		*v = T(c.fields[n].data)
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
		f := c.fields[n]
		if f.set && len(f.data) != len(*v) {
			c.err = errMalformed
		}
		copy((*v)[:], f.data)
		return
	}
	if *v != (T{}) {
		c.tag(n, protowire.BytesType)
		c.out = protowire.AppendBytes(c.out, (*v)[:])
	}
}

func stringsField(c *coder, n number, v *[]string) {
	if c.decoding {
		f := c.fields[n]
		if !f.set {
			return
		}
		*v = append(*v, string(f.data))
		for _, d := range f.more {
			*v = append(*v, string(d))
		}
		return
	}
	for _, s := range *v {
		c.tag(n, protowire.BytesType)
		c.out = protowire.AppendString(c.out, s)
	}
}

// messageField codes a struct inside another; list names its fields.
func messageField[T any](c *coder, n number, v *T, list func(*coder, *T)) {
	if c.decoding {
		if f := c.fields[n]; f.set {
			decodeInto(c, f.data, v, list)
		}
		return
	}
	inner := coder{}
	list(&inner, v)
	if len(inner.out) > 0 {
		c.tag(n, protowire.BytesType)
		c.out = protowire.AppendBytes(c.out, inner.out)
	}
}

func messagesField[T any](c *coder, n number, v *[]T, list func(*coder, *T)) {
	if c.decoding {
		f := c.fields[n]
		if !f.set {
			return
		}
		for _, d := range append([][]byte{f.data}, f.more...) {
			var one T
			decodeInto(c, d, &one, list)
			*v = append(*v, one)
		}
		return
	}
	for i := range *v {
		inner := coder{}
		list(&inner, &(*v)[i])
		c.tag(n, protowire.BytesType)
		c.out = protowire.AppendBytes(c.out, inner.out)
	}
}

func decodeInto[T any](c *coder, b []byte, v *T, list func(*coder, *T)) {
	inner := coder{decoding: true}
	if err := inner.parse(b); err != nil {
		c.err = err
		return
	}
	list(&inner, v)
	if inner.err != nil {
		c.err = inner.err
	}
}

// AppendPostState appends the stored form of a post's folded state.
func AppendPostState(dst []byte, s ledger.PostState) []byte {
	c := coder{out: dst}
	postState(&c, &s)
	return c.out
}

// DecodePostState reads what AppendPostState wrote.
func DecodePostState(b []byte) (ledger.PostState, error) {
	return decodeState(b, postState)
}

// AppendSourceState appends the stored form of a source's folded state.
func AppendSourceState(dst []byte, s ledger.SourceState) []byte {
	c := coder{out: dst}
	sourceState(&c, &s)
	return c.out
}

// DecodeSourceState reads what AppendSourceState wrote.
func DecodeSourceState(b []byte) (ledger.SourceState, error) {
	return decodeState(b, sourceState)
}

func decodeState[T any](b []byte, list func(*coder, *T)) (T, error) {
	var s T
	c := coder{decoding: true}
	if err := c.parse(b); err != nil {
		return s, err
	}
	list(&c, &s)
	return s, c.err
}
