//go:build !notelegram

package mtproto_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gotd/td/crypto"
	"github.com/gotd/td/session"
	"github.com/gotd/td/tg"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/fetch"
	"vesti.nixg.ru/crawl/telegram"
	"vesti.nixg.ru/crawl/telegram/mtproto"
	"vesti.nixg.ru/crawl/telegram/telegramtest"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
	"vesti.nixg.ru/ledger/ledgertest"
)

const port = int64(2000000001)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// world is a channel's source with everything around it: an account that is
// logged in at a server, a server of previews, a ledger.
type world struct {
	t       testing.TB
	server  *server
	preview *telegramtest.Preview
	log     *badgerlog.Log
	account *mtproto.Account
	kind    *telegram.Kind
	source  crawl.Source

	mu  sync.Mutex
	now time.Time
}

func newWorld(t testing.TB, change ...func(*mtproto.Options)) *world {
	t.Helper()
	w := bareWorld(t, newServer(t), change...)
	w.adopt(loggedIn())
	return w
}

// loggedIn is the session of somebody who has logged in at the shared server.
var loggedIn = sync.OnceValue(func() storedSession {
	dir, err := os.MkdirTemp("", "vesti-telegram")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	log, err := badgerlog.Open(context.Background(), badgerlog.Options{Dir: dir, FreeSpaceFloor: -1})
	if err != nil {
		panic(err)
	}
	defer log.Close()
	s := shared().server()
	account, err := mtproto.New(mtproto.Options{
		APIID: s.apiID, APIHash: "hash", Store: log.Store(telegram.Namespace), Server: s.options(), Pace: -1, ResolvePace: -1,
	})
	if err != nil {
		panic(err)
	}
	defer account.Close()
	if _, err := account.Login(context.Background(), &answers{}); err != nil {
		panic(err)
	}
	stored := storedSession{key: s.onlyKey()}
	err = log.Store(telegram.Namespace).View(context.Background(), func(tx ledger.Tx) error {
		if stored.current, err = tx.Get([]byte("session/current")); err != nil {
			return err
		}
		stored.self, err = tx.Get([]byte("session/self"))
		return err
	})
	if err != nil {
		panic(err)
	}
	return stored
})

// storedSession is a session as it is stored.
type storedSession struct {
	current, self []byte
	key           [8]byte
}

// adopt gives the world's account a session.
func (w *world) adopt(s storedSession) {
	w.t.Helper()
	w.server.set(func() { w.server.authed[s.key] = true })
	w.store(func(tx ledger.Tx) error {
		if err := tx.Set([]byte("session/self"), s.self); err != nil {
			return err
		}
		return tx.Set([]byte("session/current"), s.current)
	})
}

// store changes what is stored.
func (w *world) store(f func(tx ledger.Tx) error) {
	w.t.Helper()
	if err := w.log.Store(telegram.Namespace).Update(w.t.Context(), f); err != nil {
		w.t.Fatal(err)
	}
}

