package llm_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"vesti.nixg.ru/classify"
	"vesti.nixg.ru/classify/keyword"
	"vesti.nixg.ru/classify/llm"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
	"vesti.nixg.ru/ledger/ledgertest"
	"vesti.nixg.ru/ledger/ledgertest/cases"
)

// caseInput is ollama.json of a case.
type caseInput struct {
	Config struct {
		Labels    []string
		Keywords  map[string][]string
		MaxPrompt int `json:"max_prompt_chars"`
	}
	Article struct {
		Title, Text, URL string
		Generator        *struct {
			Repeat string
			Times  int
		} `json:"text_generator"`
	}
	Replies []struct {
		Status int
		Body   json.RawMessage
		Error  string
		Hang   int `json:"hang_seconds"`
	}
}

// caseExpect are the expectations that a case on a language model may have.
type caseExpect struct {
	FinalLabels   []string `json:"final_labels"`
	Subset        []string `json:"final_labels_subset_of"`
	Candidates    []string `json:"labels_limited_to_keyword_candidates"`
	Attempts      int      `json:"attempts"`
	AsksJSON      bool     `json:"request_asks_json"`
	Fenced        bool     `json:"article_text_fenced_as_data"`
	NoExtra       bool     `json:"no_extra_fields_stored"`
	NoSystem      bool     `json:"system_prompt_not_in_output"`
	MaxPrompt     string   `json:"prompt_max_chars"`
	Instructions  bool     `json:"instructions_survive"`
	CharacterCut  bool     `json:"cut_on_character_boundary"`
	CrawlGoesOn   bool     `json:"crawl_continues"`
	SearchBefore  bool     `json:"article_searchable_before_classification"`
	States        []string `json:"state_sequence"`
	RetriedLater  bool     `json:"retried_later"`
	QueueBounded  bool     `json:"queue_bounded"`
	CountFailures int      `json:"metrics_count_failures"`
}

// TestPublicCases runs the cases on language models through the whole way: a
// ledger, a pool with its cascade, and a server that answers as scripted.
func TestPublicCases(t *testing.T) {
	cases.Run(t, cases.LLM, func(t *testing.T, c cases.Case) error {
		var name struct{ File string }
		var in caseInput
		var want caseExpect
		c.Decode(t, c.Input, &name)
		c.Decode(t, c.File(t, name.File), &in)
		c.Decode(t, c.Expect, &want)
		if g := in.Article.Generator; g != nil {
			in.Article.Text = strings.Repeat(g.Repeat, g.Times)
		}
		return newCaseRun(t, in).check(t, in, want)
	})
}

// caseRun is what happened to a case's article.
type caseRun struct {
	double   *double
	post     ledger.Post
	states   []string
	refused  atomic.Int32 // questions that found no server
	failures float64
	prompt   int
	ended    classify.Summary
}

func newCaseRun(t *testing.T, in caseInput) *caseRun {
	t.Helper()
	r := &caseRun{double: newDouble(t, caseScript(in)...)}
	l := ledgertest.Open(t, ledgertest.Retry(9, time.Millisecond, time.Millisecond))
	reg := prometheus.NewRegistry()
	model := classifier(t, r.double, func(o *llm.Options) {
		o.Directions, o.MaxPrompt, o.Timeout = nil, in.Config.MaxPrompt, 300*time.Millisecond
		for _, label := range in.Config.Labels {
			o.Directions = append(o.Directions, ledger.Direction(label))
		}
		o.URL = refuseFirst(t, r, in)
	})
	p, err := classify.New(classify.Options{
		Queue: l, Workers: 2, LLMWorkers: 1, Registerer: reg,
		Breaker: classify.NewBreaker(classify.BreakerOptions{Pause: time.Millisecond, Limit: 5 * time.Millisecond}),
		Decider: classify.NewCascade(classify.CascadeOptions{Keyword: keyword.New(caseRules(t, in)), LLM: model, KeywordSettles: 2}),
	})
	if err != nil {
		t.Fatal(err)
	}
	item := ledger.Item{Source: "s", Key: "s\x1f1", Title: in.Article.Title, Text: in.Article.Text, URL: in.Article.URL}
	num := appendOne(t, l, item)
	r.observe(t, l, num)
	if len(r.states) == 1 { // the crawl goes on while nothing was judged yet
		appendOne(t, l, ledger.Item{Source: "s", Key: "s\x1f2", Text: item.Text + " Другое."})
	}
	for deadline := time.Now().Add(20 * time.Second); r.states[len(r.states)-1] != "classified" && time.Now().Before(deadline); {
		if r.ended, err = p.Drain(t.Context(), 1, 1, nil); err != nil {
			t.Fatal(err)
		}
		r.observe(t, l, num)
	}
	if r.post, err = l.Post(t.Context(), num); err != nil {
		t.Fatal(err)
	}
	r.failures = failures(t, reg)
	r.prompt = in.Config.MaxPrompt
	return r
}

