package telegram_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/fetch"
	"vesti.nixg.ru/crawl/telegram"
	"vesti.nixg.ru/crawl/telegram/telegramtest"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
	"vesti.nixg.ru/ledger/ledgertest"
)

const port = int64(2000000001)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// world is a source, its server and a ledger.
type world struct {
	t      testing.TB
	log    *badgerlog.Log
	sink   *sink
	server *telegramtest.Preview
	kind   *telegram.Kind
	source crawl.Source
	now    time.Time
}

func newWorld(t testing.TB, change ...func(*telegram.Options)) *world {
	t.Helper()
	w := &world{t: t, log: ledgertest.Open(t), server: telegramtest.NewPreview(t), now: noon}
	w.sink = &sink{Log: w.log, left: -1}
	w.source = crawl.Source{Slug: "port", Channel: "port_example", Crawler: ledger.CrawlerTelegram, Lang: "ru", Enabled: true}
	w.open(change...)
	return w
}

// open makes the kind, as a start of the program does.
func (w *world) open(change ...func(*telegram.Options)) {
	w.t.Helper()
	client := fetch.New(fetch.Options{HostGap: -1, HostParallel: 8})
	w.t.Cleanup(client.Close)
	opts := telegram.Options{
		Fetch: client, Store: w.log.Store(telegram.Namespace), PreviewURL: w.server.URL, PreviewPace: -1,
	}
	for _, c := range change {
		c(&opts)
	}
	kind, err := telegram.New(opts)
	if err != nil {
		w.t.Fatal(err)
	}
	w.kind = kind
}

func (w *world) crawl() (crawl.Report, error) {
	w.t.Helper()
	return w.kind.Crawl(w.t.Context(), crawl.Job{Source: w.source, Now: w.now, Sink: w.sink})
}

func (w *world) mustCrawl() crawl.Report {
	w.t.Helper()
	rep, err := w.crawl()
	if err != nil {
		w.t.Fatal(err)
	}
	return rep
}

// num is the post of the channel's message.
func (w *world) num(id int) ledger.PostNum {
	w.t.Helper()
	known, err := w.log.KnownItems(w.t.Context(), []ledger.ItemKey{telegram.ItemKey(port, id)})
	if err != nil {
		w.t.Fatal(err)
	}
	return known[0].Post
}

func (w *world) post(id int) ledger.Post {
	w.t.Helper()
	p, err := w.log.Post(w.t.Context(), w.num(id))
	if err != nil {
		w.t.Fatalf("post of message %d: %v", id, err)
	}
	return p
}

func (w *world) events(id int) []ledger.Event {
	w.t.Helper()
	events, err := w.log.PostEvents(w.t.Context(), w.num(id))
	if err != nil {
		w.t.Fatal(err)
	}
	return events
}

// ids are the messages of all posts, in the ledger's order.
func (w *world) ids() []int {
	w.t.Helper()
	return postIDs(w.t, w.log)
}

func (w *world) wantIDs(want []int) {
	w.t.Helper()
	if got := w.ids(); !slices.Equal(got, want) {
		w.t.Fatalf("posts of messages %v, want %v", got, want)
	}
}

func postIDs(t testing.TB, log *badgerlog.Log) []int {
	t.Helper()
	var ids []int
	for after := ledger.Seq(0); ; {
		events, err := log.Read(t.Context(), after, 500)
		if err != nil {
			t.Fatal(err)
		}
		if len(events) == 0 {
			return ids
		}
		for _, e := range events {
			after = e.Seq
			if p, ok := e.Payload.(ledger.PostFetched); ok {
				var id int
				if _, err := fmt.Sscan(p.Item.ItemID, &id); err != nil {
					t.Fatal(err)
				}
				ids = append(ids, id)
			}
		}
	}
}

var errStopped = errors.New("stopped")

// sink is the ledger, which can be made to stop or to keep nothing.
type sink struct {
	*badgerlog.Log
	dry bool

	mu   sync.Mutex
	left int // appends until it stops; negative for never
}

func (s *sink) failAfter(n int) { s.left = n }

func (s *sink) Append(ctx context.Context, items []ledger.Item) ([]ledger.Appended, error) {
	s.mu.Lock()
	if s.left == 0 {
		s.mu.Unlock()
		return nil, errStopped
	}
	s.left--
	s.mu.Unlock()
	if s.dry {
		out := make([]ledger.Appended, len(items))
		for i := range out {
			out[i].Outcome = ledger.OutcomeNew
		}
		return out, nil
	}
	return s.Log.Append(ctx, items)
}

func (s *sink) Drop(_ context.Context, entries []crawl.Dropped) (int, error) {
	return len(entries), nil
}

func channel(from, to int) telegramtest.Channel {
	c := telegramtest.Channel{ID: port, Name: "Port_Example", Title: "Порт"}
	for id := from; id <= to; id++ {
		c.Messages = append(c.Messages, message(id))
	}
	return c
}

func message(id int) telegram.Message {
	return telegram.Message{
		ID: id, Date: noon.Add(-time.Hour + time.Duration(id)*time.Second),
		Text: fmt.Sprintf("Сообщение %d из порта\nо погрузке (https://example.org/%d)", id, id),
	}
}

func span(from, to int) []int {
	var ids []int
	for id := from; id <= to; id++ {
		ids = append(ids, id)
	}
	return ids
}
