package llm_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"vesti.nixg.ru/classify"
	"vesti.nixg.ru/classify/llm"
	"vesti.nixg.ru/ledger"
)

// TestOddAnswers: what models and servers answer beside what they were asked
// for, and what becomes of the post: the cause, or "" for a decision.
func TestOddAnswers(t *testing.T) {
	calls := `"tool_calls":[{"function":{"name":"classify","arguments":{"direction":"linux"}}}]`
	for _, tt := range []struct {
		name   string
		openAI bool
		script []step
		want   ledger.Cause
		asked  int
		says   string
	}{
		{name: "an example before the answer", script: []step{said(`As in {"area": "x"}: ` + valid)}, asked: 1},
		{name: "braces before the answer", script: []step{said(strings.Repeat("{", 20) + valid)}, asked: 1},
		{name: "the answer in an object", script: []step{said(`{"answer": ` + valid + `}`)}, asked: 1},
		{name: "the answer twice", script: []step{said(valid + "\n" + strings.Replace(valid, "linux", "games", 1))}, asked: 1},
		{name: "the answer in a list", script: []step{said("[" + valid + "]")}, asked: 1},
		{name: "keys in capitals", script: []step{said(strings.NewReplacer("direction", "Direction", "summary", "SUMMARY").Replace(valid))}, asked: 1},
		{name: "the end of thoughts in a text", script: []step{said(strings.Replace(valid, `"ядро"`, `"ядро</think>{}"`, 1))}, asked: 1},
		{name: "thoughts without a beginning", script: []step{said("It is {perhaps} Linux.</think>" + valid)}, asked: 1},
		{name: "thoughts in a fence", script: []step{said("<thinking>a</thinking>```json\n" + valid + "```")}, asked: 1},
		{name: "nothing but an opening brace", script: []step{said("{")}, want: ledger.CauseTruncated, asked: 2},
		{name: "braces without end", script: []step{said(strings.Repeat(`{"a":`, 100_000))}, want: ledger.CauseBadReply, asked: 2},
		{name: "cut within the summary", script: []step{said(valid[:len(valid)-30])}, want: ledger.CauseTruncated, asked: 2},
		{name: "two directions", script: []step{said(strings.Replace(valid, `"linux"`, `["linux","tech"]`, 1))}, want: ledger.CauseBadReply, asked: 2},
		{name: "the schema itself", script: []step{said(`{"type":"object","properties":{"direction":{"type":"string"}}}`)}, want: ledger.CauseBadReply, asked: 2},
		{name: "a direction in quotes, with a full stop", script: []step{said(strings.Replace(valid, `"linux"`, `"«Linux»."`, 1))}, asked: 1},
		{name: "a fraction", script: []step{said(strings.Replace(valid, "93", "93.0", 1))}, asked: 1},
		{name: "below nothing", script: []step{said(strings.Replace(valid, "93", "-1", 1))}, want: ledger.CauseBadReply, asked: 2},
		{name: "null", script: []step{said("null")}, want: ledger.CauseBadReply, asked: 2},
		{name: "a tool called", script: []step{{body: `{"message":{"role":"assistant","content":"",` + calls + `},"done":true,"done_reason":"stop"}`}}, want: ledger.CauseEmptyReply, asked: 2},
		{
			name: "a tool called, OpenAI's form", openAI: true,
			script: []step{{body: `{"choices":[{"finish_reason":"tool_calls","message":{"content":null,` + calls + `}}]}`}}, want: ledger.CauseEmptyReply, asked: 2,
		},
		{
			name:   "streamed all the same",
			script: []step{{body: `{"message":{"content":"{"},"done":false}` + "\n" + `{"message":{"content":"}"},"done":true,"done_reason":"stop"}` + "\n"}},
			want:   ledger.CauseUnavailable, asked: 1, says: "streams its answer",
		},
		{
			name: "streamed all the same, OpenAI's form", openAI: true,
			script: []step{{body: "data: {\"choices\":[{\"delta\":{\"content\":\"{\"}}]}\n\ndata: [DONE]\n\n"}},
			want:   ledger.CauseUnavailable, asked: 1, says: "streams its answer",
		},
		{name: "too many requests", script: []step{{status: http.StatusTooManyRequests, body: `{"error":{"message":"rate limit"}}`}}, want: ledger.CauseUnavailable, asked: 1, says: "busy"},
		{name: "a gateway's page", script: []step{{status: http.StatusBadGateway, body: "<html>502</html>"}}, want: ledger.CauseUnavailable, asked: 1, says: "502"},
		{name: "a redirect", script: []step{{status: http.StatusFound, body: "elsewhere"}}, want: ledger.CauseUnavailable, asked: 1, says: "302"},
		{name: "nothing at all", script: []step{{body: ""}}, want: ledger.CauseUnavailable, asked: 1, says: "no JSON"},
		{name: "another object", script: []step{{body: `{"ok":true}`}}, want: ledger.CauseEmptyReply, asked: 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDouble(t, tt.script...)
			var change []func(*llm.Options)
			if tt.openAI {
				change = append(change, openAI)
			}
			got, err := classifier(t, d, change...).Classify(t.Context(), claim(), nil)
			if n := len(d.asked()); n != tt.asked {
				t.Errorf("asked %d times, want %d", n, tt.asked)
			}
			if tt.want == "" {
				if err != nil || got.Direction != "linux" || got.Relevance != 0.93 || got.Summary != "Вышло новое ядро Linux." {
					t.Errorf("decision %+v, error %v", got, err)
				}
				return
			}
			if cause(err) != tt.want || !strings.Contains(err.Error(), tt.says) || got.Direction != "" {
				t.Errorf("decision %+v, error %v, want cause %s saying %q", got, err, tt.want, tt.says)
			}
		})
	}
}

