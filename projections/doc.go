// Package projections keeps what pages show in step with the ledger. A
// projection is a fold of events with a checkpoint; the Runner feeds each of
// them, rebuilds them beside the ones that serve, and tells how far behind
// they are. The folds themselves are in the packages below: queue, sources,
// posts and search.
package projections
