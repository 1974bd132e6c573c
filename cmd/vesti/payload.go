package main

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode"
)

// payloadJSON is what an event says, in the form of "vesti log --json": an
// object whose keys are the names of the fields in snake_case. Words of closed
// sets are names, hashes hexadecimal, durations milliseconds in a key that ends
// in "_ms"; a time or count that is not known is null. The keys are part of the
// interface: testdata/payload_keys.txt lists them.
func payloadJSON(payload any) map[string]any {
	out := map[string]any{}
	addFields(out, reflect.ValueOf(payload))
	return out
}

func addFields(out map[string]any, v reflect.Value) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.Anonymous {
			addFields(out, v.Field(i))
			continue
		}
		key, value := snakeCase(field.Name), v.Field(i).Interface()
		if d, ok := value.(time.Duration); ok {
			out[key+"_ms"] = float64(d.Microseconds()) / 1000
			continue
		}
		out[key] = jsonValue(v.Field(i))
	}
}

func jsonValue(v reflect.Value) any {
	switch value := v.Interface().(type) {
	case time.Time:
		if value.IsZero() {
			return nil
		}
		return value.UTC()
	case []byte, encoding.TextMarshaler:
		return value
	case fmt.Stringer:
		return value.String()
	}
	switch v.Kind() {
	case reflect.Struct:
		object := map[string]any{}
		addFields(object, v)
		return object
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = jsonValue(v.Index(i))
		}
		return list
	default:
		return v.Interface()
	}
}

// snakeCase writes a Go name as a key: HTTPStatus as http_status, ItemID as
// item_id.
func snakeCase(name string) string {
	if name == "ETag" { // one word
		return "etag"
	}
	var b strings.Builder
	letters := []rune(name)
	for i, r := range letters {
		if i > 0 && unicode.IsUpper(r) && (!unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
