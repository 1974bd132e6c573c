package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"vesti.nixg.ru/ledger"
)

const (
	maxReply    = 1 << 20 // bytes of an answer
	dialTimeout = 5 * time.Second
	// pingTimeout is for questions that need no model.
	pingTimeout = 5 * time.Second
	errorText   = 300 // characters of a server's error that are kept
	// maxRetryAfter bounds what a server may ask for in Retry-After, in seconds.
	maxRetryAfter = 3600
)

// client is HTTP to one server: JSON in, JSON out, every failure typed.
type client struct {
	url, key string
	http     *http.Client
}

func newClient(url, key string) *client {
	return &client{url: url, key: key, http: &http.Client{
		// No redirects: the server is one that the operator named.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
			TLSHandshakeTimeout: dialTimeout,
			MaxIdleConnsPerHost: 8,
			IdleConnTimeout:     time.Minute,
			ForceAttemptHTTP2:   true,
		},
	}}
}

// post sends in and decodes the answer into out.
func (c *client) post(ctx context.Context, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("encode the request: %w", err)
	}
	return c.do(ctx, http.MethodPost, path, body, out)
}

// get asks for path within pingTimeout and decodes the answer into out.
func (c *client) get(ctx context.Context, path string, out any) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	return c.do(ctx, http.MethodGet, path, nil, out)
}

func (c *client) do(ctx context.Context, method, path string, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make the request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return transportError(ctx, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	switch {
	case err != nil:
		return transportError(ctx, err)
	case resp.StatusCode != http.StatusOK:
		return waiting(statusError(resp.StatusCode, errorOf(answer)), resp.Header)
	case len(answer) > maxReply:
		return fail(ledger.CauseBadReply, "the answer has more than %d bytes", maxReply)
	}
	// Ollama ends a stream that broke with an error in the last line.
	if text := errorOf(lastLine(answer)); text != "" {
		return trouble("the server broke off: %s", text)
	}
	if err := json.Unmarshal(answer, out); err != nil {
		if streamed(resp.Header, answer) {
			return fail(ledger.CauseUnavailable, "the server at %s streams its answer, which it was asked not to", c.url)
		}
		return trouble("the answer is no JSON (is %s really the server's address?): %s", c.url, ledger.CutText(string(answer), errorText))
	}
	return nil
}

// waiting notes what a server says in Retry-After, in seconds or as a date.
func waiting(err error, h http.Header) error {
	var e *Error
	said := h.Get("Retry-After")
	if said == "" || !errors.As(err, &e) {
		return err
	}
	if seconds, parseErr := strconv.Atoi(said); parseErr == nil {
		e.after = time.Duration(min(max(seconds, 0), maxRetryAfter)) * time.Second
	} else if at, parseErr := http.ParseTime(said); parseErr == nil {
		e.after = min(max(time.Until(at), 0), maxRetryAfter*time.Second)
	}
	return err
}

// streamed reports whether an answer came in pieces: as JSON lines or as events.
func streamed(h http.Header, answer []byte) bool {
	first, rest, _ := bytes.Cut(bytes.TrimSpace(answer), []byte("\n"))
	return strings.HasPrefix(h.Get("Content-Type"), "text/event-stream") || bytes.HasPrefix(first, []byte("data:")) ||
		json.Valid(first) && len(rest) > 0
}

// transportError tells a server that is away from one that is slow.
func transportError(ctx context.Context, err error) error {
	var op *net.OpError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &Error{cause: ledger.CauseTimeout, text: "no answer in time", err: err}
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &op) && op.Op == "dial":
		return &Error{cause: ledger.CauseUnavailable, text: "the server cannot be reached", err: err}
	default:
		return serverTrouble{&Error{cause: ledger.CauseUnavailable, text: "the connection broke", err: err}}
	}
}

// statusError gives an HTTP status its meaning. Ollama's texts are those of
// 0.17.4.
func statusError(status int, text string) error {
	lower := strings.ToLower(text)
	switch {
	case status == http.StatusNotFound && strings.Contains(lower, "model"):
		return fail(ledger.CauseUnavailable, "%s: install it there (ollama pull), or change the setting", text)
	case status == http.StatusNotFound:
		return fail(ledger.CauseUnavailable, "the server answers 404: is its address right? %s", text)
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return fail(ledger.CauseUnavailable, "the server refuses the key: %d %s", status, text)
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		return fail(ledger.CauseUnavailable, "the server is busy: %d %s", status, text)
	case strings.Contains(lower, "context length"), strings.Contains(lower, "context_length"), strings.Contains(lower, "maximum context"):
		return tooLong{&Error{cause: ledger.CauseTooLarge, final: true, text: "the post does not fit the model's window: " + text}}
	case strings.Contains(lower, "does not support thinking"), strings.Contains(lower, "reasoning_effort"), strings.Contains(lower, "reasoning effort"):
		return fail(ledger.CauseUnavailable, "%s: set think to off", text)
	case strings.Contains(lower, "system memory"):
		return fail(ledger.CauseUnavailable, "the server has no room for the model: %s", text)
	case strings.Contains(lower, "invalid json schema"):
		return fail(ledger.CauseUnavailable, "the server takes no JSON schema: %s", text)
	default:
		return trouble("the server answers %d: %s", status, text)
	}
}

// errorOf finds the error in an answer: {"error": "text"} as Ollama has it, or
// {"error": {"message": "text"}}. "" means that there is none.
func errorOf(answer []byte) string {
	var e struct {
		Error json.RawMessage `json:"error"`
	}
	var text string
	var object struct {
		Message string `json:"message"`
	}
	switch {
	case json.Unmarshal(answer, &e) != nil:
		return ledger.CutText(strings.TrimSpace(string(answer)), errorText)
	case len(e.Error) == 0 || string(e.Error) == "null":
		return ""
	case json.Unmarshal(e.Error, &text) == nil:
	case json.Unmarshal(e.Error, &object) == nil && object.Message != "":
		text = object.Message
	default:
		text = string(e.Error)
	}
	return ledger.CutText(text, errorText)
}

// lastLine returns the last line of an answer of several lines that is JSON, and
// all of any other.
func lastLine(answer []byte) []byte {
	trimmed := bytes.TrimSpace(answer)
	if i := bytes.LastIndexByte(trimmed, '\n'); i >= 0 && json.Valid(trimmed[i:]) {
		return trimmed[i:]
	}
	if !json.Valid(trimmed) {
		return []byte("{}") // said by the caller
	}
	return trimmed
}
