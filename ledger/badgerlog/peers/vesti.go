package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
)

type vestiStore struct{ log *badgerlog.Log }

func openVesti(ctx context.Context, dir string, c class) (store, error) {
	o := badgerlog.Options{Dir: dir, Durability: badgerlog.Durable}
	if c == classP {
		o.Durability = badgerlog.Relaxed
	}
	log, err := badgerlog.Open(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("open the ledger: %w", err)
	}
	return &vestiStore{log: log}, nil
}

func (s *vestiStore) append(ctx context.Context, f *feed, batch int, b budget) (tally, error) {
	return produce(ctx, f, batch, b, func(ctx context.Context, posts []post) (int, error) {
		items := make([]ledger.Item, len(posts))
		for i := range posts {
			items[i] = item(&posts[i])
		}
		answers, err := s.log.Append(ctx, items)
		if err != nil {
			return 0, fmt.Errorf("append: %w", err)
		}
		fresh := 0
		for _, a := range answers {
			if a.Outcome == ledger.OutcomeNew {
				fresh++
			}
		}
		return fresh, nil
	})
}

func item(p *post) ledger.Item {
	lane := ledger.LaneP0
	if p.Own {
		lane = ledger.LaneOwn
	}
	return ledger.Item{
		Source: ledger.Slug(p.Source), Key: ledger.NewItemKey(ledger.Slug(p.Source), p.Key),
		URL: p.URL, CanonicalURL: p.URL, Title: p.Title, Text: p.Text, TextFrom: ledger.TextContent, Lang: p.Lang,
		Published: p.Published, Direction: "tech", IsOwn: p.Own, Lane: lane,
	}
}

func (s *vestiStore) claim(ctx context.Context, m mode, b budget) (tally, error) {
	var underWay sync.WaitGroup
	var once sync.Once
	var late error // the first failure of a completion nobody waited for
	do := func(ctx context.Context, worker, _ int) error {
		c, err := s.log.Claim(ctx, ledger.ClaimRequest{Worker: strconv.Itoa(worker)})
		if err != nil {
			return fmt.Errorf("claim: %w", err)
		}
		if c.Item.Text == "" {
			return errors.New("claimed a post without its text")
		}
		decision := ledger.PostClassified{
			Classification: ledger.Classification{
				Direction: "tech", Relevance: 0.8, Interest: 0.5, Summary: "summary", Confidence: 0.9, Stage: "keyword",
			},
			Revision: c.Revision,
		}
		if m.awaited {
			return s.log.Complete(ctx, c, decision)
		}
		underWay.Add(1)
		return s.log.CompleteLater(ctx, c, decision, func(err error) {
			if err != nil {
				once.Do(func() { late = err })
			}
			underWay.Done()
		})
	}
	return work(ctx, m, b, do, func(int) error {
		underWay.Wait()
		return late
	})
}

func (s *vestiStore) close() error { return s.log.Close() }
