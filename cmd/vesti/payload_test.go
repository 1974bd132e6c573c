package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"vesti.nixg.ru/ledger"
)

var update = flag.Bool("update", false, "write the golden files anew")

// everyPayload is one of each type of event.
func everyPayload() []ledger.Payload {
	return []ledger.Payload{
		ledger.PostFetched{},
		ledger.PostSeenAgain{},
		ledger.PostRevised{},
		ledger.PostClassified{Classification: ledger.Classification{Reasons: []ledger.Reason{{}}}},
		ledger.PostFailed{},
		ledger.PostReturned{},
		ledger.PostMeasured{},
		ledger.PostRemoved{},
		ledger.PostPrioritised{},
		ledger.PostReviewed{},
		ledger.StoryGrouped{},
		ledger.StoryUngrouped{},
		ledger.PostExpired{},
		ledger.SourceCrawled{},
		ledger.SourceFailed{},
		ledger.SourceThrottled{},
		ledger.SourceReset{},
		ledger.SourceMoved{},
		ledger.RunsSummarised{},
		ledger.BodiesDropped{},
	}
}

// TestPayloadKeys: the keys of "vesti log --json" are an interface. One that
// changes needs a reason, one that is new a line in the list.
func TestPayloadKeys(t *testing.T) {
	const golden = "testdata/payload_keys.txt"
	var b strings.Builder
	seen := map[ledger.Type]bool{}
	for _, p := range everyPayload() {
		seen[p.EventType()] = true
		fmt.Fprintf(&b, "%s: %s\n", p.EventType(), strings.Join(keysOf(payloadJSON(p)), " "))
	}
	for _, typ := range ledger.Types() {
		if !seen[typ] {
			t.Errorf("%s is not in the list", typ)
		}
	}
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("keys are now\n%s\nwith -update the list is written anew", b.String())
	}
}

// keysOf lists the keys of an object, those of an inner one after a dot.
func keysOf(object map[string]any) []string {
	var keys []string
	for _, k := range slices.Sorted(maps.Keys(object)) {
		if list, ok := object[k].([]any); ok && len(list) > 0 {
			object[k] = list[0]
		}
		inner, ok := object[k].(map[string]any)
		if !ok {
			keys = append(keys, k)
			continue
		}
		for _, below := range keysOf(inner) {
			keys = append(keys, k+"."+below)
		}
	}
	return keys
}

func TestPayloadValues(t *testing.T) {
	views := int64(7)
	for _, tt := range []struct {
		payload ledger.Payload
		want    []string
	}{
		{
			ledger.PostFetched{Item: ledger.Item{Lane: ledger.LaneP1, Measures: ledger.Measures{Views: &views}}},
			[]string{`"lane":"p1"`, `"views":7`, `"reactions":null`, `"published":null`, `"media":[]`, `"id":"000000`, `"fingerprint":"000000`},
		},
		{
			ledger.PostClassified{Classification: ledger.Classification{Duration: 1500 * time.Microsecond, Reasons: []ledger.Reason{{Rule: "a"}}}},
			[]string{`"duration_ms":1.5`, `"reasons":[{`, `"rule":"a"`, `"provisional":false`},
		},
		{ledger.PostReturned{Stage: ledger.StageLLM}, []string{`"stage":"llm"`}},
		{
			ledger.SourceCrawled{Run: ledger.Run{HTTPStatus: 304, Next: time.Date(2026, 3, 2, 6, 0, 0, 0, time.UTC)}},
			[]string{`"http_status":304`, `"next":"2026-03-02T06:00:00Z"`, `"etag":""`},
		},
		{ledger.RunsSummarised{State: ledger.SourceState{Status: ledger.SourceDead}}, []string{`"status":"dead"`, `"last_ok":null`}},
		{ledger.Unknown{Stored: 99, Raw: []byte{1}, Err: "odd"}, []string{`"stored":"unknown"`, `"raw":"AQ=="`, `"err":"odd"`}},
	} {
		b, err := json.Marshal(payloadJSON(tt.payload))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range tt.want {
			if !strings.Contains(string(b), w) {
				t.Errorf("%T: no %s in %s", tt.payload, w, b)
			}
		}
	}
}
