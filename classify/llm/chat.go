package llm

import (
	"context"
	"encoding/json"
	"strings"

	"vesti.nixg.ru/ledger"
)

// message is one turn of a chat.
type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// ask is one question to a model.
type ask struct {
	messages []message
	schema   json.RawMessage
	reply    int // tokens
	seed     int
	heat     float64
}

// answer is what a model said.
type answer struct {
	content  string
	thinking bool // it thought, and said nothing aloud
	done     bool
	reason   string // why it ended
	clipped  bool   // the server cut the prompt
}

// protocol is how a kind of server is spoken to.
type protocol interface {
	// chat asks once.
	chat(ctx context.Context, a ask) (answer, error)
	// ready checks that the server has the model and loads it. It returns the
	// model's digest, "" where the server tells none.
	ready(ctx context.Context) (digest string, err error)
	// alive asks the server for a sign of life.
	alive(ctx context.Context) error
}

// stop ends an answer that has begun to produce blank lines, which a grammar
// for JSON lets run on for ever. Within a JSON string there are no line ends, so
// that it cannot cut one; the stop words of a model's template could.
const stop = "\n\n\n\n"

// ollama speaks Ollama's own protocol.
type ollama struct {
	*client
	o Options
}

type ollamaRequest struct {
	Model     string          `json:"model"`
	Messages  []message       `json:"messages"`
	Stream    bool            `json:"stream"`
	Format    json.RawMessage `json:"format,omitempty"`
	Options   ollamaOptions   `json:"options"`
	KeepAlive string          `json:"keep_alive"`
	Think     any             `json:"think,omitempty"`
	Truncate  bool            `json:"truncate"`
	Shift     bool            `json:"shift"`
}

type ollamaOptions struct {
	// NumCtx is the same in each request: another one makes the server load the
	// model again.
	NumCtx      int      `json:"num_ctx"`
	NumPredict  int      `json:"num_predict"`
	NumThread   int      `json:"num_thread,omitempty"`
	Temperature float64  `json:"temperature"`
	Seed        int      `json:"seed"`
	Stop        []string `json:"stop"`
}

func (p *ollama) request(a ask) ollamaRequest {
	return ollamaRequest{
		Model: p.o.Model, Messages: a.messages, Format: a.schema, KeepAlive: p.o.KeepAlive.String(), Think: p.think(),
		Options: ollamaOptions{
			NumCtx: p.o.Context, NumPredict: a.reply, NumThread: p.o.Threads, Temperature: a.heat, Seed: a.seed, Stop: []string{stop},
		},
	}
}

func (p *ollama) think() any {
	switch p.o.Think {
	case ThinkUnset:
		return nil
	case ThinkOn:
		return true
	case ThinkLow, ThinkMedium, ThinkHigh:
		return string(p.o.Think)
	case ThinkOff:
		return false
	default:
		return false
	}
}

func (p *ollama) chat(ctx context.Context, a ask) (answer, error) {
	var r struct {
		Message struct {
			Content  string `json:"content"`
			Thinking string `json:"thinking"`
		} `json:"message"`
		Done            bool   `json:"done"`
		DoneReason      string `json:"done_reason"`
		PromptEvalCount int    `json:"prompt_eval_count"`
	}
	if err := p.post(ctx, "/api/chat", p.request(a), &r); err != nil {
		return answer{}, err
	}
	return answer{
		content: r.Message.Content, thinking: r.Message.Thinking != "", done: r.Done, reason: r.DoneReason,
		clipped: r.PromptEvalCount >= p.o.Context,
	}, nil
}

func (p *ollama) alive(ctx context.Context) error {
	var v struct{ Version string }
	return p.get(ctx, "/api/version", &v)
}

func (p *ollama) ready(ctx context.Context) (string, error) {
	if err := p.alive(ctx); err != nil {
		return "", err
	}
	digest, err := p.digest(ctx)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, p.o.LoadTimeout)
	defer cancel()
	load := p.request(ask{messages: []message{}, reply: p.o.Reply, seed: p.o.Seed, heat: p.o.Temperature})
	var r struct{ Done bool }
	return digest, p.post(ctx, "/api/chat", load, &r)
}