// TestDrip: a server that says a blank now and then for ever is out of time when
// one that says nothing is.
func TestDrip(t *testing.T) {
	d := newDouble(t, step{drip: true})
	began := time.Now()
	_, err := classifier(t, d, func(o *llm.Options) { o.Timeout = 100 * time.Millisecond }).Classify(t.Context(), claim(), nil)
	if cause(err) != ledger.CauseTimeout || time.Since(began) > 15*time.Second {
		t.Errorf("error %v after %v", err, time.Since(began))
	}
}

// TestRetryAfter: a server that says when to come back is left alone until then,
// but not for ever.
func TestRetryAfter(t *testing.T) {
	for said, want := range map[string]time.Duration{
		"": 0, "120": 2 * time.Minute, "-5": 0, "soon": 0, "999999999": time.Hour, "99999999999999999999": 0,
		time.Now().Add(10 * time.Minute).UTC().Format(http.TimeFormat): 10 * time.Minute,
		time.Now().Add(-time.Minute).UTC().Format(http.TimeFormat):     0,
	} {
		d := newDouble(t, step{status: http.StatusServiceUnavailable, body: `{"error":"busy"}`, after: said})
		_, err := classifier(t, d).Classify(t.Context(), claim(), nil)
		var e *llm.Error
		if !errors.As(err, &e) || e.Cause() != ledger.CauseUnavailable || (want-e.RetryAfter()).Abs() > 5*time.Second {
			t.Errorf("Retry-After %q: %v, want %v", said, err, want)
			continue
		}
		b := classify.NewBreaker(classify.BreakerOptions{})
		if !b.Ready(t.Context()) {
			t.Fatal("not ready")
		}
		b.Report(&classify.Failure{Cause: e.Cause(), RetryAfter: e.RetryAfter(), Err: err})
		if pause := time.Until(b.Status().Retry); (max(want, time.Second) - pause).Abs() > 5*time.Second {
			t.Errorf("Retry-After %q: a pause of %v", said, pause)
		}
	}
}
