package badgerlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	badger "github.com/dgraph-io/badger/v4"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/codec"
)

// RestoreReport is what Restore put in place.
type RestoreReport struct {
	VerifyReport
	Links int `json:"links"`
	// Replaced is where the store that was there before is now; "" for none.
	Replaced string `json:"replaced,omitempty"`
}

// restoringExt ends the name of the folder of a store that is being restored.
const restoringExt = ".restoring"

// Restore makes the store in o.Dir from a chain of backups, the whole one first.
// It builds a new store beside it, derives every index and state from the
// events, and proves the chain's hashes and counts and every invariant before
// the new one takes the old one's place; the old one is kept under another name.
// It returns an error matching ledger.ErrLocked while the store is in use, and
// ErrBackup for files that do not make a chain; the store is then as it was.
// Projections begin anew.
func Restore(ctx context.Context, o Options, chain []io.Reader) (RestoreReport, error) {
	o, err := o.withDefaults()
	if err != nil {
		return RestoreReport{}, err
	}
	if len(chain) == 0 {
		return RestoreReport{}, fmt.Errorf("%w: no file given", ErrBackup)
	}
	lock, err := lockFolder(ctx, o.Dir)
	if err != nil {
		return RestoreReport{}, fmt.Errorf("restore: %w", err)
	}
	defer lock.Close()
	report := RestoreReport{Links: len(chain)}
	building := o.Dir + restoringExt
	if err := os.RemoveAll(building); err != nil {
		return report, fmt.Errorf("restore: %w", err)
	}
	defer os.RemoveAll(building) //nolint:errcheck // gone once it is in place; else the next restore removes it
	if report.VerifyReport, err = build(ctx, o, building, chain); err != nil {
		return report, fmt.Errorf("restore: %w", err)
	}
	if report.Replaced, err = swap(o.Dir, building, o.Now()); err != nil {
		return report, fmt.Errorf("restore: %w", err)
	}
	return report, nil
}

// build makes and checks a store of its own.
func build(ctx context.Context, o Options, dir string, chain []io.Reader) (v VerifyReport, err error) {
	progress := o.Progress
	o.Dir, o.Durability, o.Registerer, o.GCInterval, o.Retention = dir, Relaxed, nil, -1, Retention{}
	l, err := Open(ctx, o)
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	r := &restorer{ctx: ctx, log: l, progress: progress}
	defer func() { r.discard() }()
	proof, err := r.load(chain)
	if err != nil {
		return v, err
	}
	if err := r.derive(); err != nil {
		return v, err
	}
	if v, err = l.Verify(ctx, VerifyOptions{Progress: progress}); err != nil {
		return v, err
	}
	if !v.OK() {
		return v, fmt.Errorf("%w: the store made of it has %d problems, the first: %s", ErrBackup, v.Problems, v.Found[0])
	}
	if v.Events != proof.Events || v.Texts != proof.Texts || v.Items != proof.Items {
		return v, fmt.Errorf("%w: it has %d events, %d texts, %d items, want %d, %d, %d",
			ErrBackup, v.Events, v.Texts, v.Items, proof.Events, proof.Texts, proof.Items)
	}
	if err := l.db.Sync(); err != nil {
		return v, fmt.Errorf("sync: %w", err)
	}
	return v, nil
}

// swap puts a new store in the old one's place. A process that dies in it leaves
// one of the two there, never none.
func swap(dir, building string, now time.Time) (replaced string, err error) {
	dir = filepath.Clean(dir)
	replaced = fmt.Sprintf("%s.before-restore-%s", dir, now.UTC().Format("20060102T150405.000"))
	if err := os.Rename(building, replaced); err != nil {
		return "", fmt.Errorf("put the new store in place: %w", err)
	}
	failpoint("restore.built")
	if err := exchange(replaced, dir); err != nil {
		return "", errors.Join(fmt.Errorf("put the new store in place: %w", err), os.Rename(replaced, building))
	}
	failpoint("restore.swapped")
	if empty(replaced) {
		return "", os.RemoveAll(replaced) //nolint:wrapcheck // names the folder
	}
	return replaced, syncFolder(filepath.Dir(dir))
}