// digest finds the model among those that the server has.
func (p *ollama) digest(ctx context.Context) (string, error) {
	var tags struct {
		Models []struct{ Name, Model, Digest string }
	}
	if err := p.get(ctx, "/api/tags", &tags); err != nil {
		return "", err
	}
	for _, m := range tags.Models {
		if sameModel(m.Name, p.o.Model) || sameModel(m.Model, p.o.Model) {
			return m.Digest, nil
		}
	}
	return "", fail(ledger.CauseUnavailable, "model %q is not installed: ollama pull %s", p.o.Model, p.o.Model)
}

func sameModel(a, b string) bool {
	return strings.EqualFold(strings.TrimSuffix(a, ":latest"), strings.TrimSuffix(b, ":latest"))
}

// openAI speaks the protocol of OpenAI-compatible servers.
type openAI struct {
	*client
	o Options
}

type openAIRequest struct {
	Model          string         `json:"model"`
	Messages       []message      `json:"messages"`
	Stream         bool           `json:"stream"`
	MaxTokens      int            `json:"max_tokens"`
	Temperature    float64        `json:"temperature"`
	Seed           int            `json:"seed"`
	Stop           []string       `json:"stop"`
	Reasoning      string         `json:"reasoning_effort,omitempty"`
	ResponseFormat responseFormat `json:"response_format"`
}

type responseFormat struct {
	Type       string     `json:"type"`
	JSONSchema jsonSchema `json:"json_schema"`
}

type jsonSchema struct {
	Name   string          `json:"name"`
	Strict bool            `json:"strict"`
	Schema json.RawMessage `json:"schema"`
}

func (p *openAI) chat(ctx context.Context, a ask) (answer, error) {
	var r struct {
		Choices []struct {
			Message struct {
				Content          string `json:"content"`
				Reasoning        string `json:"reasoning"`
				ReasoningContent string `json:"reasoning_content"`
			} `json:"message"`
			FinishReason string `json:"finish_reason"`
		} `json:"choices"`
	}
	err := p.post(ctx, "/chat/completions", openAIRequest{
		Model: p.o.Model, Messages: a.messages, MaxTokens: a.reply, Temperature: a.heat, Seed: a.seed, Stop: []string{stop},
		Reasoning: p.reasoning(),
		ResponseFormat: responseFormat{
			Type: "json_schema", JSONSchema: jsonSchema{Name: "decision", Strict: true, Schema: a.schema},
		},
	}, &r)
	if err != nil || len(r.Choices) == 0 {
		return answer{done: true, reason: "stop"}, err
	}
	c := r.Choices[0]
	return answer{
		content: c.Message.Content, thinking: c.Message.Reasoning+c.Message.ReasoningContent != "",
		done: c.FinishReason != "", reason: c.FinishReason,
	}, nil
}

func (p *openAI) reasoning() string {
	switch p.o.Think {
	case ThinkLow, ThinkMedium, ThinkHigh:
		return string(p.o.Think)
	case ThinkOn:
		return string(ThinkMedium)
	case ThinkOff:
		return "none"
	case ThinkUnset:
		return ""
	default:
		return ""
	}
}

func (p *openAI) alive(ctx context.Context) error {
	_, err := p.models(ctx)
	return err
}

func (p *openAI) ready(ctx context.Context) (string, error) {
	models, err := p.models(ctx)
	if err != nil {
		return "", err
	}
	if len(models) == 0 {
		return "", nil // it lists none: asking will tell
	}
	for _, m := range models {
		if sameModel(m, p.o.Model) {
			return "", nil
		}
	}
	return "", fail(ledger.CauseUnavailable, "the server has no model %q", p.o.Model)
}

func (p *openAI) models(ctx context.Context) ([]string, error) {
	var list struct {
		Data []struct{ ID string }
	}
	if err := p.get(ctx, "/models", &list); err != nil {
		return nil, err
	}
	names := make([]string, len(list.Data))
	for i, m := range list.Data {
		names[i] = m.ID
	}
	return names, nil
}
