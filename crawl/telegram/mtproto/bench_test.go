//go:build !notelegram

package mtproto_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/gotd/td/tg"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/ledger"
)

// BenchmarkCrawl reads channels of 5,000 messages into a ledger, on one
// connection, server and client in one process.
func BenchmarkCrawl(b *testing.B) {
	const messages = 5000
	for _, latency := range []time.Duration{0, 50 * time.Millisecond} {
		for _, channels := range []int{1, 8} {
			b.Run(fmt.Sprintf("latency=%s/channels=%d", latency, channels), func(b *testing.B) {
				total := 0
				for b.Loop() {
					b.StopTimer()
					w := newWorld(b)
					for i := range channels {
						w.server.add(benchChannel(i, messages))
					}
					w.server.set(func() { w.server.latency = latency })
					b.StartTimer()
					var wg sync.WaitGroup
					for i := range channels {
						wg.Go(func() { w.crawlBench(b, i, messages) })
					}
					wg.Wait()
					total += channels * messages
					b.StopTimer()
					w.account.Close()
					b.StartTimer()
				}
				b.ReportMetric(float64(total)/b.Elapsed().Seconds(), "msg/s")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

func benchChannel(i, messages int) *channel {
	c := &channel{id: port + int64(i), hash: 1, name: fmt.Sprintf("bench_%d", i), title: "Порт"}
	for id := 1; id <= messages; id++ {
		m := message(id)
		m.PeerID = &tg.PeerChannel{ChannelID: c.id}
		m.Message = fmt.Sprintf("Сообщение %d канала %d о погрузке угля и о ценах на фрахт в порту", id, i)
		c.messages = append(c.messages, m)
	}
	return c
}

func (w *world) crawlBench(b *testing.B, i, messages int) {
	src := crawl.Source{Slug: ledger.Slug(fmt.Sprint("bench", i)), Channel: fmt.Sprintf("bench_%d", i), Backfill: 100_000, Enabled: true}
	rep, err := w.kind.Crawl(b.Context(), crawl.Job{Source: src, Now: noon, Sink: sink{w.log}})
	if err != nil {
		b.Error(err)
	}
	if rep.New != messages {
		b.Errorf("%d new, want %d", rep.New, messages)
	}
}
