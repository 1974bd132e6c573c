package badgerlog

import (
	"reflect"
	"testing"
	"time"

	"vesti.nixg.ru/ledger"
)

// TestRecord: every field of a record comes back, all at once and each alone.
func TestRecord(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678000, time.UTC)
	full := postRecord{
		num: 1000, id: ledger.PostID{1, 2, 3}, place: 1001, text: 1002, revised: 1003, decision: 1004, linked: 900,
		carriers: []ledger.Slug{"a", "бб"}, claim: newToken(3, 9), deaths: 2,
	}
	fields := reflect.ValueOf(&full.state).Elem()
	for i := range fields.NumField() {
		switch f := fields.Field(i); f.Kind() {
		case reflect.Bool:
			f.SetBool(true)
		case reflect.String:
			f.SetString("знач" + fields.Type().Field(i).Name)
		case reflect.Int:
			f.SetInt(int64(i + 1))
		case reflect.Uint8, reflect.Uint64:
			f.SetUint(uint64(i + 1))
		case reflect.Float64:
			f.SetFloat(float64(i) / 3)
		case reflect.Struct:
			f.Set(reflect.ValueOf(at.Add(time.Duration(i) * time.Hour)))
		default:
			t.Fatalf("field %s", fields.Type().Field(i).Name)
		}
	}
	check := func(name string, r postRecord) {
		t.Helper()
		got, err := decodePost(r.num, r.encode())
		if err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", name, got, err, r)
		}
	}
	check("full", full)
	empty := postRecord{num: 1000, place: 1000, text: 1000}
	check("empty", empty)
	for i := range fields.NumField() {
		one := empty
		reflect.ValueOf(&one.state).Elem().Field(i).Set(fields.Field(i))
		check(fields.Type().Field(i).Name, one)
	}
	b := full.encode()
	for n := range b {
		if _, err := decodePost(full.num, b[:n]); err == nil {
			t.Errorf("%d of %d bytes were read", n, len(b))
		}
	}
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte{recordVersion})
	f.Add(postRecord{num: 7, place: 8, text: 7, carriers: []ledger.Slug{"a"}}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodePost(7, b)
		if err != nil {
			return
		}
		again, err := decodePost(7, r.encode())
		if err != nil || !reflect.DeepEqual(again, r) && r.state.Relevance == r.state.Relevance && r.state.Interest == r.state.Interest {
			t.Fatalf("%x: %+v, then %+v, %v", b, r, again, err)
		}
	})
}

// FuzzKeys: keys sort as what they stand for does, and say what went into them.
func FuzzKeys(f *testing.F) {
	f.Add(uint64(1), uint64(2), uint8(0), uint8(3), "a", "ab")
	f.Fuzz(func(t *testing.T, m, n uint64, stage, lane uint8, a, b string) {
		q := queueID{ledger.Stage(stage % ledger.StageCount), ledger.Lane(lane % ledger.LaneCount)}
		for name, k := range map[string][2][]byte{
			"event": {eventKey(ledger.Seq(m)), eventKey(ledger.Seq(n))},
			"ready": {readyKey(q, ledger.Seq(m)), readyKey(q, ledger.Seq(n))},
			"delay": {delayedKey(int64(m>>1), 1), delayedKey(int64(n>>1), 1)},
			"index": {postIdxKey(7, ledger.Seq(m)), postIdxKey(7, ledger.Seq(n))},
		} {
			x, y := m, n
			if name == "delay" {
				x, y = m>>1, n>>1
			}
			if (x < y) != (string(k[0]) < string(k[1])) {
				t.Errorf("%s: %x and %x sort otherwise than %d and %d", name, k[0], k[1], x, y)
			}
			if name == "delay" && dueOf(k[0]) != int64(x) || name != "delay" && seqOf(k[0]) != x {
				t.Errorf("%s: %x does not hold %d", name, k[0], x)
			}
		}
		if ledger.Slug(a).Validate() == nil && ledger.Slug(b).Validate() == nil && a != b {
			ka, kb := srcIdxKey(ledger.Slug(a), ledger.Seq(m)), srcIdxPrefix(ledger.Slug(b))
			if len(ka) >= len(kb) && string(ka[:len(kb)]) == string(kb) {
				t.Errorf("an event of %q stands among those of %q", a, b)
			}
		}
	})
}
