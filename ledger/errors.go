package ledger

import "errors"

// Errors in what a caller hands over.
var (
	// ErrInvalid: a value is outside its domain; the message names it.
	ErrInvalid = errors.New("invalid")
	// ErrTooLarge: an item's text exceeds MaxText bytes.
	ErrTooLarge = errors.New("too large")
)

// Errors in what a caller asks for.
var (
	// ErrNotFound: no such post, source, event or key.
	ErrNotFound = errors.New("not found")
	// ErrAmbiguous: a shortened post id fits several posts.
	ErrAmbiguous = errors.New("ambiguous")
	// ErrQueueEmpty: nothing can be claimed now; something may wait for its delay.
	ErrQueueEmpty = errors.New("queue empty")
)

// Errors between a claim and its end.
var (
	// ErrStale: the claim is no longer its holder's (its lease ended and another
	// took it, the post was revised or settled meanwhile), or an event does not
	// follow from its post's state. Nothing was written.
	ErrStale = errors.New("stale")
)

// Errors of the store itself.
var (
	// ErrLocked: another process has the store open; the message names the
	// folder and the process.
	ErrLocked = errors.New("store is locked by another process")
	// ErrNoSpace: free space is below the floor; nothing was written. Work goes on
	// by itself when there is room.
	ErrNoSpace = errors.New("not enough free disk space")
	// ErrReadOnly: the store's folder cannot be written.
	ErrReadOnly = errors.New("store is read-only")
	// ErrClosed: the engine was closed.
	ErrClosed = errors.New("ledger is closed")
	// ErrUnreadable: what is stored of a post or an event does not decode, from
	// damage or because a newer version wrote it. Asking again does not help.
	ErrUnreadable = errors.New("does not decode")
	// ErrNewer: the store was written by a newer version of vesti.
	ErrNewer = errors.New("store was written by a newer version")
)
