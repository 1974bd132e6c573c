package badgerlog

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/codec"
)

// Append stores items by the four identity rules, each on its own, and returns
// when all are durable: one answer for each, in order. It returns an error
// matching ledger.ErrInvalid or ErrTooLarge, with nothing written, where an item
// is not one, and ErrNoSpace below the floor of free space. After another error
// any of the items may be stored; appending them again does no harm.
func (l *Log) Append(ctx context.Context, items []ledger.Item) ([]ledger.Appended, error) {
	if len(items) == 0 {
		return nil, nil
	}
	for i := range items {
		if err := validItem(items[i]); err != nil {
			return nil, fmt.Errorf("item %d of %s (%s): %w", i+1, items[i].Source, items[i].Key, err)
		}
	}
	release, err := l.acquire()
	if err != nil {
		return nil, err
	}
	defer release()
	if err := l.space.check(l.opts); err != nil {
		return nil, err
	}
	news := make([]*arrival, len(items))
	bytes := 0
	for i := range items {
		news[i] = l.arrive(items[i])
		bytes += len(news[i].payload) + len(news[i].body)
	}
	l.space.spend(l.opts, bytes)
	done := make(chan error, 1)
	r := &request{
		steps: len(news),
		size:  func(i int) int { return len(news[i].payload) },
		step:  func(g *group, i int) error { return g.arrive(news[i]) },
		done:  func(err error) { done <- err },
	}
	if err := l.appender.submit(ctx, r); err != nil {
		return nil, err
	}
	failpoint("append.queued")
	select {
	case err = <-done:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("append items: %w", err)
	}
	out := make([]ledger.Appended, len(news))
	for i, n := range news {
		out[i] = n.out
	}
	return out, nil
}

func validItem(i ledger.Item) error {
	if err := i.Source.Validate(); err != nil {
		return err
	}
	if i.Key == "" {
		return fmt.Errorf("%w: no item key", ledger.ErrInvalid)
	}
	if i.Lane >= ledger.LaneCount {
		return fmt.Errorf("%w: lane %d", ledger.ErrInvalid, i.Lane)
	}
	if n := len(i.Text); n > ledger.MaxText {
		return fmt.Errorf("%w: text of %d bytes, at most %d are kept", ledger.ErrTooLarge, n, ledger.MaxText)
	}
	n := len(i.Key) + len(i.URL) + len(i.CanonicalURL) + len(i.Title) + len(i.Author) + len(i.PublishedRaw) + len(i.ForwardOf)
	for _, m := range i.Media {
		n += len(m)
	}
	if n > maxEnvelope {
		return fmt.Errorf("%w: %d bytes beside its text, at most %d are kept", ledger.ErrTooLarge, n, maxEnvelope)
	}
	return nil
}

// maxEnvelope bounds what an event holds beside a text.
const maxEnvelope = 256 << 10

// arrival is an item on its way in, with all that can be worked out before the
// transaction.
type arrival struct {
	item    ledger.Item
	key     sum16
	url     sum16
	hash    ledger.PostID
	title   [8]byte
	payload []byte // of a PostFetched, without its link
	body    []byte // the packed text; nil for an empty one
	out     ledger.Appended
}

func (l *Log) arrive(i ledger.Item) *arrival {
	a := &arrival{item: i, key: sumOf(string(i.Key)), hash: ledger.IdentifyText(i.Text, i.Key)}
	t := sha256.Sum256([]byte(i.Title))
	a.title = [8]byte(t[:8])
	if i.CanonicalURL != "" {
		a.url = sumOf(i.CanonicalURL)
	}
	if i.Text != "" {
		a.body = l.texts.pack(i.Text)
	}
	a.payload = codec.AppendPayload(make([]byte, 0, 256), ledger.PostFetched{
		ID: a.hash, NormVersion: ledger.NormVersion, Item: i, TextLen: len(i.Text),
	})
	return a
}

func (a *arrival) record(post ledger.PostNum) itemRecord {
	return itemRecord{post: post, fingerprint: a.item.Fingerprint, text: sum16(a.hash[:16]), title: a.title}
}

// arrive decides by the identity rules.
func (g *group) arrive(a *arrival) error {
	failpoint("append.begin")
	b, err := g.get(itemKey(a.key))
	if err != nil {
		return err
	}
	if b != nil {
		known, err := decodeItem(b)
		if err != nil {
			return fmt.Errorf("item %s: %w", a.item.Key, err)
		}
		return g.again(a, known)
	}
	post, err := g.hashOwner(ledger.Hash(a.hash))
	if err != nil {
		return err
	}
	if post != 0 {
		return g.seenAgain(a, post)
	}
	return g.fetched(a)
}

