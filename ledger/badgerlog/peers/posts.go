package main

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/ledgertest"
)

const (
	producers      = 8
	workers        = 8
	duplicateShare = 0.30
	textBytes      = 1600
)

// post is what a crawler hands over. Its fields are those that every contestant stores.
type post struct {
	Source    string    `json:"source"`
	Key       string    `json:"key"`
	URL       string    `json:"url"`
	Title     string    `json:"title"`
	Text      string    `json:"text"`
	Lang      string    `json:"lang"`
	Published time.Time `json:"published"`
	Own       bool      `json:"own"`
}

// hash is what the peers tell duplicates by. It is computed when a post is
// appended, as vesti computes its own.
func (p *post) hash() [sha256.Size]byte { return sha256.Sum256([]byte(p.Text)) }

// feed is one fixed sequence of posts that concurrent producers take from.
type feed struct {
	posts []post
	fresh []int // fresh[i] is the number of different texts among the first i posts
	next  atomic.Int64
}

// newFeed makes n posts, the same for the same seed. Three in ten repeat an
// earlier text: half of them are the same item met again, half the same text
// at another source.
func newFeed(n int, seed uint64) *feed {
	rng := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // the same posts in every run
	prose := ledgertest.NewProse(seed)
	f := &feed{posts: make([]post, 0, n), fresh: make([]int, 1, n+1)}
	texts := 0
	for i := range n {
		if i > 0 && rng.Float64() < duplicateShare {
			again := f.posts[recent(rng, i)]
			if rng.IntN(2) == 0 {
				again.Source = fmt.Sprintf("mirror-%02d", rng.IntN(40))
				again.Key = fmt.Sprintf("copy-%d", i)
				again.URL = fmt.Sprintf("https://%s.example/%d", again.Source, i)
			}
			f.posts = append(f.posts, again)
		} else {
			f.posts = append(f.posts, newPost(prose, rng, i))
			texts++
		}
		f.fresh = append(f.fresh, texts)
	}
	return f
}

// recent picks one of the i posts so far: mostly a young one, for feeds repeat
// what they showed an hour ago, and news is copied on the day it appears.
func recent(rng *rand.Rand, i int) int {
	if rng.IntN(10) == 0 {
		return rng.IntN(i)
	}
	return i - 1 - rng.IntN(min(i, 2000))
}

// take returns the next up to n posts, none at the end.
func (f *feed) take(n int) []post {
	end := int(f.next.Add(int64(n)))
	start := min(end-n, len(f.posts))
	return f.posts[start:min(end, len(f.posts))]
}

// taken is how many posts were taken. It is exact when no producer is at work.
func (f *feed) taken() int { return min(int(f.next.Load()), len(f.posts)) }

func (f *feed) rewind() { f.next.Store(0) }

// newPost makes up post i.
func newPost(prose *ledgertest.Prose, rng *rand.Rand, i int) post {
	source := fmt.Sprintf("source-%03d", rng.IntN(300))
	item := prose.Post(ledger.Slug(source), i, textBytes)
	return post{
		Source:    source,
		Key:       fmt.Sprintf("item-%d", i),
		URL:       fmt.Sprintf("https://%s.example/news/%d", source, i),
		Title:     item.Title,
		Text:      item.Text,
		Lang:      string(item.Lang),
		Published: time.Unix(1_780_000_000+int64(i), 0).UTC(),
		Own:       rng.IntN(50) == 0,
	}
}
