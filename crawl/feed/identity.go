package feed

import (
	"slices"
	"time"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/ledger"
)

// maxID is the longest guid that is a key by itself, in bytes.
const maxID = 1 << 10

// identify gives each entry its key and its fingerprint. A guid, else the
// link's canonical form, is the key; where entries of the document share it or
// have none, a hash of what the entry says is added.
func identify(source ledger.Slug, entries []Entry) {
	ids := make([]string, len(entries))
	count := make(map[string]int, len(entries))
	for i := range entries {
		id := entries[i].GUID
		if id == "" {
			id = CanonicalURL(entries[i].Link)
		}
		ids[i] = id
		count[id]++
	}
	for i := range entries {
		e := &entries[i]
		id := ids[i]
		if id == "" || count[id] > 1 {
			text, _ := e.text()
			id += "#" + ledger.HashOf(e.Title, e.PublishedRaw, ledger.Normalise(text)).String()
		}
		if len(id) > maxID {
			id = ledger.HashOf(id).String()
		}
		e.key = ledger.NewItemKey(source, id)
		// Without the date, which some feeds set anew at each fetch: a text that
		// did not change is not fetched again for it.
		e.fingerprint = ledger.HashOf(e.Title, e.Link, e.Content.Value, e.Summary.Value)
	}
}

// retryOn is the fingerprint of an entry whose page could not be fetched for a
// reason that may pass: with it the entry is settled for this day only.
func (e *Entry) retryOn(now time.Time) ledger.Hash {
	return ledger.HashOf(e.fingerprint.String(), now.UTC().Format(time.DateOnly))
}

// later is the fingerprint of an entry whose page there was no time for: with it
// the entry is not settled.
func (e *Entry) later() ledger.Hash { return ledger.HashOf(e.fingerprint.String(), "later") }

// noticed is the fingerprint of an entry whose page had a notice in the place of
// the article.
func (e *Entry) noticed() ledger.Hash { return ledger.HashOf(e.fingerprint.String(), "notice") }

// settled reports whether the entry was stored with that fingerprint and need
// not be looked at again.
func (e *Entry) settled(stored ledger.Hash, now time.Time) bool {
	return stored == e.fingerprint || stored == e.noticed() || stored == e.retryOn(now)
}

// newest returns the limit newest entries, all for a limit below 1, newest
// first. Where no entry has a date that is the order of the document; an entry
// without a date among dated ones keeps its place beside its neighbour.
func newest(entries []Entry, limit int, now time.Time) []*Entry {
	type dated struct {
		entry *Entry
		at    time.Time
	}
	all := make([]dated, 0, len(entries))
	var last time.Time
	for i := range entries {
		if entries[i].isBlank() {
			continue
		}
		at := entries[i].Published
		if at.After(now.Add(maxAhead)) {
			at = now
		}
		if !at.IsZero() {
			last = at
		}
		all = append(all, dated{&entries[i], last})
	}
	for i := len(all) - 1; i >= 0; i-- { // those before the first date
		if all[i].at.IsZero() {
			all[i].at = last
		} else {
			last = all[i].at
		}
	}
	slices.SortStableFunc(all, func(a, b dated) int { return b.at.Compare(a.at) })
	if limit > 0 && len(all) > limit {
		all = all[:limit]
	}
	out := make([]*Entry, len(all))
	for i := range all {
		out[i] = all[i].entry
	}
	return out
}

// isBlank reports whether the entry says nothing at all.
func (e *Entry) isBlank() bool {
	return e.Title == "" && e.Link == "" && e.GUID == "" && e.Content.Value == "" && e.Summary.Value == ""
}

// language returns the first of the tags that names a language, as its primary
// subtag.
func language(tags ...string) string {
	for _, t := range tags {
		if lang := crawl.Language(t); lang != "" {
			return lang
		}
	}
	return ""
}
