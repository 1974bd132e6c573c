package search

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	index "github.com/blevesearch/bleve_index_api"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/projections"
	"vesti.nixg.ru/projections/search/analyse"
)

const (
	// batchBytes and batchPosts bound what is analysed and written at once.
	batchBytes = 8 << 20
	batchPosts = 1000
	// batchPatience is how long a batch may take before Apply gives up waiting.
	batchPatience = time.Minute
	// closePatience is how long Close waits for bleve's goroutines.
	closePatience = 10 * time.Second
	// lazyEvents is how many events without text may pass before the stored
	// checkpoint moves.
	lazyEvents = 5000
)

// What the index stores beside its documents, in each batch.
var (
	keyCheckpoint = []byte("vesti.checkpoint")
	keyLengths    = []byte("vesti.lengths")
)

// fold is one generation of the index.
type fold struct {
	dir     string
	index   index.Index
	texts   Texts
	stemmer *analyse.Stemmer
	logger  *slog.Logger
	health  *health
	release func()     // what the open index holds beside its files
	target  ledger.Seq // the ledger's head at the opening: until it is reached the index is being built

	files          *files
	inspecting     sync.WaitGroup
	stopInspecting func()

	checkpoint atomic.Uint64
	stored     uint64 // the checkpoint on disk
	lengths    atomic.Pointer[lengths]
	pending    *pendingBatch // a batch that Apply gave up waiting for

	readers sync.RWMutex // held for reading by searches
	closed  bool         // guarded by readers
}

// lengths say how long documents are, for BM25. They add up every document
// that was ever indexed, which is close enough to those that are there.
type lengths struct{ documents, inText, inTitle uint64 }

// pendingBatch is a batch in bleve's hands.
type pendingBatch struct {
	done    chan error
	through ledger.Seq // zero for a part of a larger one
	lengths lengths
}

// Checkpoint implements projections.Fold.
func (f *fold) Checkpoint() ledger.Seq { return ledger.Seq(f.checkpoint.Load()) }

// Apply implements projections.Fold. It indexes the newest text of every post
// that the events touch, whichever of them brought it: what a later event will
// bring is then there early, and nothing is indexed twice.
func (f *fold) Apply(ctx context.Context, events []ledger.Event, through ledger.Seq) error {
	if err := f.health.err(); err != nil {
		return err
	}
	if f.pending != nil {
		if err := f.await(ctx); err != nil {
			return err
		}
	}
	if through <= f.Checkpoint() {
		return nil
	}
	touched := touchedPosts(events, f.Checkpoint())
	if len(touched) == 0 && uint64(through)-f.stored < lazyEvents {
		f.checkpoint.Store(uint64(through))
		return nil
	}
	for {
		entries, gone, rest, err := f.load(ctx, touched)
		if err != nil {
			return err
		}
		last := ledger.Seq(0)
		if len(rest) == 0 {
			last = through
		}
		if err := f.write(ctx, entries, gone, last); err != nil {
			return err
		}
		if len(rest) == 0 {
			return nil
		}
		touched = rest
	}
}

// touchedPosts lists the posts whose text or presence the events change, each
// once.
func touchedPosts(events []ledger.Event, after ledger.Seq) []ledger.PostNum {
	var posts []ledger.PostNum
	seen := map[ledger.PostNum]bool{}
	for _, e := range events {
		switch e.Payload.(type) {
		case ledger.PostFetched, ledger.PostRevised, ledger.PostRemoved, ledger.PostExpired:
		default:
			continue
		}
		if e.Seq > after && !seen[e.Post] {
			seen[e.Post] = true
			posts = append(posts, e.Post)
		}
	}
	return posts
}

// load reads posts until a batch is full. gone are those that are not to be
// found any more.
func (f *fold) load(ctx context.Context, posts []ledger.PostNum) (entries []*entry, gone, rest []ledger.PostNum, err error) {
	size := 0
	for i, num := range posts {
		if size >= batchBytes || len(entries) >= batchPosts {
			return entries, gone, posts[i:], nil
		}
		p, err := f.texts.Post(ctx, num)
		switch {
		case errors.Is(err, ledger.ErrNotFound), err == nil && (p.State.Removed || p.State.Expired):
			gone = append(gone, num)
		case errors.Is(err, ledger.ErrUnreadable):
			f.logger.Warn("post cannot be read and is left out of the search", "post", uint64(num), "error", err)
			gone = append(gone, num)
		case err != nil:
			return nil, nil, nil, fmt.Errorf("read the text of post %d: %w", num, err)
		default:
			size += len(p.Item.Text)
			entries = append(entries, &entry{num: num, title: p.Item.Title, text: p.Item.Text})
		}
	}
	return entries, gone, nil, nil
}

