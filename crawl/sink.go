package crawl

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"vesti.nixg.ru/ledger"
)

// ledgerSink gives what kinds read to the ledger.
type ledgerSink struct {
	Log
	drops *Drops
}

// Drop implements Sink.
func (s *ledgerSink) Drop(ctx context.Context, entries []Dropped) (int, error) {
	if s.drops == nil {
		return len(entries), nil
	}
	return s.drops.Keep(ctx, entries)
}

// How much of an entry's text a dry run shows, in bytes.
const textStart = 200

// dryRound is what the sinks of a dry run share: the texts that are new in it,
// which the ledger would know when they come again.
type dryRound struct {
	log Log

	mu   sync.Mutex
	news map[ledger.PostID]bool
}

// foretell says what the ledger would make of an item of which it knows known.
func (d *dryRound) foretell(ctx context.Context, it *ledger.Item, known ledger.KnownItem) (ledger.Outcome, error) {
	if known.Post != 0 && known.Fingerprint == it.Fingerprint && !it.Fingerprint.IsZero() {
		return ledger.OutcomeKnown, nil
	}
	id := ledger.IdentifyText(it.Text, it.Key)
	text, err := d.log.KnownText(ctx, it.Source, id)
	if err != nil {
		return 0, fmt.Errorf("look a text up: %w", err)
	}
	switch {
	case known.Post != 0 && text.Post != known.Post:
		return ledger.OutcomeRevised, nil
	case known.Post != 0 && text.Title == it.Title:
		return ledger.OutcomeKnown, nil
	case known.Post != 0:
		return ledger.OutcomeTouched, nil
	case text.Post != 0:
		return ledger.OutcomeSeenAgain, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.news[id] {
		return ledger.OutcomeSeenAgain, nil
	}
	d.news[id] = true
	return ledger.OutcomeNew, nil
}

// drySink asks the ledger and writes nothing.
type drySink struct {
	log   Log
	round *dryRound

	mu      sync.Mutex
	entries []Entry
	drops   []Drop
}

// KnownItems implements Sink.
func (s *drySink) KnownItems(ctx context.Context, keys []ledger.ItemKey) ([]ledger.KnownItem, error) {
	return s.log.KnownItems(ctx, keys)
}

// KnownText implements Sink.
func (s *drySink) KnownText(ctx context.Context, source ledger.Slug, id ledger.PostID) (ledger.KnownText, error) {
	return s.log.KnownText(ctx, source, id)
}

// Append implements Sink. It answers what the ledger would, and names no post,
// so that a kind which keeps its own progress does not take the item for stored.
func (s *drySink) Append(ctx context.Context, items []ledger.Item) ([]ledger.Appended, error) {
	keys := make([]ledger.ItemKey, len(items))
	for i := range items {
		keys[i] = items[i].Key
	}
	known, err := s.log.KnownItems(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("look items up: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	appended := make([]ledger.Appended, len(items))
	for i := range items {
		it := &items[i]
		if at := slices.IndexFunc(s.entries, func(e Entry) bool { return e.key == it.Key }); at >= 0 {
			// With another text in the same run: a kind has changed its mind.
			appended[i].Outcome = ledger.OutcomeRevised
			s.entries[at].TextFrom, s.entries[at].TextStart = string(it.TextFrom), startOf(it.Text)
			continue
		}
		if appended[i].Outcome, err = s.round.foretell(ctx, it, known[i]); err != nil {
			return nil, err
		}
		s.entries = append(s.entries, Entry{
			Source: it.Source, Title: it.Title, URL: it.URL, Published: it.Published, TextFrom: string(it.TextFrom),
			TextStart: startOf(it.Text), Outcome: appended[i].Outcome.String(), Known: known[i].Post != 0, key: it.Key,
		})
	}
	return appended, nil
}

func startOf(text string) string {
	return ledger.CutText(strings.Join(strings.Fields(text), " "), textStart)
}

// Record implements Sink.
func (s *drySink) Record(_ context.Context, events ...ledger.Event) ([]ledger.Seq, error) {
	return make([]ledger.Seq, len(events)), nil
}

// Drop implements Sink.
func (s *drySink) Drop(_ context.Context, entries []Dropped) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range entries {
		s.drops = append(s.drops, Drop{Source: d.Source, Title: d.Title, URL: d.URL, Rule: d.Rule})
	}
	return len(entries), nil
}