func (g *group) hashOwner(h ledger.Hash) (ledger.PostNum, error) {
	b, err := g.get(hashKey(h))
	if err != nil || b == nil {
		return 0, err
	}
	if len(b) != 8 {
		return 0, fmt.Errorf("hash %s: %w", h, errRecord)
	}
	return ledger.PostNum(seqOf(b)), nil
}

// fetched is rule 4: item new, text new.
func (g *group) fetched(a *arrival) error {
	seq := g.last + 1
	num := ledger.PostNum(seq)
	others, err := g.urlPosts(a)
	if err != nil {
		return err
	}
	var linked ledger.PostNum
	payload := a.payload
	if len(others) > 0 {
		linked = others[0]
		payload = codec.AppendLink(slices.Clip(payload), linked)
	}
	e := g.event(ledger.ActorCrawler, num, a.item.Source, ledger.PostFetched{
		ID: a.hash, Item: ledger.Item{Lane: a.item.Lane}, LinkedTo: linked, // the rest is in payload
	})
	if err := g.follow(postRecord{num: num}, e, payload); err != nil {
		return err
	}
	if err := g.putText(seq, a.body); err != nil {
		return err
	}
	if err := g.set(hashKey(ledger.Hash(a.hash)), seqBytes(uint64(num))); err != nil {
		return err
	}
	if err := g.putItem(a, num, others); err != nil {
		return err
	}
	failpoint("append.written")
	a.out = ledger.Appended{Outcome: ledger.OutcomeNew, Post: num, ID: a.hash, Seq: seq}
	g.countItem(a)
	return nil
}

func seqBytes(n uint64) []byte { return key8(0, n)[1:] }

// seenAgain is rule 3: item new, text known.
func (g *group) seenAgain(a *arrival, post ledger.PostNum) error {
	rec, err := g.post(post)
	if err != nil {
		return err
	}
	others, err := g.urlPosts(a)
	if err != nil {
		return err
	}
	carried, err := g.carries(rec, a.item.Source)
	if err != nil {
		return err
	}
	a.out = ledger.Appended{Outcome: ledger.OutcomeSeenAgain, Post: post, ID: rec.id}
	g.countItem(a)
	if carried {
		return g.putItem(a, post, others)
	}
	i := a.item
	e := g.event(ledger.ActorCrawler, post, i.Source, ledger.PostSeenAgain{
		Key: i.Key, URL: i.URL, CanonicalURL: i.CanonicalURL, Title: i.Title, Published: i.Published,
		ItemID: i.ItemID, Measures: i.Measures,
	})
	a.out.Seq = e.Seq
	if err := g.follow(rec, e, codec.AppendPayload(nil, e.Payload)); err != nil {
		return err
	}
	return g.putItem(a, post, others)
}

// carries reports whether source carries the post.
func (g *group) carries(rec postRecord, source ledger.Slug) (bool, error) {
	if slices.Contains(rec.carriers, source) {
		return true, nil
	}
	first, err := g.readEvent(ledger.Seq(rec.num))
	return first.Source == source, err
}

// again is rules 1 and 2: item known.
func (g *group) again(a *arrival, known itemRecord) error {
	rec, err := g.post(known.post)
	if err != nil {
		return err
	}
	now := a.record(known.post)
	if now.fingerprint.IsZero() {
		now.fingerprint = known.fingerprint
	}
	a.out = ledger.Appended{Outcome: ledger.OutcomeKnown, Post: rec.num, ID: rec.id}
	if now.text != known.text || now.title != known.title {
		changed, err := g.revised(a, rec, now.text != known.text)
		if err != nil {
			return err
		}
		if changed {
			g.countItem(a)
			return g.set(itemKey(a.key), now.encode())
		}
	}
	g.countItem(a)
	if now == known {
		return nil
	}
	return g.set(itemKey(a.key), now.encode())
}

// urlPosts returns the posts that have the item's canonical URL.
func (g *group) urlPosts(a *arrival) ([]ledger.PostNum, error) {
	if a.item.CanonicalURL == "" {
		return nil, nil
	}
	b, err := g.get(urlKey(a.url))
	return decodePosts(b), err
}

func (g *group) putURL(a *arrival, post ledger.PostNum, others []ledger.PostNum) error {
	if a.item.CanonicalURL == "" {
		return nil
	}
	if posts := withPost(others, post); posts != nil {
		return g.set(urlKey(a.url), encodePosts(posts))
	}
	return nil
}

// putItem writes the keys by which the item is known from now on.
func (g *group) putItem(a *arrival, post ledger.PostNum, others []ledger.PostNum) error {
	if err := g.set(itemKey(a.key), a.record(post).encode()); err != nil {
		return err
	}
	return g.putURL(a, post, others)
}

func (g *group) countItem(a *arrival) {
	g.count(func() { g.log.metrics.item(a.out.Outcome) })
}
