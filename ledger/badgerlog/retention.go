package badgerlog

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"time"

	badger "github.com/dgraph-io/badger/v4"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/codec"
)

// Retention says what is removed by age; a zero duration keeps for ever. A
// post's identity, its events and its state always stay.
type Retention struct {
	// Posts: the texts of posts that were fetched longer ago are removed, and
	// PostExpired says so. What is pending, and what an editor picked, stays.
	Posts time.Duration
	// Revisions: texts of older revisions that are no longer a post's newest.
	Revisions time.Duration
	// Runs: runs of sources are folded into one RunsSummarised for each source.
	Runs time.Duration
}

// RetentionReport is what Retain removed.
type RetentionReport struct {
	Posts     int `json:"posts"`     // whose texts are gone
	Revisions int `json:"revisions"` // older texts that are gone
	Runs      int `json:"runs"`      // that are folded
}

// Retain removes what is older than r says and returns what it removed. It can
// be stopped and run again at any time. The space is given back by the
// collection that follows; see Compact and Options.GCInterval.
func (l *Log) Retain(ctx context.Context, r Retention) (RetentionReport, error) {
	var report RetentionReport
	now := l.now()
	var err error
	if r.Runs > 0 {
		if report.Runs, err = l.foldRuns(ctx, now.Add(-r.Runs)); err != nil {
			return report, fmt.Errorf("retention of runs: %w", err)
		}
	}
	if r.Revisions > 0 {
		if report.Revisions, err = l.dropRevisions(ctx, now.Add(-r.Revisions)); err != nil {
			return report, fmt.Errorf("retention of revisions: %w", err)
		}
	}
	if r.Posts > 0 {
		if report.Posts, err = l.expirePosts(ctx, now.Add(-r.Posts)); err != nil {
			return report, fmt.Errorf("retention of posts: %w", err)
		}
	}
	return report, nil
}

// each runs steps through the appender and waits for them.
func (l *Log) each(ctx context.Context, n int, step func(g *group, i int) error) error {
	if n == 0 {
		return nil
	}
	release, err := l.acquire()
	if err != nil {
		return err
	}
	defer release()
	done := make(chan error, 1)
	r := &request{steps: n, size: func(int) int { return stepReserve }, step: step, done: func(err error) { done <- err }}
	if err := l.appender.submit(ctx, r); err != nil {
		return err
	}
	return <-done
}

// seqBefore returns the last Seq whose event is older than at, 0 for none. It
// searches by halves: events come in the order of time, but for jumps of the
// clock, which retention can bear.
func (l *Log) seqBefore(ctx context.Context, at time.Time) (ledger.Seq, error) {
	head := int(l.Head())
	var n int
	err := l.view(ctx, func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{keyEvent}})
		defer it.Close()
		var failed error
		n = sort.Search(head, func(i int) bool {
			it.Seek(eventKey(ledger.Seq(i + 1)))
			if !it.Valid() {
				return true
			}
			var e ledger.Event
			err := readValue(it.Item(), func(v []byte) error {
				e = codec.DecodeEvent(ledger.Seq(seqOf(it.Item().Key())), v)
				return nil
			})
			if err != nil {
				failed = err
			}
			return !e.At.Before(at)
		})
		return failed
	})
	return ledger.Seq(n), err
}

const retainBatch = 500

// expirePosts removes the texts of posts fetched before a time.
func (l *Log) expirePosts(ctx context.Context, before time.Time) (int, error) {
	through, err := l.seqBefore(ctx, before)
	if err != nil {
		return 0, err
	}
	total := 0
	for from := ledger.PostNum(0); ; {
		var old []postTexts
		old, from, err = l.oldPosts(ctx, from, ledger.PostNum(through), expires)
		if err != nil || len(old) == 0 {
			return total, err
		}
		err = l.each(ctx, len(old), func(g *group, i int) error { return g.expire(old[i]) })
		if err != nil {
			return total, err
		}
		total += len(old)
	}
}

func expires(rec postRecord) bool {
	return rec.state.Status != ledger.StatusPending && !rec.state.Expired && rec.state.Verdict != ledger.VerdictPicked
}