// stored is the session as it is stored now.
func (w *world) stored() []byte {
	w.t.Helper()
	var raw []byte
	err := w.log.Store(telegram.Namespace).View(w.t.Context(), func(tx ledger.Tx) (err error) {
		raw, err = tx.Get([]byte("session/current"))
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return raw
}

// authKey is the key of a session as it is stored. The rest of a session, its
// salt and addresses, changes while it is used.
func authKey(t testing.TB, stored []byte) crypto.Key {
	t.Helper()
	mem := &session.StorageMemory{}
	if err := mem.StoreSession(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	data, err := (&session.Loader{Storage: mem}).Load(t.Context())
	if err != nil {
		t.Fatalf("stored session: %v", err)
	}
	return crypto.Key(data.AuthKey)
}

// bareWorld is a world whose account is not logged in.
func bareWorld(t testing.TB, s *server, change ...func(*mtproto.Options)) *world {
	t.Helper()
	w := &world{t: t, server: s, preview: telegramtest.NewPreview(t), log: ledgertest.Open(t), now: noon}
	w.source = crawl.Source{Slug: "port", Channel: "port_example", Crawler: ledger.CrawlerTelegram, Enabled: true, Backfill: 100_000}
	w.preview.Set("port_example", telegramtest.Channel{Title: "Порт", NoPreview: true})
	w.open(change...)
	return w
}

// open makes the account and the kind on the world's ledger, as a start of the
// program does.
func (w *world) open(change ...func(*mtproto.Options)) {
	w.t.Helper()
	opts := w.options()
	for _, c := range change {
		c(&opts)
	}
	account, err := mtproto.New(opts)
	if err != nil {
		w.t.Fatal(err)
	}
	w.account = account
	w.t.Cleanup(func() { account.Close() })
	client := fetch.New(fetch.Options{HostGap: -1})
	w.t.Cleanup(client.Close)
	w.kind, err = telegram.New(telegram.Options{
		Fetch: client, Store: w.log.Store(telegram.Namespace), Account: account, PreviewURL: w.preview.URL, PreviewPace: -1,
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) options() mtproto.Options {
	return mtproto.Options{
		APIID: w.server.apiID, APIHash: "hash", Store: w.log.Store(telegram.Namespace), Server: w.server.options(),
		Pace: -1, ResolvePace: -1, CallTimeout: 10 * time.Second, MaxWait: 30 * time.Second, Now: w.time,
	}
}

func (w *world) time() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func (w *world) login() {
	w.t.Helper()
	if _, err := w.account.Login(w.t.Context(), &answers{}); err != nil {
		w.t.Fatalf("log in: %v", err)
	}
}

// answers is a person who logs in, and mistypes first where told to.
type answers struct {
	phone, wrongCode, wrongPassword string
	asked                           []string
}

func (a *answers) Phone(context.Context) (string, error) {
	if a.phone != "" {
		return a.phone, nil
	}
	return phone, nil
}

func (a *answers) Code(_ context.Context, sentBy string, wrong bool) (string, error) {
	a.asked = append(a.asked, fmt.Sprintf("code by %s %v", sentBy, wrong))
	if a.wrongCode != "" && !wrong {
		return a.wrongCode, nil
	}
	return code, nil
}

func (a *answers) Password(_ context.Context, hint string, wrong bool) (string, error) {
	a.asked = append(a.asked, fmt.Sprintf("password %q %v", hint, wrong))
	if a.wrongPassword != "" && !wrong {
		return a.wrongPassword, nil
	}
	return password, nil
}

func (w *world) crawl() (crawl.Report, error) {
	w.t.Helper()
	return w.kind.Crawl(w.t.Context(), crawl.Job{Source: w.source, Now: w.time(), Sink: sink{w.log}})
}

func (w *world) mustCrawl() crawl.Report {
	w.t.Helper()
	rep, err := w.crawl()
	if err != nil {
		w.t.Fatalf("crawl: %v (%+v)", err, rep)
	}
	return rep
}

// sink is the ledger as the crawler gives it to kinds.
type sink struct{ *badgerlog.Log }

func (sink) Drop(_ context.Context, entries []crawl.Dropped) (int, error) { return len(entries), nil }

func (w *world) post(id int) ledger.Post {
	w.t.Helper()
	known, err := w.log.KnownItems(w.t.Context(), []ledger.ItemKey{telegram.ItemKey(port, id)})
	if err != nil {
		w.t.Fatal(err)
	}
	p, err := w.log.Post(w.t.Context(), known[0].Post)
	if err != nil {
		w.t.Fatalf("post of message %d: %v", id, err)
	}
	return p
}

func (w *world) wantIDs(want []int) {
	w.t.Helper()
	wantIDs(w.t, w.log, want)
}

func wantIDs(t testing.TB, log *badgerlog.Log, want []int) {
	t.Helper()
	got := postIDs(t, log)
	if slices.Equal(got, want) {
		return
	}
	sorted := slices.Clone(got)
	slices.Sort(sorted)
	var missing []int
	for _, id := range want {
		if _, ok := slices.BinarySearch(sorted, id); !ok {
			missing = append(missing, id)
		}
	}
	t.Fatalf("%d posts, want %d; in order: %v; missing: %v", len(got), len(want), slices.Equal(got, sorted), missing)
}

// postIDs are the messages of all posts, in the ledger's order.
func postIDs(t testing.TB, log *badgerlog.Log) []int {
	t.Helper()
	var ids []int
	for after := ledger.Seq(0); ; {
		events, err := log.Read(t.Context(), after, 1000)
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

// portChannel is the channel of the world's source with messages of these ids.
func portChannel(from, to int) *channel {
	c := &channel{id: port, hash: 4242, name: "Port_Example", title: "Порт"}
	for id := from; id <= to; id++ {
		c.messages = append(c.messages, message(id))
	}
	return c
}

func message(id int) *tg.Message {
	m := &tg.Message{
		ID: id, Post: true, PeerID: &tg.PeerChannel{ChannelID: port}, Date: int(noon.Add(-time.Hour).Unix()) + id%3600,
		Message: fmt.Sprintf("Сообщение %d из порта\nо погрузке угля", id),
	}
	m.SetFlags()
	return m
}

// edit changes a message of the channel.
func (w *world) edit(c *channel, id int, change func(*tg.Message)) {
	w.server.set(func() {
		for i, m := range c.messages {
			if m, ok := m.(*tg.Message); ok && m.ID == id {
				edited := *m
				change(&edited)
				edited.SetFlags()
				c.messages[i] = &edited
			}
		}
	})
}

func (w *world) remove(c *channel, ids ...int) {
	w.server.set(func() {
		c.messages = slices.DeleteFunc(slices.Clone(c.messages), func(m tg.MessageClass) bool { return slices.Contains(ids, m.GetID()) })
	})
}

func span(from, to int) []int {
	var ids []int
	for id := from; id <= to; id++ {
		ids = append(ids, id)
	}
	return ids
}
