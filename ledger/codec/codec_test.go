package codec

import (
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"vesti.nixg.ru/ledger"
)

var update = flag.Bool("update", false, "write the golden events of the present version")

// payloads returns a zero payload of each type.
func payloads(t testing.TB) []ledger.Payload {
	t.Helper()
	var all []ledger.Payload
	for _, typ := range ledger.Types() {
		c := coder{decoding: true, fields: new([maxField + 1]field)}
		p := c.decodePayload(typ)
		if p == nil || p.EventType() != typ {
			t.Fatalf("no payload for %s", typ)
		}
		all = append(all, p)
	}
	return all
}

// filled returns p with every field set to a value of its own, so that a field
// that is forgotten, or read into another one, shows.
func filled(p ledger.Payload) ledger.Payload {
	v := reflect.New(reflect.TypeOf(p)).Elem()
	n := 0
	fill(v, &n)
	return v.Interface().(ledger.Payload)
}

func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("значение %d", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n * 1001))
	case reflect.Uint8:
		v.SetUint(uint64(*n%250 + 1))
	case reflect.Uint64:
		v.SetUint(uint64(*n) << 33)
	case reflect.Float64:
		v.SetFloat(float64(*n) / 7)
	case reflect.Array:
		for i := range v.Len() {
			v.Index(i).SetUint(uint64(*n + i&0xff))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range v.Len() {
			fill(v.Index(i), n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, *n%60, 123456000, time.UTC)))
			return
		}
		for _, field := range v.Fields() {
			fill(field, n)
		}
	default:
		panic(v.Kind().String())
	}
}

// sample is an event with a filled payload, but its text, which is held apart.
func sample(p ledger.Payload) ledger.Event {
	e := ledger.Event{
		Seq: 7, At: time.Date(2026, 11, 30, 17, 0, 0, 1000, time.UTC), Type: p.EventType(), Version: Version,
		Actor: "worker/3", Post: 5, Source: "habr", Payload: SetText(filled(p), ""),
	}
	e.Payload = withSource(e.Payload, e.Source)
	return e
}

func TestEveryFieldRoundTrips(t *testing.T) {
	for _, p := range payloads(t) {
		for name, e := range map[string]ledger.Event{"filled": sample(p), "zero": {Seq: 1, Type: p.EventType(), Version: Version, Payload: p}} {
			got := DecodeEvent(e.Seq, AppendEvent(nil, e))
			if !reflect.DeepEqual(got, e) {
				t.Errorf("%s %s:\n got %+v\nwant %+v", name, p.EventType(), got, e)
			}
		}
	}
}

func TestStates(t *testing.T) {
	var s ledger.SourceState
	n := 0
	fill(reflect.ValueOf(&s).Elem(), &n)
	got, err := DecodeSourceState(AppendSourceState(nil, s))
	if err != nil || got != s {
		t.Errorf("got %+v, %v\nwant %+v", got, err, s)
	}
}

func TestTexts(t *testing.T) {
	for _, p := range payloads(t) {
		if r, ok := p.(ledger.PostRevised); ok {
			r.TextChanged = true
			p = r
		}
		_, has := Text(p)
		got, _ := Text(SetText(p, "текст"))
		if has != (got == "текст") {
			t.Errorf("%s: has a text: %v, took %q", p.EventType(), has, got)
		}
	}
}

