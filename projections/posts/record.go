package posts

import (
	"slices"
	"time"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/projections"
)

// futureTolerance is how far after its fetch a post may say it was published
// before it is listed by its fetch instead.
const futureTolerance = 24 * time.Hour

// maxTitle and maxSummary bound what a list shows of a post, in bytes.
const (
	maxTitle   = 1 << 10
	maxSummary = 4 << 10
)

// record is the stored row of a post: what its events made of it.
type record struct {
	state ledger.PostState
	post  Post // without what comes from state, and without Num
}

// apply takes the record through an event of its post. An event that may not
// follow changes nothing.
func (r *record) apply(e ledger.Event) {
	next, err := r.state.Apply(e)
	if err != nil {
		return
	}
	r.state = next
	switch p := e.Payload.(type) {
	case ledger.PostFetched:
		r.fetched(e, p)
	case ledger.PostSeenAgain:
		r.carry(e.Source)
		r.measure(p.Measures)
	case ledger.PostRevised:
		r.post.Revisions = p.Revision
		r.post.Title = ledger.CutText(p.Title, maxTitle)
		if p.URL != "" {
			r.post.URL = p.URL
		}
		if p.LinkedTo != 0 {
			r.post.LinkedTo = p.LinkedTo
		}
	case ledger.PostClassified:
		r.post.Summary, r.post.DecidedBy = ledger.CutText(p.Summary, maxSummary), p.Stage
	case ledger.PostMeasured:
		r.measure(p.Measures)
	}
}

func (r *record) fetched(e ledger.Event, p ledger.PostFetched) {
	it := p.Item
	r.post = Post{
		ID: p.ID, Title: ledger.CutText(it.Title, maxTitle), URL: it.URL, Author: it.Author, Source: it.Source, Lang: it.Lang,
		Date: it.Published, Published: it.Published, Fetched: e.At, IsOwn: it.IsOwn, LinkedTo: p.LinkedTo,
	}
	if it.Published.IsZero() || it.Published.After(e.At.Add(futureTolerance)) {
		r.post.Date = e.At
	}
	r.measure(it.Measures)
}

func (r *record) carry(source ledger.Slug) {
	if source == "" || source == r.post.Source {
		return
	}
	if slices.Contains(r.post.Carriers, source) {
		return
	}
	r.post.Carriers = append(r.post.Carriers, source)
}

func (r *record) measure(m ledger.Measures) {
	if m.Views != nil {
		r.post.Views = m.Views
	}
	if m.Reactions != nil {
		r.post.Reactions = m.Reactions
	}
}

// view is the post as lists show it.
func (r *record) view(num ledger.PostNum) Post {
	p, s := r.post, r.state
	p.Num = num
	p.Status, p.Lane, p.Cause = s.Status, s.Lane, s.Cause
	p.Direction, p.Corrected = s.EffectiveDirection(), s.Corrected != ""
	p.Relevance, p.Interest, p.Provisional = s.Relevance, s.Interest, s.Provisional
	p.Verdict, p.Story = s.Verdict, s.Story
	return p
}

// encode writes the record. decode reads it in the same order; a change of
// either needs a new version of the projection.
func (r *record) encode() []byte {
	var e projections.Encoder
	p := &r.post
	e.State(r.state)
	e.String(string(p.ID[:]))
	for _, s := range []string{p.Title, p.URL, p.Author, string(p.Source), p.Lang, p.Summary, p.DecidedBy} {
		e.String(s)
	}
	e.Uint(uint64(len(p.Carriers)))
	for _, c := range p.Carriers {
		e.String(string(c))
	}
	for _, t := range []time.Time{p.Date, p.Published, p.Fetched} {
		e.Time(t)
	}
	e.Bool(p.IsOwn)
	for _, n := range []*int64{p.Views, p.Reactions} {
		e.Bool(n != nil)
		if n != nil {
			e.Int(*n)
		}
	}
	e.Uint(uint64(p.Revisions))
	e.Uint(uint64(p.LinkedTo))
	return e.Bytes()
}

func decode(b []byte) (record, error) {
	d := projections.NewDecoder(b)
	r := record{state: d.State()}
	p := &r.post
	copy(p.ID[:], d.String())
	p.Title, p.URL, p.Author, p.Source, p.Lang = d.String(), d.String(), d.String(), ledger.Slug(d.String()), d.String()
	p.Summary, p.DecidedBy = d.String(), d.String()
	for n := d.Uint(); n > 0 && d.Err() == nil; n-- {
		p.Carriers = append(p.Carriers, ledger.Slug(d.String()))
	}
	p.Date, p.Published, p.Fetched = d.Time(), d.Time(), d.Time()
	p.IsOwn = d.Bool()
	for _, n := range []**int64{&p.Views, &p.Reactions} {
		if d.Bool() {
			v := d.Int()
			*n = &v
		}
	}
	p.Revisions, p.LinkedTo = int(d.Uint()), ledger.PostNum(d.Uint())
	return r, d.Err()
}
