package httpui

import (
	"context"
	"time"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/projections/queue"
	"vesti.nixg.ru/projections/search"
	"vesti.nixg.ru/projections/sources"
)

// What pages read. Each is safe for concurrent use; an error matching one of
// the ledger's is shown as what it is (see statusOf).

// Queue counts the queue; projections/queue has it.
type Queue interface {
	// Counts returns the queue at now, whose location says what "today" is.
	Counts(now time.Time, gauge ledger.QueueGauge) queue.Counts
}

// Posts are the posts and their histories; every engine of the ledger has it.
type Posts interface {
	// FindPost returns the post that an ID, a prefix of one or a number names.
	FindPost(ctx context.Context, id string) (ledger.PostNum, error)
	Post(ctx context.Context, n ledger.PostNum) (ledger.Post, error)
	// PostEvents returns the post's history, oldest first, with texts.
	PostEvents(ctx context.Context, n ledger.PostNum) ([]ledger.Event, error)
	// Queue is what the engine alone knows of the queue.
	Queue() ledger.QueueGauge
}

// Registry lists the sources that are configured, with what the schedule knows
// of them; crawl.Crawler has it.
type Registry interface {
	Status() []crawl.SourceView
}

// Sources tell how sources are doing; projections/sources has it.
type Sources interface {
	// State returns the zero state for a source that was never crawled.
	State(slug ledger.Slug) ledger.SourceState
	// All returns every source that was ever crawled, by slug.
	All() []sources.Source
	// Runs returns the last runs of a source, newest first.
	Runs(ctx context.Context, slug ledger.Slug, limit int) ([]sources.Run, error)
}

// Search finds posts; projections/search has it.
type Search interface {
	Search(ctx context.Context, r search.Request) (search.Result, error)
}

// Commands are what pages change. Each returns once the change is durable, or
// the work has begun, and waits for the views to show it as long as that takes
// no more than a moment, so that the page which follows is not behind.
type Commands interface {
	// CrawlNow has these sources crawled next, every enabled one where none is
	// named. It does not wait for the runs.
	CrawlNow(ctx context.Context, slugs ...ledger.Slug) error
	// WorkNow makes the workers look at the queue now; posts that wait for a
	// delay after a failure stay until it is over.
	WorkNow(ctx context.Context) error
	// ResetDead makes these sources alive, every dead or gone one where none is
	// named, and returns how many.
	ResetDead(ctx context.Context, slugs ...ledger.Slug) (int, error)
	// Review records an editor's word, which replaces the earlier one.
	Review(ctx context.Context, post ledger.PostNum, word ledger.PostReviewed) error
	// Requeue has the post judged again, before others.
	Requeue(ctx context.Context, post ledger.PostNum) error
}

// queueNow is the queue at this moment, in the configured zone.
func (s *Server) queueNow() (queue.Counts, time.Time) {
	now := s.Now().In(s.Location)
	return s.Queue.Counts(now, s.Posts.Queue()), now
}
