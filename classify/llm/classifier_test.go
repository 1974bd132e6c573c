package llm_test

import (
	"context"
	"errors"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"vesti.nixg.ru/classify/llm"
	"vesti.nixg.ru/ledger"
)

// TestReproduced plays back what a real Ollama 0.17.4 answers when things go
// wrong, and says what becomes of the post: the cause, or "" for a decision.
func TestReproduced(t *testing.T) {
	ok := said(valid)
	thinking := func(o *llm.Options) { o.Think = llm.ThinkOn }
	unset := func(o *llm.Options) { o.Think = llm.ThinkUnset }
	for _, tt := range []struct {
		name   string
		change []func(*llm.Options)
		script []step
		want   ledger.Cause
		asked  int
		says   string
	}{
		{
			name: "missing model", script: []step{{status: 404, body: `{"error":"model 'nope' not found"}`}},
			want: ledger.CauseUnavailable, asked: 1, says: "ollama pull",
		},
		{
			name: "missing model, OpenAI's form", change: []func(*llm.Options){openAI},
			script: []step{{status: 404, body: `{"error":{"message":"model 'nope' not found","type":"not_found_error"}}`}},
			want:   ledger.CauseUnavailable, asked: 1, says: "model 'nope' not found",
		},
		{
			name: "schema not taken", script: []step{{status: 500, body: `{"error":"invalid JSON schema in format"}`}},
			want: ledger.CauseUnavailable, asked: 1, says: "schema",
		},
		{name: "schema honoured", script: []step{ok}, asked: 1},
		{
			name: "runner crashes on the grammar", script: []step{{status: 500, body: `{"error":"model runner has unexpectedly stopped, this may be due to resource limitations"}`}},
			want: ledger.CauseUnavailable, asked: 1, says: "unexpectedly stopped",
		},
		{name: "only loaded", script: []step{saidWith("", true, "load", ""), saidWith("", true, "load", "")}, want: ledger.CauseEmptyReply, asked: 2, says: "load"},
		{
			name: "thinking asked of a plain model", change: []func(*llm.Options){thinking},
			script: []step{{status: 400, body: `{"error":"\"tiny\" does not support thinking"}`}},
			want:   ledger.CauseUnavailable, asked: 1, says: "set think to off",
		},
		{
			name: "thinking model left to itself", change: []func(*llm.Options){unset},
			script: []step{saidWith("", true, "stop", "Okay, let me think about this post")},
			want:   ledger.CauseEmptyReply, asked: 1, says: "set think to off",
		},
		{
			name: "thinking model left to itself, OpenAI's form", change: []func(*llm.Options){openAI},
			script: []step{completed("", "length", "Okay, let me think")}, want: ledger.CauseEmptyReply, asked: 1, says: "set think to off",
		},
		{name: "thinking model told not to", script: []step{ok}, asked: 1},
		{
			name:   "an effort that the model does not have",
			change: []func(*llm.Options){openAI, func(o *llm.Options) { o.Think = llm.ThinkLow }},
			script: []step{{status: 400, body: `{"error":{"message":"reasoning_effort \"low\" is not supported"}}`}},
			want:   ledger.CauseUnavailable, asked: 1, says: "set think to off",
		},
		{
			name:   "prompt clipped",
			script: []step{{body: strings.Replace(ok.body, `"prompt_eval_count":200`, `"prompt_eval_count":4096`, 1)}, ok}, asked: 2,
		},
		{
			name:   "prompt always clipped",
			script: []step{{body: strings.Replace(ok.body, `"prompt_eval_count":200`, `"prompt_eval_count":4096`, 1)}},
			want:   ledger.CauseTooLarge, asked: 3, says: "clipped",
		},
		{
			name:   "prompt refused",
			script: []step{{status: 400, body: `{"error":"the input length exceeds the context length"}`}, ok}, asked: 2,
		},
		{
			name:   "prompt always refused",
			script: []step{{status: 400, body: `{"error":"the input length exceeds the context length"}`}},
			want:   ledger.CauseTooLarge, asked: 3, says: "window",
		},
		{
			name: "one token again and again", script: []step{saidWith(`{"direction":"linux","summary":"ааааааа`, false, "", "")},
			want: ledger.CauseTruncated, asked: 2, says: "gave up",
		},
		{
			name: "one token again and again, OpenAI's form", change: []func(*llm.Options){openAI},
			script: []step{completed(`{"direction":"linux","summary":"ааааааа`, "", "")}, want: ledger.CauseTruncated, asked: 2,
		},
		{
			name: "one token again and again, then not", script: []step{saidWith(`{"direction":"linux"`, false, "", ""), ok}, asked: 2,
		},
		{
			name:   "runner killed, streamed",
			script: []step{{body: `{"message":{"content":"{\"dir"},"done":false}` + "\n" + `{"error":"an error was encountered while running the model: unexpected EOF"}` + "\n"}},
			want:   ledger.CauseUnavailable, asked: 1, says: "unexpected EOF",
		},
		{
			name: "runner killed", script: []step{{status: 500, body: `{"error":"model runner has unexpectedly stopped"}`}},
			want: ledger.CauseUnavailable, asked: 1,
		},
		{
			name: "busy", script: []step{{status: 503, body: `{"error":"server busy, please try again.  maximum pending requests exceeded"}`}},
			want: ledger.CauseUnavailable, asked: 1, says: "busy",
		},
		{name: "unknown option", script: []step{ok}, asked: 1},

		// What other servers and models were seen to do.
		{name: "no room for the model", script: []step{{status: 500, body: `{"error":"model requires more system memory (5.6 GiB) than is available"}`}}, want: ledger.CauseUnavailable, asked: 1, says: "no room"},
		{name: "limit far too low", script: []step{saidWith(`{"direction":"li`, true, "length", "")}, want: ledger.CauseTruncated, asked: 2, says: "limit"},
		{name: "blank lines for ever", script: []step{saidWith(" \n\n\n  \n", true, "length", "")}, want: ledger.CauseEmptyReply, asked: 1},
		{name: "cut by a stop word", script: []step{said(`{"direction":"linux","relevance":93,"summary":"Вышло`), ok}, asked: 2},
		{name: "prose and a code fence", script: []step{said("Sure! Here it is:\n```json\n" + valid + "\n```\nHope it helps {really}.")}, asked: 1},
		{name: "thoughts in the answer", script: []step{said("<think>It is {maybe} about Linux.</think>\n" + valid)}, asked: 1},
		{name: "thoughts without an end", script: []step{said("<think>It is about")}, want: ledger.CauseEmptyReply, asked: 2},
		{name: "prose alone", script: []step{said("I cannot help with that.")}, want: ledger.CauseBadReply, asked: 2, says: "no JSON object"},
		{name: "a list", script: []step{said("[1,2]")}, want: ledger.CauseBadReply, asked: 2},
		{name: "another direction", script: []step{said(strings.Replace(valid, `"linux"`, `"cooking"`, 1))}, want: ledger.CauseBadReply, asked: 2, says: "cooking"},
		{name: "direction in capitals", script: []step{said(strings.Replace(valid, `"linux"`, `" Linux "`, 1))}, asked: 1},
		{name: "a number beyond all numbers", script: []step{said(strings.Replace(valid, "93", "2e9208576", 1))}, want: ledger.CauseBadReply, asked: 2, says: "2e9208576"},
		{name: "a number out of range", script: []step{said(strings.Replace(valid, "93", "101", 1))}, want: ledger.CauseBadReply, asked: 2},
		{name: "a number as text", script: []step{said(strings.Replace(valid, "93", `"very"`, 1))}, want: ledger.CauseBadReply, asked: 2},
		{name: "a field missing", script: []step{said(`{"direction":"linux","relevance":1,"interest":1}`)}, want: ledger.CauseBadReply, asked: 2, says: "lacks"},
		{name: "an empty summary", script: []step{said(strings.Replace(valid, "Вышло новое ядро Linux.", "", 1))}, want: ledger.CauseBadReply, asked: 2, says: "summary"},
		{name: "a summary in another language", script: []step{said(strings.Replace(valid, "Вышло новое ядро Linux.", "A new kernel was released today.", 1))}, want: ledger.CauseBadReply, asked: 2, says: "language"},
		{name: "a summary without end", script: []step{said(strings.Replace(valid, "Вышло новое ядро Linux.", strings.Repeat("ядро ", 200), 1))}, want: ledger.CauseBadReply, asked: 2, says: "characters"},
		{name: "repaired", script: []step{said("What?"), ok}, asked: 2},
		{name: "no JSON at all", script: []step{{body: "<html>Welcome to nginx</html>"}}, want: ledger.CauseUnavailable, asked: 1, says: "address"},
		{name: "an error in a success", script: []step{{body: `{"error":"cuda out of memory"}`}}, want: ledger.CauseUnavailable, asked: 1, says: "cuda"},
		{name: "the connection breaks", script: []step{{cut: true}}, want: ledger.CauseUnavailable, asked: 1, says: "broke"},
		{name: "a wrong key", script: []step{{status: 401, body: `{"error":{"message":"invalid api key"}}`}}, want: ledger.CauseUnavailable, asked: 1, says: "key"},
		{name: "an enormous answer", script: []step{{body: strings.Repeat("x", 2<<20)}}, want: ledger.CauseBadReply, asked: 1},
		{name: "no choices", change: []func(*llm.Options){openAI}, script: []step{{body: `{"choices":[]}`}}, want: ledger.CauseEmptyReply, asked: 2},
		{name: "filtered", change: []func(*llm.Options){openAI}, script: []step{completed("no", "content_filter", "")}, want: ledger.CauseBadReply, asked: 2, says: "content_filter"},
		{name: "OpenAI's form", change: []func(*llm.Options){openAI}, script: []step{completed(valid, "stop", "")}, asked: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDouble(t, tt.script...)
			got, err := classifier(t, d, tt.change...).Classify(t.Context(), claim(), nil)
			if n := len(d.asked()); n != tt.asked {
				t.Errorf("asked %d times, want %d", n, tt.asked)
			}
			if tt.want == "" {
				if err != nil || got.Direction != "linux" || got.Relevance != 0.93 || got.Interest != 0.7 || got.Summary != "Вышло новое ядро Linux." {
					t.Errorf("decision %+v, error %v", got, err)
				}
				return
			}
			var e *llm.Error
			if !errors.As(err, &e) || e.Cause() != tt.want || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want cause %s saying %q", err, tt.want, tt.says)
			}
			if got.Direction != "" || got.Relevance != 0 {
				t.Errorf("a failure came with a decision: %+v", got)
			}
			if e != nil && e.Final() != (tt.want == ledger.CauseTooLarge) {
				t.Errorf("final %v", e.Final())
			}
		})
	}
}

