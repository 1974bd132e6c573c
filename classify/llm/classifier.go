package llm

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"math"
	"sync"
	"time"

	"vesti.nixg.ru/ledger"
)

const (
	// maxShortenings is how often a prompt that does not fit is halved.
	maxShortenings = 3
	// patience is how many times a post may meet trouble that is as likely the
	// server's before it counts as the post's.
	patience = 2
	// maxTroubled bounds the memory of posts that met trouble.
	maxTroubled = 1024
	// rawLimit is how many bytes of an answer are kept with a decision.
	rawLimit = 4 << 10
	// digestAge is how long a model's digest is taken for granted.
	digestAge = 5 * time.Minute
	// repairHeat is the temperature at which an answer is asked for again: at 0 it
	// would be the same.
	repairHeat = 0.4

	// confidence is what a checked answer is worth. The model's own certainty is
	// its relevance.
	confidence = 0.9

	stage = "llm"
)

// Classifier judges posts by a language model. It is safe for concurrent use;
// how many posts are judged at once is its caller's choice.
type Classifier struct {
	o        Options
	prompt   prompt
	protocol protocol

	mu       sync.Mutex
	digest   string
	looked   time.Time
	troubled map[ledger.PostNum]int
}

// New returns a classifier. It asks nothing of the server. It returns an error
// matching ledger.ErrInvalid for options that cannot work.
func New(o Options) (*Classifier, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Classifier{o: o, prompt: newPrompt(o), troubled: make(map[ledger.PostNum]int)}
	http := newClient(o.URL, o.Key)
	if o.API == Ollama {
		c.protocol = &ollama{client: http, o: o}
	} else {
		c.protocol = &openAI{client: http, o: o}
	}
	return c, nil
}

// Model returns the model's name.
func (c *Classifier) Model() string { return c.o.Model }

// PromptHash identifies the instructions, the schema and the options that an
// answer depends on.
func (c *Classifier) PromptHash() string { return c.prompt.hash }

// Probe checks that the server is there and has the model, and loads it, which
// may take as long as LoadTimeout. It is what a circuit breaker asks.
func (c *Classifier) Probe(ctx context.Context) error {
	digest, err := c.protocol.ready(ctx)
	if err != nil {
		return err
	}
	c.setDigest(digest)
	return nil
}

// Classify judges a claim's post. candidates are the directions that other
// stages think of: where there are two or more, the model chooses among them
// only. A post that belongs to no direction gets its source's, with relevance 0.
// Every error but ctx's own is an *Error.
func (c *Classifier) Classify(ctx context.Context, claim ledger.Claim, candidates []ledger.Direction) (ledger.Classification, error) {
	started := c.o.Now()
	allowed := allowedOf(c.o.Directions, candidates)
	r, raw, err := c.ask(ctx, &claim.Item, allowed)
	if err = c.judgeTrouble(ctx, claim.Post, err); err != nil {
		return ledger.Classification{}, err
	}
	d := ledger.Classification{
		Direction: r.direction, Relevance: round(r.relevance), Interest: round(r.interest), Summary: r.summary, Confidence: confidence,
		Stage: stage, PromptHash: c.prompt.hash, Model: c.o.Model, ModelDigest: c.currentDigest(ctx),
		RawReply: ledger.CutText(raw, rawLimit), Duration: c.o.Now().Sub(started),
	}
	reason := ledger.Reason{Stage: stage, Rule: c.o.Model, Note: r.reason, Weight: confidence}
	if r.direction == "" {
		d.Direction, d.Relevance = claim.Item.Direction, 0
		reason.Note = "belongs to no direction: the source's direction. " + r.reason
	}
	d.Reasons = []ledger.Reason{reason}
	return d, nil
}

// ask asks until there is an answer that holds: it shortens a prompt that is
// too long and asks once more for an answer that was wrong.
func (c *Classifier) ask(ctx context.Context, item *ledger.Item, allowed []ledger.Direction) (r reply, raw string, err error) {
	limit := c.o.MaxPrompt
	for range maxShortenings {
		var long tooLong
		if r, raw, err = c.askTwice(ctx, item, allowed, limit); !errors.As(err, &long) {
			return r, raw, err
		}
		limit = c.frame() + (limit-c.frame())/2
	}
	return r, raw, err
}