// empty reports whether a folder has nothing but the lock's file.
func empty(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) == 1 && entries[0].Name() == lockName
}

// restorer writes into a new store that nobody else uses.
type restorer struct {
	ctx      context.Context //nolint:containedctx // of the one call that it is made for
	log      *Log
	progress Progress
	txn      *badger.Txn
	written  int
	steps    uint64
	lists    map[byte][]uint64 // of the link that is read: which keys of a prefix there are
}

func (r *restorer) begin() *badger.Txn {
	if r.txn == nil {
		r.txn = r.log.db.NewTransaction(true)
	}
	return r.txn
}

func (r *restorer) discard() {
	if r.txn != nil {
		r.txn.Discard()
		r.txn = nil
	}
}

func (r *restorer) commit() error {
	if r.txn == nil {
		return nil
	}
	if err := checkFull(r.log.opts); err != nil {
		return err
	}
	err := r.txn.Commit()
	r.txn, r.written = nil, 0
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// restoreBatch is how many bytes are written in one transaction, at most about.
const restoreBatch = 512 << 10

// change writes, or deletes where value is nil.
func (r *restorer) change(key, value []byte) error {
	if r.written > restoreBatch {
		if err := r.commit(); err != nil {
			return err
		}
	}
	r.written += len(key) + min(len(value), valueThreshold) + 32
	if r.steps++; r.steps%10000 == 0 {
		r.progress("restore", r.steps, 0)
		if err := context.Cause(r.ctx); err != nil {
			return err
		}
	}
	if value == nil {
		return r.begin().Delete(key) //nolint:wrapcheck // wrapped by Restore
	}
	return r.begin().Set(key, value) //nolint:wrapcheck // wrapped by Restore
}

// load reads the links and writes what they hold.
func (r *restorer) load(chain []io.Reader) (backupProof, error) {
	var proof backupProof
	var last BackupInfo
	for i, file := range chain {
		b, err := newBackupReader(file)
		if err != nil {
			return proof, fmt.Errorf("file %d: %w", i+1, err)
		}
		defer b.close()
		if b.info.Parent != last.ID || i > 0 && b.info.Store != last.Store {
			return proof, fmt.Errorf("file %d: %w: it is no %s", i+1, ErrBackup,
				map[bool]string{true: "whole backup", false: "next link of the file before it"}[i == 0])
		}
		last = b.info
		if i > 0 {
			if err := r.clearStores(); err != nil {
				return proof, err
			}
		}
		r.lists = make(map[byte][]uint64)
		if proof, err = b.pairs(r.change, r.list); err != nil {
			return proof, fmt.Errorf("file %d: %w", i+1, err)
		}
		if err := r.prune(); err != nil {
			return proof, fmt.Errorf("file %d: %w", i+1, err)
		}
	}
	return proof, r.commit()
}

// list takes down a part of a list.
func (r *restorer) list(part []byte) error {
	if len(part) == 0 || part[0] != keyEvent && part[0] != keyBody {
		return fmt.Errorf("%w: a list of other keys", ErrBackup)
	}
	all := r.lists[part[0]]
	for d := (reader{b: part[1:]}); len(d.b) > 0; {
		n := d.uvarint()
		if len(all) > 0 {
			n += all[len(all)-1]
		}
		if d.bad {
			return fmt.Errorf("%w: a list is damaged", ErrBackup)
		}
		all = append(all, n)
	}
	r.lists[part[0]] = all
	return nil
}

// prune removes what earlier links had and the lists no longer name.
func (r *restorer) prune() error {
	for prefix, there := range r.lists {
		err := r.remove(prefix, func(key []byte) bool {
			_, ok := slices.BinarySearch(there, seqOf(key))
			return !ok
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// clearStores removes what is beside the log: each link has all of it.
func (r *restorer) clearStores() error {
	return r.remove(keyStore, func([]byte) bool { return true })
}

func (r *restorer) remove(prefix byte, gone func(key []byte) bool) error {
	if err := r.commit(); err != nil {
		return err
	}
	var keys [][]byte
	err := r.log.db.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{prefix}})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			if gone(it.Item().Key()) {
				keys = append(keys, it.Item().KeyCopy(nil))
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	for _, k := range keys {
		if err := r.change(k, nil); err != nil {
			return err
		}
	}
	return nil
}

// derive makes everything that follows from the events: first the indexes, in
// the order of the log, then each post and source from its own events.
func (r *restorer) derive() error {
	var posts []ledger.PostNum
	sources := make(map[ledger.Slug]bool)
	err := r.log.db.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{keyEvent}})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			var e ledger.Event
			err := readValue(it.Item(), func(v []byte) error {
				e = codec.DecodeEvent(ledger.Seq(seqOf(it.Item().Key())), v)
				return nil
			})
			if err != nil {
				return err //nolint:wrapcheck // wrapped below
			}
			if e.Type == ledger.TypePostFetched {
				posts = append(posts, e.Post)
			} else if e.Post == 0 && e.Source != "" {
				sources[e.Source] = true
			}
			if err := r.index(e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("index events: %w", err)
	}
	if err := r.commit(); err != nil {
		return err
	}
	for _, num := range posts {
		if err := r.post(num); err != nil {
			return fmt.Errorf("post %d: %w", num, err)
		}
	}
	for slug := range sources {
		s, err := foldSource(r.begin(), slug)
		if err != nil {
			return fmt.Errorf("source %s: %w", slug, err)
		}
		if err := r.change(sourceKey(slug), codec.AppendSourceState(nil, s)); err != nil {
			return err
		}
	}
	return r.commit()
}

// index writes an event's entry in the index of its post or source.
func (r *restorer) index(e ledger.Event) error {
	switch {
	case e.Type == ledger.TypePostFetched:
		return nil
	case e.Post != 0:
		return r.change(postIdxKey(e.Post, e.Seq), []byte{})
	case e.Source != "":
		return r.change(srcIdxKey(e.Source, e.Seq), []byte{})
	default:
		return nil
	}
}

// post writes what follows from a post's events.
func (r *restorer) post(num ledger.PostNum) error {
	events, err := postEvents(r.begin(), num)
	if err != nil {
		return err
	}
	rec, err := foldPost(events)
	if err != nil {
		return err
	}
	if err := r.change(postKey(num), rec.encode()); err != nil {
		return err
	}
	if k := rec.where().key(); k != nil {
		if err := r.change(k, seqBytes(uint64(num))); err != nil {
			return err
		}
	}
	for _, e := range events {
		if err := r.identity(rec, e); err != nil {
			return err
		}
	}
	return nil
}

// identity writes the keys of an event's text and URL.
func (r *restorer) identity(rec postRecord, e ledger.Event) error {
	owner := seqBytes(uint64(rec.num))
	switch p := e.Payload.(type) {
	case ledger.PostFetched:
		if err := r.change(hashKey(ledger.Hash(p.ID)), owner); err != nil {
			return err
		}
		return r.url(rec.num, p.Item.CanonicalURL)
	case ledger.PostSeenAgain:
		return r.url(rec.num, p.CanonicalURL)
	case ledger.PostRevised:
		var err error
		switch {
		case p.New && p.LinkedTo == 0:
			err = r.change(hashKey(p.Hash), owner)
		case p.New:
			err = r.change(variantKey(rec.num, p.Hash), []byte{1})
		}
		if err != nil {
			return err
		}
		return r.url(rec.num, p.CanonicalURL)
	default:
		return nil
	}
}

func (r *restorer) url(num ledger.PostNum, url string) error {
	if url == "" {
		return nil
	}
	key := urlKey(sumOf(url))
	b, err := txnGet(r.begin(), key)
	if err != nil {
		return err
	}
	if with := withPost(decodePosts(b), num); with != nil {
		return r.change(key, encodePosts(with))
	}
	return nil
}