// TestRequest: what Ollama is asked, the same options in each request.
func TestRequest(t *testing.T) {
	d := newDouble(t, said("nonsense"), said(valid))
	c := classifier(t, d, func(o *llm.Options) { o.Threads = 1 })
	if err := c.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := c.Classify(t.Context(), claim(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if d.loads != 1 {
		t.Errorf("the model was loaded %d times", d.loads)
	}
	for i, q := range d.asked() {
		if q.Stream == nil || *q.Stream || q.Truncate == nil || *q.Truncate || string(q.Think) != "false" || q.Model != "tiny" {
			t.Errorf("request %d: %s", i, q.body)
		}
		if q.Options["num_ctx"] != 4096.0 || q.Options["num_thread"] != 1.0 || q.Options["stop"] == nil {
			t.Errorf("options %v", q.Options)
		}
		if !strings.Contains(string(q.Format), `"enum":["linux","tech","politics","games","electronics","llm","none"]`) {
			t.Errorf("schema %s", q.Format)
		}
	}
	if got.Model != "tiny" || got.ModelDigest != "0123abcd" || got.PromptHash != c.PromptHash() || got.RawReply != valid || got.Stage != "llm" || len(got.Reasons) != 1 {
		t.Errorf("decision %+v", got)
	}
	other := classifier(t, d, func(o *llm.Options) { o.Descriptions = map[ledger.Direction]string{"linux": "penguins"} })
	if other.PromptHash() == c.PromptHash() {
		t.Error("another description of a direction does not change the prompt's hash")
	}
}

// TestCandidates: the model chooses among several candidates only.
func TestCandidates(t *testing.T) {
	for _, tt := range []struct {
		candidates []ledger.Direction
		enum       string
	}{
		{nil, `["linux","tech","politics","games","electronics","llm","none"]`},
		{[]ledger.Direction{"games"}, `["linux","tech","politics","games","electronics","llm","none"]`},
		{[]ledger.Direction{"tech", "linux"}, `["linux","tech","none"]`},
		{[]ledger.Direction{"tech", "gardens"}, `["linux","tech","politics","games","electronics","llm","none"]`},
	} {
		d := newDouble(t, said(valid))
		if _, err := classifier(t, d).Classify(t.Context(), claim(), tt.candidates); err != nil {
			t.Fatal(err)
		}
		if q := d.asked()[0]; !strings.Contains(string(q.Format), `"enum":`+tt.enum) {
			t.Errorf("candidates %v: schema %s", tt.candidates, q.Format)
		}
	}
	d := newDouble(t, said(strings.Replace(valid, "linux", "games", 1)))
	if _, err := classifier(t, d).Classify(t.Context(), claim(), []ledger.Direction{"tech", "linux"}); err == nil {
		t.Error("an answer that is no candidate was taken")
	}
}

func TestNoDirection(t *testing.T) {
	d := newDouble(t, said(strings.Replace(valid, `"linux"`, `"none"`, 1)))
	got, err := classifier(t, d).Classify(t.Context(), claim(), nil)
	if err != nil || got.Direction != "tech" || got.Relevance != 0 {
		t.Errorf("decision %+v, %v; want the source's direction with relevance 0", got, err)
	}
}

// TestOddSummary: a summary that looks like a tag is one all the same, and a long
// one is shortened, never to nothing.
func TestOddSummary(t *testing.T) {
	for spoken, want := range map[string]string{
		"#ядро":                          "#ядро",
		"#" + strings.Repeat("ядро", 15): "#" + strings.Repeat("ядро", 9) + "ядр",
		"Вышло ядро. " + strings.Repeat("Слово и ещё. ", 3): "Вышло ядро. Слово и ещё. Слово и ещё.",
	} {
		d := newDouble(t, said(strings.Replace(valid, "Вышло новое ядро Linux.", spoken, 1)))
		got, err := classifier(t, d, func(o *llm.Options) { o.MaxSummary = 40 }).Classify(t.Context(), claim(), nil)
		if err != nil || got.Summary != want {
			t.Errorf("said %q: summary %q, want %q (%v)", spoken, got.Summary, want, err)
		}
	}
}

func cause(err error) ledger.Cause {
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return e.Cause()
	}
	return ""
}

func TestServerAway(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + listener.Addr().String()
	listener.Close()
	c, err := llm.New(llm.Options{URL: url, Model: "tiny", Directions: ledger.DefaultDirections()})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if _, err := c.Classify(t.Context(), claim(), nil); cause(err) != ledger.CauseUnavailable {
			t.Fatalf("error %v", err)
		}
	}
	if err := c.Probe(t.Context()); cause(err) != ledger.CauseUnavailable {
		t.Errorf("probe: %v", err)
	}
}