func appendOne(t *testing.T, l *badgerlog.Log, item ledger.Item) ledger.PostNum {
	t.Helper()
	appended, err := l.Append(t.Context(), []ledger.Item{item})
	if err != nil {
		t.Fatal(err)
	}
	return appended[0].Post
}

func (r *caseRun) observe(t *testing.T, l *badgerlog.Log, num ledger.PostNum) {
	t.Helper()
	p, err := l.Post(t.Context(), num)
	if err != nil {
		t.Fatal(err)
	}
	if s := p.State.Status.String(); len(r.states) == 0 || r.states[len(r.states)-1] != s {
		r.states = append(r.states, s)
	}
}

func failures(t *testing.T, reg *prometheus.Registry) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		if f.GetName() == "vesti_classify_failures_total" {
			for _, m := range f.GetMetric() {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

var labels = regexp.MustCompile(`"labels"\s*:\s*\[\s*("(?:[^"\\]|\\.)*")[^\]]*\]`)

// caseScript turns a case's answers into those of the API that vesti uses: what
// the case calls labels is vesti's direction, and vesti wants more beside it.
func caseScript(in caseInput) []step {
	var script []step
	for _, reply := range in.Replies {
		var body struct {
			Response, Thinking string
			Done               *bool
			Reason             string `json:"done_reason"`
		}
		switch {
		case reply.Error != "":
			continue // see refuseFirst
		case reply.Hang > 0:
			script = append(script, step{hang: true})
			continue
		case reply.Status != 0 && reply.Status != http.StatusOK || json.Unmarshal(reply.Body, &body) != nil:
			script = append(script, step{status: reply.Status, body: string(reply.Body)})
			continue
		}
		content := labels.ReplaceAllString(body.Response, `"direction": $1, "relevance": 80, "interest": 50, "summary": "Сбой на подстанции."`)
		script = append(script, saidWith(content, body.Done == nil || *body.Done, body.Reason, body.Thinking))
	}
	if len(script) == 0 {
		script = []step{{status: http.StatusServiceUnavailable}}
	}
	return script
}

// refuseFirst is the double's address, behind a gate that plays the refused
// connections at the beginning of a case's script.
func refuseFirst(t *testing.T, r *caseRun, in caseInput) string {
	t.Helper()
	refusals := 0
	for _, reply := range in.Replies {
		if reply.Error == "" {
			break
		}
		refusals++
	}
	gate := newGate(t, r.double.Listener.Addr().String(), refusals, &r.refused)
	return "http://" + gate
}

func caseRules(t *testing.T, in caseInput) *keyword.Rules {
	t.Helper()
	var b strings.Builder
	b.WriteString("version: 1\ndirections:\n")
	for i, label := range in.Config.Labels {
		var list []string
		for word, of := range in.Config.Keywords {
			if slices.Contains(of, label) {
				list = append(list, word)
			}
		}
		if len(list) > 0 {
			fmt.Fprintf(&b, "  %s:\n    - rule: r%d\n      keywords: [%s]\n", label, i, strings.Join(list, ", "))
		}
	}
	var directions []ledger.Direction
	for _, label := range in.Config.Labels {
		directions = append(directions, ledger.Direction(label))
	}
	rules, err := keyword.Parse("case", []byte(b.String()), directions)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

func (r *caseRun) check(t *testing.T, in caseInput, want caseExpect) error {
	t.Helper()
	var errs []error
	must := func(wanted, ok bool, format string, args ...any) {
		if wanted && !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	asked := r.double.asked()
	decision := r.post.Decision
	label := string(decision.Direction)
	stored, err := json.Marshal(decision)
	if err != nil {
		t.Fatal(err)
	}
	must(want.FinalLabels != nil, slices.Contains(want.FinalLabels, label), "direction %q, want %q", label, want.FinalLabels)
	must(want.Subset != nil, slices.Contains(want.Subset, label), "direction %q is not among %q", label, want.Subset)
	must(want.Candidates != nil, slices.Contains(want.Candidates, label), "direction %q is no candidate", label)
	must(want.Attempts > 0, len(asked) == want.Attempts, "asked %d times, want %d", len(asked), want.Attempts)
	decision.RawReply = "" // kept as it came, for the editor to see; nothing reads it
	parsed, err := json.Marshal(decision)
	if err != nil {
		t.Fatal(err)
	}
	must(want.NoExtra, !strings.Contains(string(parsed), "as ordered"), "stored: %s", parsed)
	must(want.NoSystem, !strings.Contains(string(stored), "stands between two lines"), "stored: %s", stored)
	for i, q := range asked {
		must(want.AsksJSON, strings.Contains(string(q.Format), `"enum"`), "request %d has no schema: %s", i, q.Format)
		must(want.Candidates != nil, enumOf(q) == strings.Join(append(want.Candidates, "none"), ","), "request %d lets choose among %s", i, enumOf(q))
		must(want.Fenced, fenced(q, in.Article.Text), "request %d does not fence the article: %s", i, q.whole())
		must(want.MaxPrompt != "", r.prompt > 0 && utf8.RuneCountInString(q.whole())-len(q.Messages) <= r.prompt, "request %d has %d characters", i, utf8.RuneCountInString(q.whole()))
		must(want.Instructions, strings.Contains(q.whole(), "You sort news posts") && strings.Contains(q.whole(), "Answer with the JSON object"), "request %d lost its instructions", i)
		must(want.CharacterCut, utf8.ValidString(q.whole()) && !strings.ContainsRune(q.whole(), utf8.RuneError), "request %d has half a character", i)
	}
	must(want.States != nil, slices.Equal(r.states, want.States), "states %q, want %q", r.states, want.States)
	must(want.CrawlGoesOn || want.SearchBefore, r.states[0] == "pending", "the post was not in the ledger before it was judged")
	must(want.RetriedLater, len(asked)+int(r.refused.Load()) > 1, "asked once")
	must(want.QueueBounded, r.ended.Claimed <= 1, "more in hand than was asked for: %+v", r.ended)
	must(want.CountFailures > 0, r.failures == float64(want.CountFailures), "%v failures counted, want %d", r.failures, want.CountFailures)
	return errors.Join(errs...)
}

func enumOf(q request) string {
	var schema struct {
		Properties struct {
			Direction struct{ Enum []string }
		}
	}
	if json.Unmarshal(q.Format, &schema) != nil {
		return ""
	}
	return strings.Join(schema.Properties.Direction.Enum, ",")
}

// fenced reports whether what the model was told of the text stands between two
// lines with one code, and nowhere else.
func fenced(q request, text string) bool {
	fence := regexp.MustCompile(`(?s)\n-----([A-Z0-9]{12})-----\n(.*)\n-----([A-Z0-9]{12})-----\n`)
	for _, m := range q.Messages {
		found := fence.FindStringSubmatch(m.Content)
		outside := m.Content
		if m.Role == "user" && found != nil {
			if found[1] != found[3] || strings.Contains(found[2], found[1]) {
				return false
			}
			outside = strings.Replace(m.Content, found[2], "", 1)
		}
		first, _, _ := strings.Cut(text, ".")
		if strings.Contains(outside, first) {
			return false
		}
	}
	return true
}