// frame is the size of a prompt without its post, in characters.
func (c *Classifier) frame() int { return len(c.prompt.system) + len(question("", "", "", "")) }

func (c *Classifier) askTwice(ctx context.Context, item *ledger.Item, allowed []ledger.Direction, limit int) (reply, string, error) {
	nonce := rand.Text()[:12]
	check := check{allowed: allowed, item: item, nonce: nonce, system: c.prompt.system, maxSummary: c.o.MaxSummary}
	a := ask{
		messages: c.prompt.messages(item, allowed, nonce, limit), schema: schema(allowed, c.o.MaxSummary),
		reply: c.o.Reply, seed: c.o.Seed, heat: c.o.Temperature,
	}
	said, err := c.once(ctx, a)
	if err != nil {
		return reply{}, "", err
	}
	r, wrong := check.parse(said)
	if wrong == nil || !repairable(said, wrong) {
		return r, said.content, wrong
	}
	c.o.Logger.Debug("asking again for a valid answer", slog.String("model", c.o.Model), slog.Any("error", wrong))
	if said.reason == "length" {
		a.reply *= 2
	}
	a.seed++
	a.heat = max(a.heat, repairHeat)
	a.messages = append(a.messages,
		message{Role: "assistant", Content: firstRunes(disarm(said.content), errorText)},
		message{Role: "user", Content: "That was no valid answer: " + disarm(wrong.Error()) + ". Answer again with the JSON object only."})
	if said, err = c.once(ctx, a); err != nil {
		return reply{}, "", err
	}
	r, wrong = check.parse(said)
	return r, said.content, wrong
}

// repairable reports whether asking again may help. A prompt that was clipped
// is shortened instead, and what said nothing until its limit will do so again.
func repairable(a answer, wrong error) bool {
	var e *Error
	if _, ok := errors.AsType[tooLong](wrong); ok {
		return false
	}
	return !(errors.As(wrong, &e) && e.cause == ledger.CauseEmptyReply && (a.reason == "length" || a.thinking))
}

// once asks once, within Timeout. A server that is too slow for an answer and
// for a sign of life is away.
func (c *Classifier) once(ctx context.Context, a ask) (answer, error) {
	limited, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	said, err := c.protocol.chat(limited, a)
	var e *Error
	if errors.As(err, &e) && e.cause == ledger.CauseTimeout {
		if silent := c.protocol.alive(ctx); silent != nil && ctx.Err() == nil {
			return answer{}, &Error{cause: ledger.CauseUnavailable, text: "the server is silent", err: silent}
		}
	}
	if ctx.Err() != nil {
		return answer{}, ctx.Err()
	}
	return said, err
}

// judgeTrouble counts the trouble that a post meets. Trouble that may be the
// server's is taken for that at first; with a post that always meets it, it is
// the post's.
func (c *Classifier) judgeTrouble(ctx context.Context, post ledger.PostNum, err error) error {
	var t serverTrouble
	c.mu.Lock()
	defer c.mu.Unlock()
	if !errors.As(err, &t) {
		if ctx.Err() == nil {
			delete(c.troubled, post)
		}
		return err
	}
	if len(c.troubled) >= maxTroubled {
		clear(c.troubled)
	}
	c.troubled[post]++
	if c.troubled[post] <= patience {
		return err
	}
	delete(c.troubled, post)
	return &Error{cause: ledger.CauseBadReply, text: "the server fails again and again on this post", err: t.of}
}

func (c *Classifier) setDigest(digest string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.digest, c.looked = digest, c.o.Now()
}

// currentDigest asks again for a digest that has grown old: a model can be
// pulled anew under its name. The one known stands where the server tells none.
func (c *Classifier) currentDigest(ctx context.Context) string {
	c.mu.Lock()
	digest, old := c.digest, c.o.Now().Sub(c.looked) > digestAge
	c.mu.Unlock()
	p, ok := c.protocol.(*ollama)
	if !old || !ok {
		return digest
	}
	fresh, err := p.digest(ctx)
	if err != nil {
		return digest
	}
	c.setDigest(fresh)
	return fresh
}

// round keeps three digits, so that equal decisions are equal when compared.
func round(f float64) float64 { return math.Round(f*1000) / 1000 }
