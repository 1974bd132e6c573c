package search_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
	"vesti.nixg.ru/ledger/ledgertest"
	"vesti.nixg.ru/projections"
	"vesti.nixg.ru/projections/posts"
	"vesti.nixg.ru/projections/projectiontest"
	"vesti.nixg.ru/projections/search"
)

// desk is a ledger with the projections that a search needs, fed as they come.
type desk struct {
	log    *badgerlog.Log
	runner *projections.Runner
	search *search.Search
	nums   map[string]ledger.PostNum // by the id of the document
	ids    map[ledger.PostNum]string
}

// open opens a desk on a new ledger.
func open(t testing.TB) *desk {
	t.Helper()
	return attach(t, ledgertest.Open(t), t.TempDir())
}

// attach runs projections on a ledger, with the index in dir, until the test
// ends.
func attach(t testing.TB, log *badgerlog.Log, dir string) *desk {
	t.Helper()
	d := &desk{log: log, nums: map[string]ledger.PostNum{}, ids: map[ledger.PostNum]string{}}
	list := posts.New(log.Store)
	d.search = search.New(search.Options{
		Dir: dir, Texts: log, Posts: list,
		Directions: ledger.DefaultDirections(), Sources: func() []ledger.Slug { return []ledger.Slug{"quiet"} },
	})
	d.runner = projectiontest.Start(t, projections.Options{
		Log: log, Stores: log.Store, Projections: []projections.Projection{list, d.search},
	}).Runner
	return d
}

// doc is a document of a test.
type doc struct {
	ID, Lang, Title, Text string
	Source                ledger.Slug
	Published             time.Time
}

// add appends documents and waits until they can be found.
func (d *desk) add(t testing.TB, docs ...doc) {
	t.Helper()
	d.append(t, docs...)
	d.settle(t)
}

func (d *desk) append(t testing.TB, docs ...doc) {
	t.Helper()
	items := make([]ledger.Item, 0, len(docs))
	for i, c := range docs {
		if c.Source == "" {
			c.Source = "test"
		}
		if c.Published.IsZero() {
			c.Published = time.Date(2026, 1, 1, 0, i, 0, 0, time.UTC)
		}
		items = append(items, ledger.Item{
			Source: c.Source, Key: ledger.NewItemKey(c.Source, c.ID), URL: "https://example.org/" + c.ID, Title: c.Title,
			Text: c.Text, Lang: c.Lang, Published: c.Published, Lane: ledger.LaneP1,
		})
	}
	appended, err := d.log.Append(t.Context(), items)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range appended {
		d.nums[docs[i].ID] = a.Post
		if _, known := d.ids[a.Post]; !known {
			d.ids[a.Post] = docs[i].ID
		}
	}
}

// settle waits until the projections are where the ledger is.
func (d *desk) settle(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := d.runner.CatchUp(ctx, d.log.Head()); err != nil {
		t.Fatalf("%v\n%+v", err, d.runner.Status())
	}
}

// find returns the ids of all hits.
func (d *desk) find(t testing.TB, query string) []string {
	t.Helper()
	r, err := d.search.Search(t.Context(), search.Request{Query: query, Limit: search.MaxLimit})
	if err != nil {
		t.Fatalf("%q: %v", query, err)
	}
	return d.named(r)
}

func (d *desk) named(r search.Result) []string {
	ids := []string{}
	for _, h := range r.Hits {
		id, ok := d.ids[h.Num]
		if !ok {
			id = fmt.Sprintf("post %d", h.Num)
		}
		ids = append(ids, id)
	}
	return ids
}
