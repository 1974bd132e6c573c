package posts

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/projections"
)

// rowPost is the prefix of the rows: + number: a record.
const rowPost = 'p'

// fold is one generation of the projection: records in the table, and in memory
// the columns that lists are made from.
type fold struct {
	*projections.Table
	columns *columns
}

func (f *fold) load(ctx context.Context) error {
	return f.Table.View(ctx, func(tx ledger.Tx) error {
		var all []change
		err := tx.Scan([]byte{rowPost}, nil, func(key, value []byte) (bool, error) {
			r, err := decode(value)
			all = append(all, changeOf(ledger.PostNum(binary.BigEndian.Uint64(key[1:])), &r))
			return true, err
		})
		f.columns.apply(all)
		return err
	})
}

// Close implements projections.Fold.
func (f *fold) Close() error { return nil }

// Apply implements projections.Fold.
func (f *fold) Apply(ctx context.Context, events []ledger.Event, through ledger.Seq) error {
	if !slices.ContainsFunc(events, func(e ledger.Event) bool { return e.Type.OfPost() }) {
		return f.Table.Pass(ctx, through)
	}
	var changes []change
	err := f.Table.Apply(ctx, through, func(tx ledger.Tx) error {
		records, err := foldEvents(tx, events)
		if err != nil {
			return err
		}
		changes = changes[:0]
		for num, r := range records {
			if r.state.Status == ledger.StatusNone {
				continue
			}
			if err := tx.Set(postKey(num), r.encode()); err != nil {
				return err
			}
			changes = append(changes, changeOf(num, r))
		}
		return nil
	})
	if err != nil {
		return err
	}
	f.columns.apply(changes)
	return nil
}

// foldEvents takes the stored records through events.
func foldEvents(tx ledger.Tx, events []ledger.Event) (map[ledger.PostNum]*record, error) {
	records := map[ledger.PostNum]*record{}
	for _, e := range events {
		if !e.Type.OfPost() {
			continue
		}
		r, seen := records[e.Post]
		if !seen {
			r = &record{}
			v, err := tx.Get(postKey(e.Post))
			switch {
			case errors.Is(err, ledger.ErrNotFound):
			case err != nil:
				return nil, err
			default:
				if *r, err = decode(v); err != nil {
					return nil, err
				}
			}
			records[e.Post] = r
		}
		r.apply(e)
	}
	return records, nil
}

// page reads the posts of a selection.
func (f *fold) page(ctx context.Context, s selection, r Request) (Page, error) {
	p := Page{Total: s.total, Facets: s.facets}
	nums := make([]ledger.PostNum, 0, len(s.page))
	for _, m := range s.page {
		nums = append(nums, m.Num)
		if r.Sort == ByRelevance {
			p.Scores = append(p.Scores, m.Score)
		}
	}
	var err error
	p.Posts, err = f.posts(ctx, nums)
	return p, err
}

// posts reads records by number, in the order of nums, without those that are
// not there.
func (f *fold) posts(ctx context.Context, nums []ledger.PostNum) ([]Post, error) {
	all := make([]Post, 0, len(nums))
	err := f.Table.View(ctx, func(tx ledger.Tx) error {
		for _, num := range nums {
			v, err := tx.Get(postKey(num))
			if errors.Is(err, ledger.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			r, err := decode(v)
			if err != nil {
				return err
			}
			all = append(all, r.view(num))
		}
		return nil
	})
	return all, err
}

func postKey(num ledger.PostNum) []byte {
	return binary.BigEndian.AppendUint64([]byte{rowPost}, uint64(num))
}