// TestSlow: a server that shows signs of life is slow, one that shows none is
// away.
func TestSlow(t *testing.T) {
	short := func(o *llm.Options) { o.Timeout = 50 * time.Millisecond }
	d := newDouble(t, step{hang: true})
	if _, err := classifier(t, d, short).Classify(t.Context(), claim(), nil); cause(err) != ledger.CauseTimeout {
		t.Errorf("a slow answer: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := classifier(t, d).Classify(ctx, claim(), nil); !errors.Is(err, context.DeadlineExceeded) || cause(err) != "" {
		t.Errorf("the caller stopped: %v", err)
	}
}

// TestPoison: a post on which the server always breaks is not tried for ever; a
// post that met a server's bad moment is.
func TestPoison(t *testing.T) {
	crash := step{status: 500, body: `{"error":"model runner has unexpectedly stopped"}`}
	d := newDouble(t, crash)
	c := classifier(t, d)
	var causes []ledger.Cause
	for range 4 {
		_, err := c.Classify(t.Context(), claim(), nil)
		causes = append(causes, cause(err))
	}
	want := []ledger.Cause{ledger.CauseUnavailable, ledger.CauseUnavailable, ledger.CauseBadReply, ledger.CauseUnavailable}
	if !slices.Equal(causes, want) {
		t.Errorf("causes %v, want %v", causes, want)
	}

	d = newDouble(t, crash, said(valid), crash, said(valid), crash, said(valid))
	c = classifier(t, d)
	for i := range 6 {
		if _, err := c.Classify(t.Context(), claim(), nil); cause(err) == ledger.CauseBadReply || i%2 == 1 && err != nil {
			t.Errorf("attempt %d: %v", i, err)
		}
	}
}

func TestProbe(t *testing.T) {
	d := newDouble(t, said(valid))
	for _, api := range []llm.API{llm.Ollama, llm.OpenAI} {
		with := func(model string) func(*llm.Options) {
			return func(o *llm.Options) { o.API, o.Model = api, model }
		}
		for _, model := range []string{"tiny", "tiny:latest"} {
			if err := classifier(t, d, with(model)).Probe(t.Context()); err != nil {
				t.Errorf("%s, %s: %v", api, model, err)
			}
		}
		if err := classifier(t, d, with("nope")).Probe(t.Context()); cause(err) != ledger.CauseUnavailable || !strings.Contains(err.Error(), "nope") {
			t.Errorf("%s without the model: %v", api, err)
		}
	}
	d.gone = true
	if err := classifier(t, d).Probe(t.Context()); cause(err) != ledger.CauseUnavailable {
		t.Errorf("the model was removed: %v", err)
	}
	web := httptest.NewServer(nil) // answers 404 to everything
	defer web.Close()
	c, err := llm.New(llm.Options{URL: web.URL, Model: "tiny", Directions: ledger.DefaultDirections()})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Probe(t.Context()); cause(err) != ledger.CauseUnavailable || !strings.Contains(err.Error(), "address") {
		t.Errorf("another server: %v", err)
	}
}

func TestOptions(t *testing.T) {
	good := llm.Options{URL: "http://127.0.0.1:11434", Model: "m", Directions: []ledger.Direction{"a"}}
	for name, change := range map[string]func(*llm.Options){
		"no URL":         func(o *llm.Options) { o.URL = "" },
		"URL of a file":  func(o *llm.Options) { o.URL = "file:///etc/passwd" },
		"no model":       func(o *llm.Options) { o.Model = "" },
		"no directions":  func(o *llm.Options) { o.Directions = nil },
		"direction none": func(o *llm.Options) { o.Directions = []ledger.Direction{"none"} },
		"API":            func(o *llm.Options) { o.API = "grpc" },
		"think":          func(o *llm.Options) { o.Think = "hard" },
		"window":         func(o *llm.Options) { o.Context = 100 },
	} {
		o := good
		change(&o)
		if _, err := llm.New(o); !errors.Is(err, ledger.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := llm.New(good); err != nil {
		t.Error(err)
	}
}
