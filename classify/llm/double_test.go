package llm_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"vesti.nixg.ru/classify/llm"
	"vesti.nixg.ru/ledger"
)

// step is one answer of the double to a question for a chat.
type step struct {
	status int    // 0 means 200
	body   string // as the server writes it
	hang   bool   // no answer until the client goes away
	cut    bool   // the connection breaks in the middle
	drip   bool   // a blank now and then, until the client goes away
	after  string // Retry-After
}

// double is a server that plays back what real servers were seen to answer. When
// its script is over it repeats the last step.
type double struct {
	*httptest.Server

	mu       sync.Mutex
	script   []step
	requests []request
	loads    int  // questions without messages: the model is loaded
	gone     bool // the model was removed
}

// request is a question as it arrived, of either API.
type request struct {
	path string
	body string

	Model    string
	Messages []struct{ Role, Content string }
	Stream   *bool
	Format   json.RawMessage
	Options  map[string]any
	Think    json.RawMessage
	Truncate *bool

	ResponseFormat struct {
		JSONSchema struct{ Schema json.RawMessage } `json:"json_schema"`
	} `json:"response_format"`
	Reasoning string `json:"reasoning_effort"`
}

func newDouble(t testing.TB, script ...step) *double {
	t.Helper()
	d := &double{script: script}
	d.Server = httptest.NewServer(d)
	t.Cleanup(func() {
		d.CloseClientConnections()
		d.Close()
	})
	return d
}

func (d *double) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/api/version":
		fmt.Fprint(w, `{"version":"0.17.4"}`)
	case "/api/tags":
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.gone {
			fmt.Fprint(w, `{"models":[]}`)
			return
		}
		fmt.Fprint(w, `{"models":[{"name":"other:7b","digest":"aa"},{"name":"tiny:latest","model":"tiny:latest","digest":"0123abcd"}]}`)
	case "/v1/models":
		fmt.Fprint(w, `{"object":"list","data":[{"id":"tiny:latest","object":"model"}]}`)
	case "/api/chat", "/v1/chat/completions":
		d.chat(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (d *double) chat(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	q := request{path: r.URL.Path, body: string(raw)}
	if err != nil || json.Unmarshal(raw, &q) != nil {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	d.mu.Lock()
	if len(q.Messages) == 0 {
		d.loads++
		d.mu.Unlock()
		fmt.Fprint(w, `{"model":"tiny","message":{"role":"assistant","content":""},"done":true,"done_reason":"load"}`)
		return
	}
	s := d.script[min(len(d.requests), len(d.script)-1)]
	d.requests = append(d.requests, q)
	d.mu.Unlock()
	switch {
	case s.hang:
		<-r.Context().Done()
	case s.cut:
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, `{"model":"tiny","mess`)
		panic(http.ErrAbortHandler)
	case s.drip:
		for r.Context().Err() == nil {
			fmt.Fprint(w, " ")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(5 * time.Millisecond)
		}
	default:
		if s.after != "" {
			w.Header().Set("Retry-After", s.after)
		}
		w.WriteHeader(max(s.status, http.StatusOK))
		fmt.Fprint(w, s.body)
	}
}

func (d *double) asked() []request {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]request(nil), d.requests...)
}

// said is a whole answer of Ollama's with this content.
func said(content string) step { return saidWith(content, true, "stop", "") }

func saidWith(content string, done bool, reason, thinking string) step {
	b, err := json.Marshal(map[string]any{
		"model":   "tiny",
		"message": map[string]any{"role": "assistant", "content": content, "thinking": thinking},
		"done":    done, "done_reason": reason, "prompt_eval_count": 200, "eval_count": 60,
	})
	if err != nil {
		panic(err)
	}
	return step{body: string(b)}
}

// completed is the same of an OpenAI-compatible server.
func completed(content, finish, reasoning string) step {
	var reason any
	if finish != "" {
		reason = finish
	}
	b, err := json.Marshal(map[string]any{
		"choices": []any{map[string]any{
			"index": 0, "finish_reason": reason, "message": map[string]any{"role": "assistant", "content": content, "reasoning": reasoning},
		}},
	})
	if err != nil {
		panic(err)
	}
	return step{body: string(b)}
}

// valid is an answer that holds for the test's post.
const valid = `{"direction":"linux","relevance":93,"interest":70,"summary":"Вышло новое ядро Linux.","reason":"ядро"}`

func claim() ledger.Claim {
	return ledger.Claim{Post: 7, Stage: ledger.StageLLM, Item: ledger.Item{
		Title: "Ядро", Text: "Вышло ядро Linux 6.12. В нём много нового: https://kernel.org/new", Direction: "tech",
	}}
}

func classifier(t testing.TB, d *double, change ...func(*llm.Options)) *llm.Classifier {
	t.Helper()
	o := llm.Options{URL: d.URL, Model: "tiny", Directions: ledger.DefaultDirections(), Timeout: 5 * time.Second}
	for _, c := range change {
		c(&o)
	}
	if o.API == llm.OpenAI {
		o.URL += "/v1"
	}
	c, err := llm.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func openAI(o *llm.Options) { o.API = llm.OpenAI }

// whole is all that the model was told.
func (q request) whole() string {
	var b strings.Builder
	for _, m := range q.Messages {
		b.WriteString(m.Content)
		b.WriteByte('\n')
	}
	return b.String()
}
