package ledger

import "context"

// DerivedNamespace begins the namespaces whose content can be rebuilt from the
// log: projections. Backups leave them out, so that a restored ledger finds
// every projection at its start.
const DerivedNamespace = "projections/"

// Store is a small transactional key-value space beside the log, for what is
// derived from it (projections) and what is no history (accounts, sessions,
// saved searches). An engine gives one per namespace; keys of different
// namespaces never meet. It is safe for concurrent use.
type Store interface {
	// View runs f on a consistent snapshot.
	View(ctx context.Context, f func(Tx) error) error
	// Update runs f and commits what it wrote as one, all or nothing, durable as
	// the engine is. f may run more than once when another Update got between.
	Update(ctx context.Context, f func(Tx) error) error
}

// Tx is one transaction of a Store. It is valid until f returns and is not
// safe for concurrent use.
type Tx interface {
	// Get returns a copy of the value, or an error matching ErrNotFound, or
	// ErrUnreadable where what is stored is damaged. Scan returns the latter, too.
	Get(key []byte) ([]byte, error)
	// Set and Delete keep no reference to key and value. In a View they fail.
	Set(key, value []byte) error
	Delete(key []byte) error
	// Scan calls f with each key that has the prefix, in byte order, from the
	// first one not below start (nil for the first of all), until f returns false
	// or an error. The slices are valid during the call only.
	Scan(prefix, start []byte, f func(key, value []byte) (bool, error)) error
	// Keys is Scan without reading the values.
	Keys(prefix, start []byte, f func(key []byte) (bool, error)) error
}
