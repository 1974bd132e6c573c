package classify

import (
	"context"
	"time"

	"vesti.nixg.ru/ledger"
)

// past is the present state of a ledger's posts, small enough for a million of
// them: where each one's newest text is, and what was decided on it.
type past struct {
	posts      map[ledger.PostNum]standing
	titles     map[ledger.PostNum]string // where a title changed after the text
	directions []ledger.Direction        // numbered by their place
	numbers    map[ledger.Direction]uint16
	ways       map[ledger.PostNum]asked // posts that a language model decided
}

// standing is what one post has come to.
type standing struct {
	text      ledger.Seq // the event with its newest text
	revision  int32
	direction uint16 // place in past.directions
	relevance float32
	interest  float32
	status    ledger.Status
	reviewed  bool
	classed   bool // decided, not only provisionally
}

// asked says by which language model a post was decided, and how.
type asked struct {
	model, prompt string
	duration      time.Duration
}

// readPast folds the ledger up to head.
func readPast(ctx context.Context, h History, head ledger.Seq, progress func(done ledger.Seq)) (*past, error) {
	p := &past{
		posts: make(map[ledger.PostNum]standing), titles: make(map[ledger.PostNum]string),
		numbers: make(map[ledger.Direction]uint16), ways: make(map[ledger.PostNum]asked),
	}
	return p, eachEvent(ctx, h, 0, head, false, func(e ledger.Event) error {
		p.apply(e)
		progress(e.Seq)
		return nil
	})
}

// apply folds one event by the ledger's own rules.
func (p *past) apply(e ledger.Event) {
	if !e.Type.OfPost() {
		return
	}
	s := p.posts[e.Post]
	before := ledger.PostState{Status: s.status, Revision: int(s.revision)}
	after, err := before.Apply(e)
	if err != nil {
		return
	}
	s.status, s.revision = after.Status, int32(after.Revision)
	switch v := e.Payload.(type) {
	case ledger.PostFetched:
		s.text = e.Seq
	case ledger.PostRevised:
		if v.TextChanged {
			s.text = e.Seq
			delete(p.titles, e.Post)
		} else {
			p.titles[e.Post] = v.Title
		}
	case ledger.PostReviewed:
		s.reviewed = after.Reviewed
	case ledger.PostClassified:
		if v.Provisional {
			break
		}
		s.direction, s.relevance, s.interest, s.classed = p.number(v.Direction), float32(v.Relevance), float32(v.Interest), true
		if v.Stage == WayLLM {
			p.ways[e.Post] = asked{model: v.Model, prompt: v.PromptHash, duration: v.Duration}
		} else {
			delete(p.ways, e.Post)
		}
	}
	p.posts[e.Post] = s
}

func (p *past) number(d ledger.Direction) uint16 {
	n, ok := p.numbers[d]
	if !ok {
		n = uint16(len(p.directions))
		p.directions = append(p.directions, d)
		p.numbers[d] = n
	}
	return n
}

// askTime is how long a language model took for a post, on average; zero where
// none was asked.
func (p *past) askTime() time.Duration {
	if len(p.ways) == 0 {
		return 0
	}
	sum := time.Duration(0)
	for _, a := range p.ways {
		sum += a.duration
	}
	return sum / time.Duration(len(p.ways))
}
