// Package ledger is the vocabulary of vesti: the words every other package
// speaks, and the rules that make them mean one thing.
//
// It holds the identities (PostID, PostNum, Slug, ItemKey, Seq), the events
// that tell what happened, the pure fold from events to the state of a post or
// of a source, the normalisation that decides when two texts are one, and the
// errors that engines return. It opens no file, starts no goroutine and reads
// no clock: time enters as an argument.
//
// An engine (package badgerlog) stores the events and carries out the rules
// inside its transactions. Crawlers, classifiers and projections know engines
// only by small interfaces that they declare themselves, in these words.
package ledger
