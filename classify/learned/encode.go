package learned

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"vesti.nixg.ru/ledger"
)

// formatVersion numbers the encoding, and with it what features are.
const formatVersion = 1

// maxModel bounds a decoded model, in bytes.
const maxModel = 64 << 20

// quantise brings weights and scales to what the encoding can hold, so that a
// model answers the same before it is stored and after.
func (m *Model) quantise() {
	for _, l := range m.linears() {
		quantise(l.weights)
		quantise(l.scale)
	}
}

func (m *Model) linears() []*linear {
	all := []*linear{&m.directions}
	if m.interest != nil {
		all = append(all, m.interest)
	}
	return all
}

// quantise rounds values to 255 steps between their extremes.
func quantise(values []float32) {
	step := step(values)
	if step == 0 {
		return
	}
	for i, v := range values {
		values[i] = float32(math.Round(float64(v/step))) * step
	}
}

func step(values []float32) float32 {
	top := float32(0)
	for _, v := range values {
		top = max(top, v, -v)
	}
	return top / math.MaxInt8
}

// MarshalBinary implements encoding.BinaryMarshaler: the info as JSON with its
// length before it, then for each linear model the number of classes, the
// biases, and weights and scales as steps of one byte; all deflated.
func (m *Model) MarshalBinary() ([]byte, error) {
	info, err := json.Marshal(m.Info)
	if err != nil {
		return nil, fmt.Errorf("encode model: %w", err)
	}
	raw := []byte{formatVersion}
	raw = binary.AppendUvarint(raw, uint64(len(info)))
	raw = append(raw, info...)
	for _, l := range m.linears() {
		raw = append(raw, byte(l.classes))
		for _, b := range l.bias {
			raw = appendFloat(raw, b)
		}
		raw = appendSteps(raw, l.weights)
		raw = appendSteps(raw, l.scale)
	}
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.DefaultCompression)
	if err != nil {
		return nil, fmt.Errorf("encode model: %w", err)
	}
	if _, err := w.Write(raw); err != nil {
		return nil, fmt.Errorf("encode model: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("encode model: %w", err)
	}
	return packed.Bytes(), nil
}

func appendFloat(b []byte, f float32) []byte {
	return binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
}

func appendSteps(b []byte, values []float32) []byte {
	s := step(values)
	b = appendFloat(b, s)
	for _, v := range values {
		n := int8(0)
		if s > 0 {
			n = int8(math.Round(float64(v / s)))
		}
		b = append(b, byte(n))
	}
	return b
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler. It returns an error
// matching ledger.ErrInvalid for bytes that are no model of this version.
func (m *Model) UnmarshalBinary(packed []byte) error {
	raw, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), maxModel))
	if err != nil {
		return fmt.Errorf("%w: model: %w", ledger.ErrInvalid, err)
	}
	d := decoder{rest: raw}
	if v := d.byte(); v != formatVersion {
		return fmt.Errorf("%w: model of format %d, want %d", ledger.ErrInvalid, v, formatVersion)
	}
	n, size := binary.Uvarint(d.rest)
	if size <= 0 {
		return fmt.Errorf("%w: model: no length", ledger.ErrInvalid)
	}
	d.rest = d.rest[size:]
	var decoded Model
	if err := json.Unmarshal(d.take(n), &decoded.Info); err != nil {
		return fmt.Errorf("%w: model: %w", ledger.ErrInvalid, err)
	}
	decoded.directions = d.linear()
	if len(d.rest) > 0 {
		interest := d.linear()
		decoded.interest = &interest
	}
	if d.short || len(d.rest) > 0 || decoded.directions.classes != len(decoded.Classes) || len(decoded.Classes) == 0 ||
		decoded.interest != nil && decoded.interest.classes != 2 {
		return fmt.Errorf("%w: model is damaged", ledger.ErrInvalid)
	}
	*m = decoded
	return nil
}

// decoder reads what MarshalBinary wrote; short says that bytes were missing.
type decoder struct {
	rest  []byte
	short bool
}

func (d *decoder) take(n uint64) []byte {
	if uint64(len(d.rest)) < n {
		d.short, d.rest = true, nil
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) float() float32 {
	if b := d.take(4); b != nil {
		return math.Float32frombits(binary.LittleEndian.Uint32(b))
	}
	return 0
}

func (d *decoder) linear() linear {
	l := linear{classes: int(d.byte())}
	for range l.classes {
		l.bias = append(l.bias, d.float())
	}
	l.weights = d.steps(l.classes * buckets)
	l.scale = d.steps(buckets)
	return l
}

func (d *decoder) steps(n int) []float32 {
	s := d.float()
	b := d.take(uint64(n))
	values := make([]float32, len(b))
	for i, c := range b {
		values[i] = float32(int8(c)) * s
	}
	return values
}
