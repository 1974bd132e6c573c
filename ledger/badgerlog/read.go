package badgerlog

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	badger "github.com/dgraph-io/badger/v4"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/codec"
)

// Head returns the Seq of the newest durable event; zero for an empty ledger.
func (l *Log) Head() ledger.Seq { return l.head.get() }

// Wait returns when Head is past after, or ctx or the ledger ends.
func (l *Log) Wait(ctx context.Context, after ledger.Seq) error { return l.head.wait(ctx, after) }

// defaultRead is how many events a read without a limit returns.
const defaultRead = 1000

// Read returns up to limit events after a Seq in order, none where there is
// none; limit 0 is 1000. Texts are left out. What cannot be read is Unknown.
func (l *Log) Read(ctx context.Context, after ledger.Seq, limit int) ([]ledger.Event, error) {
	return l.read(ctx, after, limit, false)
}

// ReadTexts is Read with the texts of posts. A text that retention removed, or
// that is damaged, is empty.
func (l *Log) ReadTexts(ctx context.Context, after ledger.Seq, limit int) ([]ledger.Event, error) {
	return l.read(ctx, after, limit, true)
}

func (l *Log) read(ctx context.Context, after ledger.Seq, limit int, withTexts bool) ([]ledger.Event, error) {
	if limit <= 0 {
		limit = defaultRead
	}
	head := l.Head()
	if head <= after {
		return nil, context.Cause(ctx)
	}
	events := make([]ledger.Event, 0, min(limit, int(head-after)))
	err := l.view(ctx, func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{keyEvent}})
		defer it.Close()
		for it.Seek(eventKey(after + 1)); it.Valid() && len(events) < limit; it.Next() {
			seq := ledger.Seq(seqOf(it.Item().Key()))
			if seq > head {
				return nil
			}
			err := readValue(it.Item(), func(v []byte) error {
				events = append(events, codec.DecodeEvent(seq, v))
				return nil
			})
			if errors.Is(err, errValue) {
				l.unreadable(fmt.Errorf("event %d: %w", seq, err))
				events = append(events, ledger.Event{Seq: seq, Payload: ledger.Unknown{Err: err.Error()}})
			} else if err != nil {
				return fmt.Errorf("event %d: %w", seq, err)
			}
		}
		if withTexts {
			l.addTexts(txn, events)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read events after %d: %w", after, err)
	}
	return events, nil
}

// addTexts reads the texts of events that come in order: by one iterator, which
// unpacks each block of the store once. One that is damaged stays empty, so that
// whoever follows the log is not held up by it.
func (l *Log) addTexts(txn *badger.Txn, events []ledger.Event) {
	bodies := row{it: txn.NewIterator(badger.IteratorOptions{Prefix: []byte{keyBody}})}
	defer bodies.it.Close()
	for i, e := range events {
		if _, ok := codec.Text(e.Payload); !ok {
			continue
		}
		packed, _, err := bodies.get(bodyKey(e.Seq))
		text := ""
		if err == nil && packed != nil {
			text, err = l.texts.unpack(packed, textLen(e.Payload))
		}
		if err != nil {
			l.unreadable(fmt.Errorf("text of event %d: %w", e.Seq, err))
		}
		events[i].Payload = codec.SetText(e.Payload, text)
	}
}

// textLen is the length of a payload's text, 0 where it is not known.
func textLen(p ledger.Payload) int {
	switch p := p.(type) {
	case ledger.PostFetched:
		return p.TextLen
	case ledger.PostRevised:
		return p.TextLen
	default:
		return 0
	}
}

// Post returns a post with its newest text, which is empty once retention has
// removed it. It returns an error matching ledger.ErrNotFound.
func (l *Log) Post(ctx context.Context, n ledger.PostNum) (ledger.Post, error) {
	var p ledger.Post
	err := l.view(ctx, func(txn *badger.Txn) error {
		rec, err := readPost(txn, n)
		if err != nil {
			return err
		}
		p = ledger.Post{Num: n, ID: rec.id, State: rec.state, Revisions: rec.state.Revision, LinkedTo: rec.linked}
		if p.Item, err = l.readItem(txn, rec); err != nil {
			return fmt.Errorf("post %d: %w", n, err)
		}
		first, err := readEvent(txn, ledger.Seq(n))
		if err != nil {
			return err
		}
		p.Fetched = first.At
		if rec.decision == 0 {
			return nil
		}
		e, err := readEvent(txn, rec.decision)
		if err != nil {
			return err
		}
		if c, ok := e.Payload.(ledger.PostClassified); ok {
			p.Decision = c.Classification
		}
		return nil
	})
	return p, err
}

