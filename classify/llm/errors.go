package llm

import (
	"fmt"
	"time"

	"vesti.nixg.ru/ledger"
)

// Error is a post that could not be judged, with the cause. With
// ledger.CauseUnavailable the server is away, busy, without the model or set up
// so that no post can be judged: it is not the post's fault.
type Error struct {
	cause ledger.Cause
	final bool
	text  string
	err   error
	after time.Duration
}

// Error implements error.
func (e *Error) Error() string {
	if e.err == nil {
		return e.text
	}
	return fmt.Sprintf("%s: %v", e.text, e.err)
}

// Unwrap returns what lies beneath, if anything.
func (e *Error) Unwrap() error { return e.err }

// Cause is the kind of the failure.
func (e *Error) Cause() ledger.Cause { return e.cause }

// Final reports whether no later attempt could do better.
func (e *Error) Final() bool { return e.final }

// RetryAfter is how long the server asks to be left alone; 0 where it does not.
func (e *Error) RetryAfter() time.Duration { return e.after }

func fail(cause ledger.Cause, format string, args ...any) *Error {
	return &Error{cause: cause, text: fmt.Sprintf(format, args...)}
}

// serverTrouble marks errors that may be the server's or the post's: an answer
// of 500, a connection that broke. They count as the server's until the same
// post has met several.
type serverTrouble struct{ of *Error }

// Error implements error.
func (t serverTrouble) Error() string { return t.of.Error() }

// Unwrap lets errors.As find the Error.
func (t serverTrouble) Unwrap() error { return t.of }

func trouble(format string, args ...any) error {
	return serverTrouble{fail(ledger.CauseUnavailable, format, args...)}
}

// tooLong: the prompt exceeds the model's window. It is shortened and sent again.
type tooLong struct{ of *Error }

// Error implements error.
func (t tooLong) Error() string { return t.of.Error() }

// Unwrap lets errors.As find the Error.
func (t tooLong) Unwrap() error { return t.of }
