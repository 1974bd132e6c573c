package projections_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/projections"
)

// TestStateIsEncodedWhole fails where a field of PostState is left out of the
// encoding, as one that is added later would be.
func TestStateIsEncodedWhole(t *testing.T) {
	var s ledger.PostState
	v := reflect.ValueOf(&s).Elem()
	for i := range v.NumField() {
		f := v.Field(i)
		switch f.Kind() {
		case reflect.String:
			f.SetString("x" + v.Type().Field(i).Name)
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Float64:
			f.SetFloat(0.1 + float64(i))
		case reflect.Int:
			f.SetInt(int64(i + 1))
		case reflect.Uint8, reflect.Uint64:
			f.SetUint(uint64(i + 1))
		case reflect.Struct:
			f.Set(reflect.ValueOf(time.Date(2026, 1, 1, 0, 0, i, 1000, time.UTC)))
		default:
			t.Fatalf("a field of a new kind: %s %s", v.Type().Field(i).Name, f.Kind())
		}
	}
	for _, want := range []ledger.PostState{{}, s} {
		var e projections.Encoder
		e.State(want)
		d := projections.NewDecoder(e.Bytes())
		if diff := cmp.Diff(want, d.State()); diff != "" || d.Err() != nil {
			t.Errorf("%v\n%s", d.Err(), diff)
		}
		for n := range e.Bytes() {
			cut := projections.NewDecoder(e.Bytes()[:n])
			if cut.State(); cut.Err() == nil {
				t.Errorf("the first %d of %d bytes decode", n, len(e.Bytes()))
			}
		}
	}
}