// KnownItems tells what is known of items, in their order.
func (l *Log) KnownItems(ctx context.Context, keys []ledger.ItemKey) ([]ledger.KnownItem, error) {
	known := make([]ledger.KnownItem, len(keys))
	err := l.view(ctx, func(txn *badger.Txn) error {
		for i, k := range keys {
			b, err := txnGet(txn, itemKey(sumOf(string(k))))
			if err != nil {
				return err
			}
			if b == nil {
				continue
			}
			rec, err := decodeItem(b)
			if err != nil {
				return fmt.Errorf("item %s: %w", k, err)
			}
			known[i] = ledger.KnownItem{Post: rec.post, Fingerprint: rec.fingerprint, Text: rec.text}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return known, nil
}

// KnownText tells which post has the text, or had it, that id identifies, and
// whether source carries that post.
func (l *Log) KnownText(ctx context.Context, source ledger.Slug, id ledger.PostID) (ledger.KnownText, error) {
	var known ledger.KnownText
	err := l.view(ctx, func(txn *badger.Txn) error {
		b, err := txnGet(txn, hashKey(ledger.Hash(id)))
		if err != nil || b == nil {
			return err
		}
		if len(b) != 8 {
			return fmt.Errorf("hash %s: %w", id, errRecord)
		}
		rec, err := readPost(txn, ledger.PostNum(seqOf(b)))
		if err != nil {
			return err
		}
		item, err := l.readItem(txn, rec)
		if err != nil {
			return fmt.Errorf("post %d: %w", rec.num, err)
		}
		known = ledger.KnownText{
			Post: rec.num, Title: item.Title, CanonicalURL: item.CanonicalURL,
			Carried: item.Source == source || slices.Contains(rec.carriers, source),
		}
		return nil
	})
	return known, err
}

// Source returns a source's folded state, the zero state for a slug that no
// event names.
func (l *Log) Source(ctx context.Context, slug ledger.Slug) (ledger.SourceState, error) {
	var s ledger.SourceState
	err := l.view(ctx, func(txn *badger.Txn) error {
		var err error
		s, err = readSource(txn, slug)
		return err
	})
	return s, err
}

func readSource(txn *badger.Txn, slug ledger.Slug) (ledger.SourceState, error) {
	b, err := txnGet(txn, sourceKey(slug))
	if err != nil || b == nil {
		return ledger.SourceState{}, err
	}
	s, err := codec.DecodeSourceState(b)
	if err != nil {
		return s, fmt.Errorf("source %s: %w", slug, err)
	}
	return s, nil
}

// minPrefix is the shortest beginning of a PostID that names a post.
const minPrefix = 8

// FindPost returns the post that id names: a PostID, its first 8 or more
// digits, or a post's number. It returns an error matching ledger.ErrNotFound,
// ErrAmbiguous where a beginning fits several posts, or ErrInvalid.
func (l *Log) FindPost(ctx context.Context, id string) (ledger.PostNum, error) {
	id = strings.ToLower(strings.TrimSpace(id))
	n, numErr := strconv.ParseUint(id, 10, 64)
	whole := id[:len(id)/2*2]
	prefix, hexErr := hex.DecodeString(whole)
	if numErr != nil && (hexErr != nil || len(id) < minPrefix || len(id) > 64) {
		return 0, fmt.Errorf("%w: post %q: want a number, or %d to 64 hexadecimal digits", ledger.ErrInvalid, id, minPrefix)
	}
	var found ledger.PostNum
	err := l.view(ctx, func(txn *badger.Txn) error {
		if numErr == nil {
			rec, err := readPost(txn, ledger.PostNum(n))
			if err == nil {
				found = rec.num
				return nil
			}
			if !errors.Is(err, ledger.ErrNotFound) || len(id) < minPrefix {
				return err
			}
		}
		var err error
		found, err = findHash(txn, prefix, id)
		return err
	})
	return found, err
}

func findHash(txn *badger.Txn, prefix []byte, id string) (ledger.PostNum, error) {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: append([]byte{keyHash}, prefix...)})
	defer it.Close()
	var found ledger.PostNum
	for it.Rewind(); it.Valid(); it.Next() {
		if !strings.HasPrefix(hex.EncodeToString(it.Item().Key()[1:]), id) {
			continue
		}
		v, err := copyValue(it.Item())
		if err != nil || len(v) != 8 {
			return 0, fmt.Errorf("post %q: %w", id, errors.Join(err, errRecord))
		}
		post := ledger.PostNum(seqOf(v))
		if found != 0 && found != post {
			return 0, fmt.Errorf("post %q: %w", id, ledger.ErrAmbiguous)
		}
		found = post
	}
	if found == 0 {
		return 0, fmt.Errorf("post %q: %w", id, ledger.ErrNotFound)
	}
	return found, nil
}

// PostEvents returns all events of a post in order, with their texts. It
// returns an error matching ledger.ErrNotFound.
func (l *Log) PostEvents(ctx context.Context, n ledger.PostNum) ([]ledger.Event, error) {
	var events []ledger.Event
	err := l.view(ctx, func(txn *badger.Txn) error {
		if _, err := readPost(txn, n); err != nil {
			return err
		}
		seqs := append([]ledger.Seq{ledger.Seq(n)}, indexed(txn, postIdxPrefix(n), 0)...)
		for _, seq := range seqs {
			e, err := readEvent(txn, seq)
			if err != nil {
				return err
			}
			events = append(events, e)
		}
		l.addTexts(txn, events)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return events, nil
}

// SourceEvents returns the newest events of a source, up to limit, the oldest
// of them first; limit 0 is 1000. Runs that retention has folded are one
// RunsSummarised.
func (l *Log) SourceEvents(ctx context.Context, slug ledger.Slug, limit int) ([]ledger.Event, error) {
	if limit <= 0 {
		limit = defaultRead
	}
	var events []ledger.Event
	err := l.view(ctx, func(txn *badger.Txn) error {
		for _, seq := range indexed(txn, srcIdxPrefix(slug), limit) {
			e, err := readEvent(txn, seq)
			if err != nil {
				return err
			}
			events = append(events, e)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("events of source %s: %w", slug, err)
	}
	return events, nil
}

// indexed returns the numbers that end the keys with a prefix, in order: all of
// them, or the newest where newest is not zero.
func indexed(txn *badger.Txn, prefix []byte, newest int) []ledger.Seq {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: prefix, Reverse: newest > 0})
	defer it.Close()
	var seqs []ledger.Seq
	start := prefix
	if newest > 0 {
		start = append(append([]byte{}, prefix...), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
	}
	for it.Seek(start); it.Valid() && (newest == 0 || len(seqs) < newest); it.Next() {
		seqs = append(seqs, ledger.Seq(seqOf(it.Item().Key())))
	}
	if newest > 0 {
		for i, j := 0, len(seqs)-1; i < j; i, j = i+1, j-1 {
			seqs[i], seqs[j] = seqs[j], seqs[i]
		}
	}
	return seqs
}

// Queue returns what the engine alone knows of the queue.
func (l *Log) Queue() ledger.QueueGauge { return l.queue.gauge() }

// Parked returns up to limit parked posts, by number; limit 0 is all. An empty
// cause is every cause.
func (l *Log) Parked(ctx context.Context, cause ledger.Cause, limit int) ([]ledger.PostNum, error) {
	prefix := []byte{keyParked}
	if cause != "" {
		prefix = parkedPrefix(cause)
	}
	var posts []ledger.PostNum
	err := l.view(ctx, func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: prefix})
		defer it.Close()
		for it.Rewind(); it.Valid() && (limit <= 0 || len(posts) < limit); it.Next() {
			posts = append(posts, ledger.PostNum(seqOf(it.Item().Key())))
		}
		return nil
	})
	return posts, err
}
