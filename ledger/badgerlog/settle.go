package badgerlog

import (
	"vesti.nixg.ru/ledger"
)

// effect is what a step did to a post's record.
type effect struct {
	before, after postRecord
	refused       token // a grant that the record did not bear out
}

// settle follows what the appender has committed, up to a Seq.
func (d *dispenser) settle(effects []effect, upTo ledger.Seq) {
	if len(effects) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range effects {
		d.settleOne(e)
		if e.before.id == e.after.id && e.after.state.Status == ledger.StatusPending && !d.live(e.after.claim) {
			d.changed = upTo
		}
	}
}

func (d *dispenser) settleOne(e effect) {
	before, after := e.before.where(), e.after.where()
	d.waiting += count(after.kind == keyDelayed) - count(before.kind == keyDelayed)
	h := d.inHand[e.after.num]
	if d.live(e.after.claim) {
		if h != nil {
			h.place, h.claim = after, e.after.claim
		}
		return
	}
	if h != nil {
		if h.place == after && h.claim != e.before.claim && h.claim != e.refused {
			return // granted and not recorded yet: that step decides
		}
		delete(d.inHand, e.after.num)
		if after.kind == keyReady {
			d.offer(after)
		}
		return
	}
	if after.kind == keyReady && before != after {
		d.offer(after)
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// live reports whether t is a claim of this process.
func (d *dispenser) live(t token) bool { return t != 0 && t.epoch() == d.epoch }

// offer puts an entry into its queue and wakes somebody for it.
func (d *dispenser) offer(p place) {
	q := d.queue(p.queue)
	switch {
	case p.seq <= q.cursor:
		// It was in hand, or comes after a later one of its group, or a refill has
		// read it since the commit: then it is there.
		q.add(entry{seq: p.seq, post: p.post})
	case q.complete && len(q.ready) < bufferLimit:
		q.cursor = p.seq
		q.add(entry{seq: p.seq, post: p.post})
	default:
		q.complete = false // a refill will read it
	}
	d.wake(1 << p.queue.stage)
}

// abandon takes back a grant that came to nothing before the appender saw it.
func (d *dispenser) abandon(post ledger.PostNum, claim token, again bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.inHand[post]
	if h == nil || h.claim != claim {
		return
	}
	delete(d.inHand, post)
	if again {
		d.offer(h.place)
	}
	if h.moved.kind != 0 {
		d.offer(h.moved)
	}
}
