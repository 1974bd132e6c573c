package badgerlog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
	"vesti.nixg.ru/ledger/ledgertest"
)

// The benchmarks report posts/s and the 99th percentile of a call in
// microseconds. Posts have about 1.6 KB of Russian text, 30 % are duplicates.

func benchOpen(b *testing.B, d badgerlog.Durability) *badgerlog.Log {
	b.Helper()
	l, err := badgerlog.Open(b.Context(), badgerlog.Options{Dir: b.TempDir(), Durability: d, FreeSpaceFloor: -1, GCInterval: -1})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := l.Close(); err != nil {
			b.Error(err)
		}
	})
	return l
}

// benchItem is item n: every third or so repeats the text of an earlier one at
// another source, or is an item that is known.
func benchItem(p *ledgertest.Prose, n int) ledger.Item {
	switch m := n % 20; {
	case n > 100 && m < 3:
		return p.Post("a", n-50, benchText)
	case n > 100 && m < 6:
		i := p.Post("a", n-70, benchText)
		i.Source, i.Key = "b", ledger.NewItemKey("b", fmt.Sprint(n))
		return i
	default:
		return p.Post("a", n, benchText)
	}
}

const benchText = 1600 // bytes of a text

func benchItems(n int) []ledger.Item {
	prose := ledgertest.NewProse(1)
	items := make([]ledger.Item, n)
	for i := range items {
		items[i] = benchItem(prose, i)
	}
	return items
}

// latencies collects the durations of calls.
type latencies struct {
	mu  sync.Mutex
	all []time.Duration
}

func (l *latencies) add(d []time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, d...)
}

func (l *latencies) report(b *testing.B, posts int) {
	b.Helper()
	slices.Sort(l.all)
	if len(l.all) > 0 {
		b.ReportMetric(float64(l.all[len(l.all)*99/100].Microseconds()), "p99-µs")
	}
	b.ReportMetric(float64(posts)/b.Elapsed().Seconds(), "posts/s")
	b.ReportMetric(0, "ns/op")
}

func eachSetting(b *testing.B, run func(b *testing.B, d badgerlog.Durability, workers int)) {
	b.Helper()
	for _, d := range []badgerlog.Durability{badgerlog.Durable, badgerlog.Relaxed} {
		for _, workers := range []int{1, 2, 8, 32} {
			b.Run(fmt.Sprintf("%s/workers=%d", d, workers), func(b *testing.B) { run(b, d, workers) })
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{1, 50} {
		b.Run(fmt.Sprintf("posts=%d", size), func(b *testing.B) {
			eachSetting(b, func(b *testing.B, d badgerlog.Durability, workers int) {
				l := benchOpen(b, d)
				items := benchItems(b.N + workers*size)
				var lat latencies
				b.ResetTimer()
				benchAppend(b, l, items[:b.N], size, workers, &lat)
				b.StopTimer()
				lat.report(b, b.N)
			})
		})
	}
}

func benchAppend(b *testing.B, l *badgerlog.Log, items []ledger.Item, size, workers int, lat *latencies) {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			var took []time.Duration
			for {
				from := int(next.Add(int64(size))) - size
				if from >= len(items) {
					break
				}
				started := time.Now()
				if _, err := l.Append(b.Context(), items[from:min(from+size, len(items))]); err != nil {
					b.Error(err)
					return
				}
				took = append(took, time.Since(started))
			}
			lat.add(took)
		})
	}
	wg.Wait()
}

func BenchmarkClaim(b *testing.B) {
	for _, awaited := range []bool{false, true} {
		b.Run(fmt.Sprintf("awaited=%v", awaited), func(b *testing.B) {
			eachSetting(b, func(b *testing.B, d badgerlog.Durability, workers int) {
				l := benchOpen(b, d)
				fill(b, l, b.N)
				var lat latencies
				b.ResetTimer()
				benchClaim(b, l, b.N, workers, awaited, &lat)
				b.StopTimer()
				lat.report(b, b.N)
			})
		})
	}
}

// fill appends n posts of their own.
func fill(tb testing.TB, l *badgerlog.Log, n int) {
	tb.Helper()
	fillFrom(tb, l, ledgertest.NewProse(1), 0, n, func(f func()) { f() })
}

// fillFrom appends n posts from a number on, each call to the log within timed.
func fillFrom(tb testing.TB, l *badgerlog.Log, prose *ledgertest.Prose, start, n int, timed func(func())) {
	tb.Helper()
	for from := start; from < start+n; from += 500 {
		items := make([]ledger.Item, 0, 500)
		for i := from; i < min(from+500, start+n); i++ {
			items = append(items, prose.Post("a", i, benchText))
		}
		timed(func() {
			if _, err := l.Append(tb.Context(), items); err != nil {
				tb.Fatal(err)
			}
		})
	}
}

// benchClaim claims and completes n posts with a classifier that does nothing.
func benchClaim(tb testing.TB, l *badgerlog.Log, n, workers int, awaited bool, lat *latencies) {
	tb.Helper()
	var wg, pending sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(n))
	decision := ledgertest.Decision("linux")
	for w := range workers {
		wg.Go(func() {
			var took []time.Duration
			for left.Add(-1) >= 0 {
				started := time.Now()
				c, err := l.Claim(tb.Context(), ledger.ClaimRequest{Worker: fmt.Sprint(w)})
				took = append(took, time.Since(started))
				if err != nil {
					tb.Error(err)
					return
				}
				pending.Add(1)
				done := func(err error) {
					pending.Done()
					if err != nil {
						tb.Error(err)
					}
				}
				if awaited {
					done(l.Complete(tb.Context(), c, decision))
				} else if err := l.CompleteLater(tb.Context(), c, decision, done); err != nil {
					tb.Error(err)
					return
				}
			}
			lat.add(took)
		})
	}
	wg.Wait()
	pending.Wait()
}

func BenchmarkTail(b *testing.B) {
	l := benchOpen(b, badgerlog.Relaxed)
	fill(b, l, 20000)
	benchClaim(b, l, 20000, 8, false, &latencies{})
	events := 0
	b.ResetTimer()
	for b.Loop() {
		for after := ledger.Seq(0); after < l.Head(); {
			page, err := l.Read(b.Context(), after, 5000)
			if err != nil {
				b.Fatal(err)
			}
			after = page[len(page)-1].Seq
			events += len(page)
		}
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkMixed appends, works and tails at once.
func BenchmarkMixed(b *testing.B) {
	eachSetting(b, func(b *testing.B, d badgerlog.Durability, workers int) {
		l := benchOpen(b, d)
		items := benchItems(b.N)
		ctx, stop := context.WithCancel(b.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := followCounter(ctx, l, forever); !errors.Is(err, context.Canceled) {
				b.Error(err)
			}
		})
		var lat latencies
		b.ResetTimer()
		for range workers {
			wg.Go(func() {
				for {
					c, err := l.Claim(ctx, ledger.ClaimRequest{})
					if err != nil {
						return
					}
					if err := l.Complete(b.Context(), c, ledgertest.Decision("linux")); err != nil {
						b.Error(err)
					}
				}
			})
		}
		benchAppend(b, l, items, 10, 4, &lat)
		for l.Queue().Processing > 0 {
			time.Sleep(time.Millisecond)
		}
		b.StopTimer()
		stop()
		wg.Wait()
		lat.report(b, b.N)
	})
}