// TestGolden: what version 1 wrote is read for ever.
func TestGolden(t *testing.T) {
	dir := filepath.Join("testdata", "v1")
	for _, p := range payloads(t) {
		e := sample(p)
		path := filepath.Join(dir, e.Type.String()+".hex")
		if *update {
			if err := os.WriteFile(path, []byte(hex.EncodeToString(AppendEvent(nil, e))+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		stored, err := hex.DecodeString(strings.TrimSpace(string(b)))
		if err != nil {
			t.Fatal(err)
		}
		if got := DecodeEvent(e.Seq, stored); !reflect.DeepEqual(got, e) {
			t.Errorf("%s:\n got %+v\nwant %+v", e.Type, got, e)
		}
	}
}

func TestUnknown(t *testing.T) {
	good := AppendEvent(nil, sample(ledger.PostReviewed{}))
	newer := append([]byte{}, good...)
	newer[1] = Version + 1
	other := append([]byte{}, good...)
	other[0] = 200
	for name, b := range map[string][]byte{
		"a newer version": newer, "another type": other, "cut": good[:len(good)-1], "nothing": nil, "short": {1, 2},
	} {
		e := DecodeEvent(9, b)
		u, ok := e.Payload.(ledger.Unknown)
		if !ok || u.Err == "" {
			t.Errorf("%s: got %+v", name, e)
		}
		if name == "a newer version" || name == "another type" {
			if e.Post != 5 || e.Actor != "worker/3" {
				t.Errorf("%s: the envelope is %+v", name, e)
			}
			if again := AppendEvent(nil, e); string(again) != string(b) {
				t.Errorf("%s: %x became %x", name, b, again)
			}
		}
	}
	// A field of a number that this version does not know is skipped.
	more := append(append([]byte{}, good...), 0xf8, 0x03, 1, 0xfa, 0x03, 2, 'x', 'y') // 63: a number, and bytes
	if e := DecodeEvent(7, more); !reflect.DeepEqual(e, sample(ledger.PostReviewed{})) {
		t.Errorf("with unknown fields: %+v", e)
	}
}

// TestUpcast: a payload of an older version goes through each step.
func TestUpcast(t *testing.T) {
	steps := map[step]upcaster{
		{ledger.TypePostReviewed, 1}: func(c *coder) { c.fields[3] = c.fields[2] }, // the direction becomes the note
		{ledger.TypePostReviewed, 2}: func(c *coder) { c.fields[2] = field{} },
	}
	b := AppendPayload(nil, ledger.PostReviewed{Direction: "linux"})
	for version, want := range map[uint8]ledger.PostReviewed{
		1: {Note: "linux"}, 2: {}, 3: {Direction: "linux"},
	} {
		c := pool.get(string(b))
		if err := c.parse(b); err != nil {
			t.Fatal(err)
		}
		if err := upcast(steps, ledger.TypePostReviewed, version, c); err != nil {
			t.Fatal(err)
		}
		if got := c.decodePayload(ledger.TypePostReviewed); got != want {
			t.Errorf("version %d: got %+v, want %+v", version, got, want)
		}
	}
	c := pool.get(string(b))
	for _, version := range []uint8{0, 4} {
		if err := upcast(steps, ledger.TypePostReviewed, version, c); err == nil {
			t.Errorf("version %d was read", version)
		}
	}
	if err := upcast(steps, ledger.TypePostRemoved, 2, c); err == nil {
		t.Error("version 2 of another type was read")
	}
}

func TestLink(t *testing.T) {
	p := ledger.PostFetched{ID: ledger.PostID{1}, TextLen: 3}
	b := AppendLink(AppendPayload(nil, p), 77)
	p.LinkedTo = 77
	if got, err := DecodePayload(ledger.TypePostFetched, Version, b); err != nil || !reflect.DeepEqual(got, p) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// FuzzDecode: no bytes make decoding panic, and what decodes comes back.
func FuzzDecode(f *testing.F) {
	for _, p := range payloads(f) {
		f.Add(AppendEvent(nil, sample(p)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e := DecodeEvent(7, b)
		if _, unknown := e.Payload.(ledger.Unknown); unknown {
			return
		}
		stored := AppendEvent(nil, e)
		if again := AppendEvent(nil, DecodeEvent(7, stored)); string(again) != string(stored) {
			t.Fatalf("%x:\n stored %x\n  again %x", b, stored, again)
		}
	})
}

func BenchmarkDecodeFetched(b *testing.B) {
	stored := AppendEvent(nil, sample(ledger.PostFetched{}))
	b.ReportAllocs()
	for b.Loop() {
		DecodeEvent(7, stored)
	}
}

func BenchmarkEncodeFetched(b *testing.B) {
	e := sample(ledger.PostFetched{})
	b.ReportAllocs()
	var dst []byte
	for b.Loop() {
		dst = AppendEvent(dst[:0], e)
	}
}
