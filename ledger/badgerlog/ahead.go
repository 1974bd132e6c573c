package badgerlog

import (
	"bytes"

	badger "github.com/dgraph-io/badger/v4"

	"vesti.nixg.ru/ledger"
)

const (
	aheadLen   = 64      // posts read ahead at a time
	aheadBytes = 1 << 20 // of their stored texts, at most about
)

// ahead is the stored form of what a claim of a post needs, read together with
// that of its neighbours: a point read unpacks a whole block for one record,
// this one uses most of it. It is as old as the view it was read from; whether
// it still holds is decided like every claim, by the version of the record.
type ahead struct {
	asOf    ledger.Seq
	version uint64 // of the record
	record  []byte
	event   []byte
	text    []byte // nil for none
}

// readAhead reads for the entries that follow one of a queue. One caller reads,
// the others wait for it and find what it has read.
func (l *Log) readAhead(id queueID) {
	l.queue.reading.Lock()
	defer l.queue.reading.Unlock()
	posts := l.queue.unread(id, aheadLen)
	if len(posts) < 2 {
		return // a point read does as well
	}
	got := make(map[ledger.PostNum]*ahead, len(posts))
	err := l.snapshot.view(l, ledger.Seq(posts[len(posts)-1]), false, func(txn *badger.Txn) error {
		rows := newRows(txn)
		defer rows.close()
		asOf := l.snapshot.head
		size := 0
		for _, p := range posts {
			a := rows.post(p)
			if a == nil {
				continue
			}
			a.asOf = asOf
			got[p] = a
			if size += len(a.text); size > aheadBytes {
				break
			}
		}
		return nil
	})
	if err == nil {
		l.queue.keepAhead(id, got)
	}
}

// unread returns the posts that come next in a queue, in the order of their
// numbers, up to the first for which something was read ahead.
func (d *dispenser) unread(id queueID, limit int) []ledger.PostNum {
	d.mu.Lock()
	defer d.mu.Unlock()
	var posts []ledger.PostNum
	for _, e := range d.queue(id).ready {
		if len(posts) == limit || e.ahead != nil {
			break
		}
		if n := len(posts); n > 0 && posts[n-1] > e.post {
			break
		}
		posts = append(posts, e.post)
	}
	return posts
}

func (d *dispenser) keepAhead(id queueID, got map[ledger.PostNum]*ahead) {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := d.queue(id)
	for i := range min(len(q.ready), 2*aheadLen) {
		if a := got[q.ready[i].post]; a != nil {
			q.ready[i].ahead = a
		}
	}
}

// rows are iterators that read keys which come in order.
type rows struct{ records, events, texts row }

func newRows(txn *badger.Txn) *rows {
	open := func(prefix byte) row {
		return row{it: txn.NewIterator(badger.IteratorOptions{Prefix: []byte{prefix}})}
	}
	return &rows{open(keyPost), open(keyEvent), open(keyBody)}
}

func (r *rows) close() {
	r.records.it.Close()
	r.events.it.Close()
	r.texts.it.Close()
}

// post reads what a claim of a post needs, nil where it must be read in full
// when it is claimed: it was revised, or part of it cannot be read.
func (r *rows) post(p ledger.PostNum) *ahead {
	a := &ahead{}
	var err error
	if a.record, a.version, err = r.records.get(postKey(p)); err != nil || a.record == nil {
		return nil
	}
	rec, err := decodePost(p, a.record)
	if err != nil || rec.revised != 0 {
		return nil
	}
	if a.event, _, err = r.events.get(eventKey(ledger.Seq(p))); err != nil || a.event == nil {
		return nil
	}
	if a.text, _, err = r.texts.get(bodyKey(rec.text)); err != nil {
		return nil
	}
	return a
}

type row struct {
	it     *badger.Iterator
	placed bool
}

// nearby is how many steps are tried before a seek, which costs many of them.
const nearby = 8

// get returns a copy of the value of key and its version, nil where it is not
// there.
func (r *row) get(key []byte) ([]byte, uint64, error) {
	if !r.placed {
		r.it.Seek(key)
		r.placed = true
	}
	for step := 0; r.it.Valid(); step++ {
		switch c := bytes.Compare(r.it.Item().Key(), key); {
		case c > 0:
			return nil, 0, nil
		case c == 0:
			v, err := copyValue(r.it.Item())
			return v, r.it.Item().Version(), err
		case step == nearby:
			r.it.Seek(key)
		default:
			r.it.Next()
		}
	}
	return nil, 0, nil
}