// postTexts is a post and where its texts are.
type postTexts struct {
	rec   postRecord
	texts []ledger.Seq
}

// oldPosts returns the next posts after a number, up to another, that wanted
// wants, and the number to go on from.
func (l *Log) oldPosts(ctx context.Context, after, through ledger.PostNum, wanted func(postRecord) bool) (old []postTexts, last ledger.PostNum, err error) {
	last = after
	err = l.view(ctx, func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{keyPost}})
		defer it.Close()
		for it.Seek(postKey(after + 1)); it.Valid() && len(old) < retainBatch; it.Next() {
			if l.closing.Load() {
				return ledger.ErrClosed
			}
			num := ledger.PostNum(seqOf(it.Item().Key()))
			if num > through {
				return nil
			}
			last = num
			var rec postRecord
			err := readValue(it.Item(), func(v []byte) error {
				var err error
				rec, err = decodePost(num, v)
				return err
			})
			if err != nil {
				return fmt.Errorf("post %d: %w", num, err)
			}
			if !wanted(rec) {
				continue
			}
			texts, err := textsOf(txn, rec)
			if err != nil {
				return err
			}
			old = append(old, postTexts{rec, texts})
		}
		return nil
	})
	return old, last, err
}

// textsOf returns the events of a post that brought a text.
func textsOf(txn *badger.Txn, rec postRecord) ([]ledger.Seq, error) {
	texts := []ledger.Seq{ledger.Seq(rec.num)}
	if rec.revised == 0 {
		return texts, nil
	}
	events, err := postEvents(txn, rec.num)
	if err != nil {
		return nil, err
	}
	for _, e := range events {
		if p, ok := e.Payload.(ledger.PostRevised); ok && p.TextChanged {
			texts = append(texts, e.Seq)
		}
	}
	return texts, nil
}

func (g *group) expire(p postTexts) error {
	rec, err := g.post(p.rec.num)
	if err != nil {
		return err
	}
	if !expires(rec) || rec.revised != p.rec.revised {
		return nil // changed meanwhile: the next round's affair
	}
	return g.expireNow(rec, p.texts)
}

func (g *group) expireNow(rec postRecord, texts []ledger.Seq) error {
	e := g.event(ledger.ActorLedger, rec.num, "", ledger.PostExpired{})
	if err := g.follow(rec, e, nil); err != nil {
		return err
	}
	for _, seq := range texts {
		if err := g.delete(bodyKey(seq)); err != nil {
			return err
		}
	}
	return nil
}

// dropRevisions removes texts that stopped being their post's newest and that
// came before a time.
func (l *Log) dropRevisions(ctx context.Context, before time.Time) (int, error) {
	through, err := l.seqBefore(ctx, before)
	if err != nil {
		return 0, err
	}
	total := 0
	for from := ledger.PostNum(0); ; {
		var old []postTexts
		old, from, err = l.oldPosts(ctx, from, ledger.PostNum(through), func(rec postRecord) bool {
			return rec.text != ledger.Seq(rec.num) && !rec.state.Expired
		})
		if err != nil || len(old) == 0 {
			return total, err
		}
		drop, err := l.superseded(ctx, old, through)
		if err != nil {
			return total, err
		}
		if len(drop) == 0 {
			continue
		}
		for part := range slices.Chunk(drop, retainBatch) {
			err := l.each(ctx, 1, func(g *group, _ int) error { return g.dropTexts(part, through) })
			if err != nil {
				return total, err
			}
			total += len(part)
		}
	}
}

func (g *group) dropTexts(seqs []ledger.Seq, through ledger.Seq) error {
	e := g.event(ledger.ActorLedger, 0, "", ledger.BodiesDropped{Through: through, Count: len(seqs)})
	if err := g.putEvent(e, codec.AppendEvent(nil, e)); err != nil {
		return err
	}
	for _, seq := range seqs {
		if err := g.delete(bodyKey(seq)); err != nil {
			return err
		}
	}
	return nil
}

