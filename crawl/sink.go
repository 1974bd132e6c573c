package crawl

import (
	"context"
	"fmt"
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

// drySink asks the ledger and writes nothing.
type drySink struct {
	log Log

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

// Append implements Sink. An item that the ledger has counts as known, whatever
// became of its text, and the others as new. No answer names a post, so that a
// kind which keeps its own progress does not take the item for stored.
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
		appended[i].Outcome = ledger.OutcomeNew
		if known[i].Post != 0 {
			appended[i].Outcome = ledger.OutcomeKnown
		}
		s.entries = append(s.entries, Entry{
			Source: it.Source, Title: it.Title, URL: it.URL, Published: it.Published, TextFrom: string(it.TextFrom),
			TextStart: ledger.CutText(strings.Join(strings.Fields(it.Text), " "), textStart), Known: known[i].Post != 0,
		})
	}
	return appended, nil
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
