package classify

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"vesti.nixg.ru/ledger"
)

// Decider judges claimed posts. Cascade is the one that vesti runs.
// Implementations are safe for concurrent use and end soon after ctx does.
type Decider interface {
	// Decide judges the claim's post. An error says that it could not be judged
	// now: a *Failure says why; any other error counts as ledger.CauseInternal.
	Decide(ctx context.Context, claim ledger.Claim) (Decision, error)
}

// Decision is what came of judging a post.
type Decision struct {
	ledger.Classification
	// HandOn says that only a later stage can settle the post: it goes to the
	// queue of ledger.StageLLM, and Classification is a best guess so far.
	HandOn bool
	// Provisional says that the guess of a post handed on is worth showing
	// meanwhile.
	Provisional bool
	// Spent is how long each way to judge took that was asked, for the metrics.
	Spent []Spent
}

// Spent is the time that one way to judge took.
type Spent struct {
	Way  string // one of Ways
	Time time.Duration
}

// Failure is a typed error: why a post could not be judged. With
// ledger.CauseUnavailable what does the work is away: the post goes back
// without burning an attempt, and its stage pauses.
type Failure struct {
	Cause ledger.Cause
	// Final says that no later attempt could do better: the post is parked.
	Final bool
	// RetryAfter is how long what is away asks to be left alone; 0 where it does not.
	RetryAfter time.Duration
	Err        error
}

// Error implements error.
func (f *Failure) Error() string { return fmt.Sprintf("%s: %v", f.Cause, f.Err) }

// Unwrap returns the error that Failure gives a cause to.
func (f *Failure) Unwrap() error { return f.Err }

// causer is how the packages below say what kind of failure theirs is, without
// knowing this one.
type causer interface {
	error
	Cause() ledger.Cause
	Final() bool
	RetryAfter() time.Duration
}

// failureOf gives every error of a decider its cause.
func failureOf(err error) *Failure {
	var f *Failure
	var c causer
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &c):
		return &Failure{Cause: c.Cause(), Final: c.Final(), RetryAfter: c.RetryAfter(), Err: err}
	default:
		return &Failure{Cause: ledger.CauseInternal, Err: err}
	}
}

// round keeps three digits, so that equal decisions are equal when compared.
func round(f float64) float64 { return math.Round(f*1000) / 1000 }