// write indexes entries in one batch, with the checkpoint where it is the last.
func (f *fold) write(ctx context.Context, entries []*entry, gone []ledger.PostNum, through ledger.Seq) error {
	analyseAll(f.stemmer, entries)
	sums := *f.lengths.Load()
	batch := index.NewBatch()
	for _, e := range entries {
		sums.documents++
		sums.inText += uint64(len(e.inText))
		sums.inTitle += uint64(len(e.inTitle))
		batch.Update(e.document())
	}
	for _, num := range gone {
		batch.Delete(documentID(num))
	}
	batch.SetInternal(keyLengths, sums.encode())
	if through > 0 {
		batch.SetInternal(keyCheckpoint, binary.BigEndian.AppendUint64(nil, uint64(through)))
	}
	p := &pendingBatch{done: make(chan error, 1), through: through, lengths: sums}
	f.pending = p
	go func() { p.done <- f.health.guard(func() error { return f.index.Batch(batch) }) }()
	return f.await(ctx)
}

// await waits for the batch in bleve's hands, which cannot be called off: after
// an error of the waiting it is still on its way, and the next Apply begins
// with waiting for it.
func (f *fold) await(ctx context.Context) error {
	p := f.pending
	timer := time.NewTimer(batchPatience)
	defer timer.Stop()
	select {
	case err := <-p.done:
		f.pending = nil
		if err != nil {
			return fmt.Errorf("write to the index: %w", err)
		}
	case <-f.health.broken():
		return f.health.err()
	case <-timer.C:
		return fmt.Errorf("the index has not taken a batch for %s; is its disk full?%s", batchPatience, f.health.lastError())
	case <-ctx.Done():
		return ctx.Err()
	}
	f.lengths.Store(&p.lengths)
	if p.through > 0 {
		f.stored = uint64(p.through)
		f.checkpoint.Store(uint64(p.through))
	}
	return nil
}

// Broken implements projections.Fragile.
func (f *fold) Broken() <-chan struct{} { return f.health.broken() }

// Err implements projections.Fragile.
func (f *fold) Err() error { return f.health.err() }

// Close implements projections.Fold.
func (f *fold) Close() error {
	f.readers.Lock()
	f.closed = true
	f.readers.Unlock()
	if f.stopInspecting != nil { // else the opening failed
		f.stopInspecting()
		f.inspecting.Wait()
	}
	done := make(chan error, 1)
	go func() {
		if f.pending != nil { // to close under a batch makes bleve panic
			select {
			case <-f.pending.done: //nolint:errcheck // nobody waits for it any more
			case <-f.health.broken():
			}
		}
		done <- f.health.guard(f.index.Close)
	}()
	select {
	case err := <-done:
		f.release()
		return err
	case <-time.After(closePatience):
		return fmt.Errorf("the index has not closed within %s; it is left to the end of the process", closePatience)
	}
}

// restore reads what the last batch stored.
func (f *fold) restore() error {
	r, err := f.index.Reader()
	if err != nil {
		return err
	}
	checkpoint, err := r.GetInternal(keyCheckpoint)
	if err != nil {
		return errors.Join(err, r.Close())
	}
	sums, err := r.GetInternal(keyLengths)
	if err != nil {
		return errors.Join(err, r.Close())
	}
	if len(checkpoint) == 8 {
		f.stored = binary.BigEndian.Uint64(checkpoint)
		f.checkpoint.Store(f.stored)
	}
	l := decodeLengths(sums)
	f.lengths.Store(&l)
	return r.Close()
}

func (l lengths) encode() []byte {
	var e projections.Encoder
	e.Uint(l.documents)
	e.Uint(l.inText)
	e.Uint(l.inTitle)
	return e.Bytes()
}

func decodeLengths(b []byte) lengths {
	if len(b) == 0 {
		return lengths{}
	}
	d := projections.NewDecoder(b)
	return lengths{documents: d.Uint(), inText: d.Uint(), inTitle: d.Uint()}
}
