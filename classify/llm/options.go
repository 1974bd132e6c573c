package llm

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"vesti.nixg.ru/ledger"
)

// API is the protocol that a server speaks.
type API string

// The protocols.
const (
	Ollama API = "ollama" // Ollama's own: /api/chat
	OpenAI API = "openai" // OpenAI-compatible: /v1/chat/completions
)

// Think is what is asked of models that can think before they answer.
type Think string

// What may be asked. Models that cannot think take ThinkOff and ThinkUnset.
const (
	ThinkOff    Think = "off"   // the zero value means this with Ollama
	ThinkUnset  Think = "unset" // nothing is said; the zero value means this with OpenAI
	ThinkOn     Think = "on"
	ThinkLow    Think = "low" // levels, for models that have them
	ThinkMedium Think = "medium"
	ThinkHigh   Think = "high"
)

// Options configure a Classifier. URL, Model and Directions are required; the
// zero value of each other field is its default.
type Options struct {
	API   API    // "" means Ollama
	URL   string // of the server; for OpenAI with its /v1
	Model string
	Key   string // sent as a bearer token; "" sends none

	Directions []ledger.Direction
	// Descriptions tell the model what a direction is about; those that vesti
	// brings are taken for directions that have none here.
	Descriptions map[ledger.Direction]string

	Context     int     // the model's window, in tokens; 0 means 4096
	Reply       int     // the longest answer, in tokens; 0 means 512
	Threads     int     // of the server; 0 leaves it to the server
	Temperature float64 // 0 answers the same each time
	Seed        int     // 0 means 1
	Think       Think
	KeepAlive   time.Duration // how long the server keeps the model; 0 means 30 min
	// MaxPrompt bounds the whole prompt, in characters; 0 derives it from Context.
	MaxPrompt int
	// MaxSummary bounds the summary, in characters; 0 means 300.
	MaxSummary int

	Timeout     time.Duration // for one answer; 0 means 3 min
	LoadTimeout time.Duration // for the loading of the model; 0 means 5 min

	Logger *slog.Logger     // nil logs nothing
	Now    func() time.Time // nil means time.Now
}

func (o Options) withDefaults() (Options, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return o, fmt.Errorf("%w: URL of the language model's server %q: want http://host:port", ledger.ErrInvalid, o.URL)
	}
	o.URL = strings.TrimRight(o.URL, "/")
	o.API = cmp.Or(o.API, Ollama)
	if o.API == OpenAI { // many of these servers refuse to hear of it
		o.Think = cmp.Or(o.Think, ThinkUnset)
	}
	o.Think = cmp.Or(o.Think, ThinkOff)
	switch {
	case o.API != Ollama && o.API != OpenAI:
		return o, fmt.Errorf("%w: API %q: want %s or %s", ledger.ErrInvalid, o.API, Ollama, OpenAI)
	case o.Model == "":
		return o, fmt.Errorf("%w: no language model named", ledger.ErrInvalid)
	case len(o.Directions) == 0:
		return o, fmt.Errorf("%w: no directions to choose from", ledger.ErrInvalid)
	case slices.Contains(o.Directions, none):
		return o, fmt.Errorf("%w: direction %q: the word stands for no direction", ledger.ErrInvalid, none)
	case !slices.Contains([]Think{ThinkOff, ThinkUnset, ThinkOn, ThinkLow, ThinkMedium, ThinkHigh}, o.Think):
		return o, fmt.Errorf("%w: think %q: want off, unset, on, low, medium or high", ledger.ErrInvalid, o.Think)
	}
	o.Context = cmp.Or(o.Context, 4096)
	o.Reply = cmp.Or(o.Reply, 512)
	o.Seed = cmp.Or(o.Seed, 1)
	o.KeepAlive = cmp.Or(o.KeepAlive, 30*time.Minute)
	o.MaxSummary = cmp.Or(o.MaxSummary, 300)
	o.Timeout = cmp.Or(o.Timeout, 3*time.Minute)
	o.LoadTimeout = cmp.Or(o.LoadTimeout, 5*time.Minute)
	if o.MaxPrompt == 0 {
		o.MaxPrompt = (o.Context - o.Reply) * charactersPerToken
	}
	if o.Context <= o.Reply {
		return o, fmt.Errorf("%w: a window of %d tokens has no room for a prompt and an answer of %d", ledger.ErrInvalid, o.Context, o.Reply)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o, nil
}

// charactersPerToken is a careful guess for Russian text, which tokenisers made
// for English cut small.
const charactersPerToken = 2