// superseded returns the texts, still there, that are no post's newest.
func (l *Log) superseded(ctx context.Context, posts []postTexts, through ledger.Seq) ([]ledger.Seq, error) {
	var drop []ledger.Seq
	err := l.view(ctx, func(txn *badger.Txn) error {
		for _, p := range posts {
			for _, seq := range p.texts {
				if seq > through || seq == p.rec.text {
					continue
				}
				if _, err := txn.Get(bodyKey(seq)); err == nil {
					drop = append(drop, seq)
				}
			}
		}
		return nil
	})
	return drop, err
}

// foldRuns folds the runs of each source from before a time.
func (l *Log) foldRuns(ctx context.Context, before time.Time) (int, error) {
	var slugs []ledger.Slug
	err := l.view(ctx, func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{keySource}})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			slugs = append(slugs, ledger.Slug(it.Item().Key()[1:]))
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	total := 0
	for _, slug := range slugs {
		for {
			f, err := l.fold(ctx, slug, before)
			if err != nil {
				return total, err
			}
			if len(f.gone) == 0 {
				break
			}
			if err := l.each(ctx, 1, func(g *group, _ int) error { return g.fold(f) }); err != nil {
				return total, err
			}
			total += len(f.gone)
			l.metrics.pruned.Add(float64(len(f.gone)))
		}
	}
	return total, nil
}

// runFold is a summary and the events that it takes the place of.
type runFold struct {
	summary ledger.Event
	gone    []ledger.Seq
}

// fold prepares the summary of a source's oldest runs, up to a batch of them.
// The last one's Seq becomes the summary's.
func (l *Log) fold(ctx context.Context, slug ledger.Slug, before time.Time) (runFold, error) {
	var f runFold
	err := l.view(ctx, func(txn *badger.Txn) error {
		var state ledger.SourceState
		sum := ledger.RunsSummarised{}
		it := txn.NewIterator(badger.IteratorOptions{Prefix: srcIdxPrefix(slug)})
		defer it.Close()
		for it.Rewind(); it.Valid() && len(f.gone) < retainBatch; it.Next() {
			e, err := readEvent(txn, ledger.Seq(seqOf(it.Item().Key())))
			if err != nil {
				return err
			}
			if !e.At.Before(before) {
				return nil
			}
			state = state.Apply(e)
			if !addRun(&sum, e) {
				continue
			}
			if f.summary.Seq != 0 {
				f.gone = append(f.gone, f.summary.Seq)
			}
			sum.Through, sum.State, sum.To = e.Seq, state, e.At
			if sum.From.IsZero() {
				sum.From = e.At
			}
			f.summary = ledger.Event{
				Seq: e.Seq, At: e.At, Type: ledger.TypeRunsSummarised, Version: codec.Version,
				Actor: ledger.ActorLedger, Source: slug, Payload: sum,
			}
		}
		return nil
	})
	return f, err
}

// addRun adds a run, or an earlier summary, to sum; it reports false for any
// other event, which stays.
func addRun(sum *ledger.RunsSummarised, e ledger.Event) bool {
	var run ledger.Run
	switch p := e.Payload.(type) {
	case ledger.SourceCrawled:
		run = p.Run
	case ledger.SourceFailed:
		run = p.Run
		sum.Failed++
	case ledger.SourceThrottled:
		run = p.Run
	case ledger.RunsSummarised:
		sum.From = p.From
		sum.Runs += p.Runs
		sum.Failed += p.Failed
		sum.Fetched += p.Fetched
		sum.New += p.New
		return true
	default:
		return false
	}
	sum.Runs++
	sum.Fetched += run.Fetched
	sum.New += run.New
	return true
}

func (g *group) fold(f runFold) error {
	for _, seq := range f.gone {
		if err := g.delete(eventKey(seq)); err != nil {
			return err
		}
		if err := g.delete(srcIdxKey(f.summary.Source, seq)); err != nil {
			return err
		}
	}
	return g.set(eventKey(f.summary.Seq), codec.AppendEvent(nil, f.summary))
}
