package badgerlog

import (
	"encoding/binary"
	"time"
)

// writer appends the parts that are there and notes them in the mask.
type writer struct {
	mask uint32
	b    []byte
}

func (w *writer) flag(bit uint32, v bool) {
	if v {
		w.mask |= bit
	}
}

func (w *writer) uint(bit uint32, v uint64) {
	if v != 0 {
		w.mask |= bit
		w.b = binary.AppendUvarint(w.b, v)
	}
}

func (w *writer) string(bit uint32, v string) {
	if v != "" {
		w.mask |= bit
		w.b = appendString(w.b, v)
	}
}

func (w *writer) time(bit uint32, v time.Time) {
	if !v.IsZero() {
		w.mask |= bit
		w.b = binary.BigEndian.AppendUint64(w.b, uint64(v.UnixMicro()))
	}
}

func appendString(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// reader takes a value apart; bad says that it ended too early.
type reader struct {
	mask uint32
	b    []byte
	bad  bool
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

func (d *reader) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *reader) uint(bit uint32) uint64 {
	if d.mask&bit == 0 {
		return 0
	}
	return d.uvarint()
}

func (d *reader) uint64() uint64 {
	if b := d.bytes(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (d *reader) time(bit uint32) time.Time {
	if d.mask&bit == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(d.uint64())).UTC()
}

func (d *reader) string() string {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return ""
	}
	return string(d.bytes(int(n)))
}
