package search

import (
	"context"
	"errors"
	"fmt"
	"time"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/projections"
	"vesti.nixg.ru/projections/posts"
)

// searchTime is how long a search may take; what was found until then is
// answered.
const searchTime = 5 * time.Second

// Search answers a request. No query is an error; an error is one of the index,
// of the ledger, or of ctx.
func (s *Search) Search(ctx context.Context, r Request) (Result, error) {
	out, err := s.answer(ctx, r)
	if err != nil {
		if ctx.Err() == nil {
			s.metrics.failures.Inc()
		}
		return Result{}, fmt.Errorf("search: %w", err)
	}
	s.metrics.seconds.Observe(out.Took.Seconds())
	return out, nil
}

func (s *Search) answer(ctx context.Context, r Request) (Result, error) {
	began := time.Now()
	q := parse(r.Query, s.stemmer, began.In(s.zone), s.known)
	if _, all := q.root.(allNode); all {
		q.root = nil
	}
	out := Result{Sort: r.Sort, Notes: q.notes}
	if out.Sort == "" || out.Sort == posts.ByRelevance && q.root == nil {
		out.Sort = posts.ByDate
		if q.root != nil {
			out.Sort = posts.ByRelevance
		}
	}
	page := posts.Request{
		Filter: q.fields.within(r.Filter), Sort: out.Sort,
		Limit: min(r.Limit, MaxLimit), Offset: max(r.Offset, 0), Facets: r.Facets,
	}
	if page.Limit <= 0 {
		page.Limit = DefaultLimit
	}
	found, err := s.page(ctx, &q, page, &out)
	if err != nil {
		return Result{}, err
	}
	out.Total, out.Facets = found.Total, found.Facets
	if out.Hits, err = s.hits(ctx, q.root, found); err != nil {
		return Result{}, err
	}
	out.Took = time.Since(began)
	return out, nil
}

// page finds the posts of the page.
func (s *Search) page(ctx context.Context, q *query, r posts.Request, out *Result) (posts.Page, error) {
	if q.root == nil {
		return s.posts.List(ctx, r)
	}
	f := s.serving.Load()
	if f == nil || f.health.err() != nil {
		out.noteBuilding(0)
		return posts.Page{}, nil
	}
	if done := f.Checkpoint(); done < f.target {
		out.noteBuilding(100 * uint64(done) / uint64(f.target))
	}
	limited, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	scored := r.Sort == posts.ByRelevance
	got, err := f.match(limited, q.root, scored)
	if looser := relaxed(q.root); err == nil && looser != nil && len(got.matches) == 0 && !got.cut {
		if got, err = f.match(limited, looser, scored); len(got.matches) > 0 {
			q.root = looser
			out.note(NoteRelaxed)
		}
	}
	if errors.Is(err, projections.ErrDamaged) { // found out by this search; the runner builds it anew
		out.noteBuilding(0)
		return posts.Page{}, nil
	}
	if err != nil {
		return posts.Page{}, err
	}
	if err := ctx.Err(); err != nil {
		return posts.Page{}, err
	}
	if got.cut {
		out.note(NoteTimeout)
	}
	if got.partial {
		out.note(NotePartial)
	}
	if look := s.preferTyped(q.root, got.rarity); scored && look != nil {
		r.Rerank = &posts.Rerank{Top: exactTop, Look: look}
	}
	return s.posts.Select(ctx, got.matches, r)
}

// relaxWords is how many words a query must have for one without hits to be
// answered by posts that have some of them.
const relaxWords = 4

// relaxed returns a query for any of the words of n, nil where n is short or not
// only words.
func relaxed(n node) node {
	and, ok := n.(andNode)
	if !ok || len(and.kids) < relaxWords {
		return nil
	}
	for _, kid := range and.kids {
		if _, excluded := kid.(notNode); excluded {
			return nil
		}
	}
	return orNode(and)
}

// hits reads the texts of the page and marks what was found.
func (s *Search) hits(ctx context.Context, root node, page posts.Page) ([]Hit, error) {
	m := newMarker(s.stemmer, root)
	hits := make([]Hit, 0, len(page.Posts))
	for i, p := range page.Posts {
		h := Hit{Post: p, Heading: m.whole(p.Title)}
		if len(page.Scores) > i {
			h.Score = page.Scores[i]
		}
		full, err := s.texts.Post(ctx, p.Num)
		switch {
		case errors.Is(err, ledger.ErrNotFound), errors.Is(err, ledger.ErrUnreadable):
		case err != nil:
			return nil, err
		default:
			h.Snippet = m.excerpt(full.Item.Text)
			if h.Heading == nil {
				h.Heading = m.whole(full.Item.Headline())
			}
			if h.Heading == nil {
				h.Media = full.Item.Media
			}
		}
		hits = append(hits, h)
	}
	return hits, nil
}

// noteBuilding says that so much of the index is there, in percent.
func (r *Result) noteBuilding(percent uint64) {
	r.Notes = append(r.Notes, Note{Reason: NoteRebuilding, Part: fmt.Sprintf("%d %%", percent)})
}

func (r *Result) note(reason NoteReason) { r.Notes = append(r.Notes, Note{Reason: reason}) }
