package badgerlog

import (
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/codec"
)

// revised is rule 2: an item with another text or title. It reports false where
// its post has both already, by another carrier's revision.
func (g *group) revised(a *arrival, rec postRecord, textMoved bool) (bool, error) {
	cur, err := g.newest(rec)
	if err != nil {
		return false, err
	}
	hash := ledger.Hash(a.hash)
	p := ledger.PostRevised{
		Key: a.item.Key, Revision: rec.state.Revision, Hash: hash, Title: a.item.Title,
		URL: a.item.URL, CanonicalURL: a.item.CanonicalURL, Published: a.item.Published,
		TextChanged: textMoved && hash != cur.hash,
	}
	if !p.TextChanged && p.Title == cur.title {
		return false, nil
	}
	owner, had, err := g.knownText(rec.num, hash)
	if err != nil {
		return false, err
	}
	if p.TextChanged {
		p.New = !had
		p.TextLen, p.TextFrom = len(a.item.Text), a.item.TextFrom
		if owner != rec.num {
			p.LinkedTo = owner
		}
	}
	if p.New {
		p.Revision++
		if p.Requeued, err = g.requeues(rec, a.item.Text); err != nil {
			return false, err
		}
	}
	others, err := g.urlPosts(a)
	if err != nil {
		return false, err
	}
	return true, g.putRevision(a, rec, p, owner, others)
}

func (g *group) putRevision(a *arrival, rec postRecord, p ledger.PostRevised, owner ledger.PostNum, others []ledger.PostNum) error {
	e := g.event(ledger.ActorCrawler, rec.num, a.item.Source, p)
	if err := g.follow(rec, e, codec.AppendPayload(nil, p)); err != nil {
		return err
	}
	a.out.Outcome, a.out.Seq = ledger.OutcomeTouched, e.Seq
	if p.New {
		a.out.Outcome = ledger.OutcomeRevised
	}
	if p.TextChanged {
		if err := g.putText(e.Seq, a.body); err != nil {
			return err
		}
	}
	var err error
	switch {
	case !p.New:
	case owner == 0:
		err = g.set(hashKey(p.Hash), seqBytes(uint64(rec.num)))
	default:
		err = g.set(variantKey(rec.num, p.Hash), []byte{1})
	}
	if err != nil {
		return err
	}
	return g.putURL(a, rec.num, others)
}

// knownText returns which post a text's key leads to, and whether post had the
// text before.
func (g *group) knownText(post ledger.PostNum, hash ledger.Hash) (owner ledger.PostNum, had bool, err error) {
	owner, err = g.hashOwner(hash)
	if err != nil || owner == 0 || owner == post {
		return owner, owner == post, err
	}
	b, err := g.get(variantKey(post, hash))
	return owner, b != nil, err
}

// requeueAbove is the share of changed words above which a revised post is
// judged again.
const requeueAbove = 0.1

func (g *group) requeues(rec postRecord, text string) (bool, error) {
	if rec.state.Reviewed {
		return false, nil
	}
	if rec.state.Expired {
		return true, nil // there is nothing to compare with
	}
	before, err := readText(g.txn, g.log.texts, rec.text)
	if err != nil {
		return false, err
	}
	return ledger.ChangedWords(before, text) > requeueAbove, nil
}

// newest returns the hash and title that a post has now.
type newest struct {
	hash  ledger.Hash
	title string
}

func (g *group) newest(rec postRecord) (newest, error) {
	n := newest{hash: ledger.Hash(rec.id)}
	for _, seq := range []ledger.Seq{ledger.Seq(rec.num), rec.text, rec.revised} {
		if seq == 0 {
			continue
		}
		e, err := g.readEvent(seq)
		if err != nil {
			return n, err
		}
		switch p := e.Payload.(type) {
		case ledger.PostFetched:
			n.title = p.Item.Title
		case ledger.PostRevised:
			n.title = p.Title
			if seq == rec.text {
				n.hash = p.Hash
			}
		}
	}
	return n, nil
}
