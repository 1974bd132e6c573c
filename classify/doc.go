// Package classify turns pending posts into decisions: a pool of workers claims
// posts from the queue, a cascade of stages judges them (keyword rules, a small
// learned model, a language model), and what came of it goes back into the
// ledger. One folder per way to judge lies below it; they know nothing of each
// other, of queues and of workers.
//
// It also judges history again (Reclassifier) and measures the stages against
// labelled texts (Evaluate).
package classify
