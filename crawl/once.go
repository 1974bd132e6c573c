package crawl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"vesti.nixg.ru/ledger"
)

// Once says how RunOnce goes about its sources.
type Once struct {
	Trigger ledger.Trigger // default TriggerManual
	// DryRun reads the sources whole and writes nothing: the summary's entries are
	// what the ledger would be given.
	DryRun bool
	// Progress hears of each run that ended, one at a time; nil for nobody.
	Progress func(Result)
}

// Summary is what a round of runs came to.
type Summary struct {
	Sources     int      `json:"sources"`
	Fetched     int      `json:"fetched"`
	New         int      `json:"new"`
	SeenAgain   int      `json:"seen_again"`
	Revised     int      `json:"revised"`
	Dropped     int      `json:"dropped"`
	NotModified int      `json:"not_modified"`
	Throttled   int      `json:"throttled"`
	Errors      int      `json:"errors"`
	DurationMS  int64    `json:"duration_ms"`
	Results     []Result `json:"results"` // by slug
	Entries     []Entry  `json:"entries,omitempty"`
	Drops       []Drop   `json:"drops,omitempty"` // of a dry run
}

// The outcomes of runs.
const (
	OutcomeOK          = "ok"
	OutcomeNotModified = "not_modified" // 304, or the same bytes as before
	OutcomePartial     = "partial"      // the document was cut or too long; what was complete is kept
	OutcomeThrottled   = "throttled"
	OutcomeFailed      = "failed"
)

// Result is how one source's run ended.
type Result struct {
	Slug       ledger.Slug  `json:"slug"`
	Status     string       `json:"status"`  // of the source after it, as SourceStatus calls it
	Outcome    string       `json:"outcome"` // of the run
	HTTPStatus int          `json:"http_status,omitempty"`
	Fetched    int          `json:"fetched"`
	New        int          `json:"new"`
	SeenAgain  int          `json:"seen_again"`
	Revised    int          `json:"revised"`
	Dropped    int          `json:"dropped"`
	Truncated  bool         `json:"truncated,omitempty"`
	MovedTo    string       `json:"moved_to,omitempty"`
	Cause      ledger.Cause `json:"cause,omitempty"`
	Error      string       `json:"error,omitempty"` // the message, of a throttled run too
	DurationMS int64        `json:"duration_ms"`
}

// Entry is one that a dry run found.
type Entry struct {
	Source    ledger.Slug `json:"source"`
	Title     string      `json:"title"`
	URL       string      `json:"url"`
	Published time.Time   `json:"published,omitzero"`
	TextStart string      `json:"text_start"`
	TextFrom  string      `json:"text_from"`
	Outcome   string      `json:"outcome"` // what the ledger would make of it, as ledger.Outcome calls it
	Known     bool        `json:"known"`   // the ledger has the item, perhaps with another text

	key ledger.ItemKey
}

// Drop is an entry that a dry run's rules left out.
type Drop struct {
	Source ledger.Slug `json:"source"`
	Title  string      `json:"title"`
	URL    string      `json:"url"`
	Rule   string      `json:"rule"`
}

// RunOnce runs the selection's sources now, whether they are due or not, beside
// the schedule and within its limits, and returns when they have ended. A dead
// source may be run so; one that is gone is refused with an error matching
// ledger.ErrInvalid, and an unknown one with ledger.ErrNotFound. Runs that fail
// are no error of RunOnce. When ctx ends, the summary has what was done until then.
func (c *Crawler) RunOnce(ctx context.Context, sel Selection, once Once) (Summary, error) {
	chosen, err := c.choose(sel, false)
	if err != nil {
		return Summary{}, err
	}
	return c.round(ctx, chosen, once, nil)
}

// Check fetches each of the selection's sources once, those that are gone and
// switched off among the named ones too, and stores nothing. The selection is
// made among the given sources, which need not be in the registry. No article
// page is fetched.
func (c *Crawler) Check(ctx context.Context, sources []Source, sel Selection, progress func(Result)) (Summary, error) {
	entries := make(map[ledger.Slug]*entry, len(sources))
	for _, src := range sources {
		if c.opts.Kinds[src.Crawler] == nil {
			return Summary{}, fmt.Errorf("%w: source %s: no crawler %q in this build", ledger.ErrInvalid, src.Slug, src.Crawler)
		}
		state, err := c.opts.Log.Source(ctx, src.Slug)
		if err != nil {
			return Summary{}, fmt.Errorf("read state of source %s: %w", src.Slug, err)
		}
		entries[src.Slug] = &entry{src: src, state: state}
	}
	chosen, err := sel.among(entries, true)
	if err != nil {
		return Summary{}, err
	}
	withoutPages := func(s Source) Source {
		s.FullText = FullTextFalse
		return s
	}
	return c.round(ctx, chosen, Once{DryRun: true, Progress: progress}, withoutPages)
}

// Preview is a dry run of a source as it is given, in the registry or not: what
// it has, and what its rules would leave out, before it is saved.
func (c *Crawler) Preview(ctx context.Context, src Source) (Summary, error) {
	if c.opts.Kinds[src.Crawler] == nil {
		return Summary{}, fmt.Errorf("%w: no crawler %q in this build", ledger.ErrInvalid, src.Crawler)
	}
	if _, err := src.Rules(); err != nil {
		return Summary{}, err
	}
	return c.round(ctx, []*entry{{src: src}}, Once{DryRun: true}, nil)
}

// round runs each of the entries as the gate lets them. change alters the
// sources for this round only.
func (c *Crawler) round(ctx context.Context, pending []*entry, once Once, change func(Source) Source) (Summary, error) {
	if once.Trigger == "" {
		once.Trigger = ledger.TriggerManual
	}
	started := time.Now()
	var sum Summary
	var mu sync.Mutex
	var runs sync.WaitGroup
	foreseen := &dryRound{log: c.opts.Log, news: map[ledger.PostID]bool{}}
	start := func(e *entry) {
		r := run{trigger: once.Trigger, change: change}
		if once.DryRun {
			r.dry = &drySink{log: c.opts.Log, round: foreseen}
		}
		runs.Go(func() {
			defer c.end(e)
			end := c.crawl(ctx, e, r)
			mu.Lock()
			defer mu.Unlock()
			sum.add(end, r.dry)
			if once.Progress != nil {
				once.Progress(end.result())
			}
		})
	}
	for len(pending) > 0 && ctx.Err() == nil {
		left := c.gate.left()
		waiting := slices.DeleteFunc(slices.Clone(pending), func(e *entry) bool {
			if !c.begin(e) {
				return false
			}
			start(e)
			return true
		})
		if len(waiting) > 0 {
			select {
			case <-left:
			case <-ctx.Done():
			}
		}
		pending = waiting
	}
	runs.Wait()
	slices.SortFunc(sum.Results, func(a, b Result) int { return strings.Compare(string(a.Slug), string(b.Slug)) })
	slices.SortStableFunc(sum.Entries, func(a, b Entry) int { return strings.Compare(string(a.Source), string(b.Source)) })
	sum.DurationMS = time.Since(started).Milliseconds()
	if err := ctx.Err(); err != nil {
		return sum, fmt.Errorf("crawl: %w", err)
	}
	return sum, nil
}

func (s *Summary) add(end ending, dry *drySink) {
	r := end.result()
	s.Sources++
	s.Fetched += r.Fetched
	s.New += r.New
	s.SeenAgain += r.SeenAgain
	s.Revised += r.Revised
	s.Dropped += r.Dropped
	switch r.Outcome {
	case OutcomeNotModified:
		s.NotModified++
	case OutcomeThrottled:
		s.Throttled++
	case OutcomeFailed:
		s.Errors++
	}
	s.Results = append(s.Results, r)
	if dry != nil {
		s.Entries = append(s.Entries, dry.entries...)
		s.Drops = append(s.Drops, dry.drops...)
	}
}

// result is the ending as others are told of it.
func (e ending) result() Result {
	rep := e.report
	r := Result{
		Slug: e.slug, Status: e.status.String(), Outcome: OutcomeOK, HTTPStatus: rep.HTTPStatus, Fetched: rep.Fetched, New: rep.New,
		SeenAgain: rep.SeenAgain, Revised: rep.Revised, Dropped: rep.Dropped, Truncated: rep.Truncated, MovedTo: rep.MovedTo,
		DurationMS: e.duration.Milliseconds(),
	}
	var throttled *Throttled
	switch {
	case errors.As(e.err, &throttled):
		r.Outcome, r.HTTPStatus, r.Error = OutcomeThrottled, throttled.HTTPStatus, throttled.Error()
	case e.err != nil:
		failed := asError(e.err)
		r.Outcome, r.Cause, r.Error = OutcomeFailed, failed.Cause, failed.Message
		if failed.HTTPStatus != 0 {
			r.HTTPStatus = failed.HTTPStatus
		}
	case rep.NotModified:
		r.Outcome = OutcomeNotModified
	case rep.Truncated:
		r.Outcome = OutcomePartial
	}
	return r
}
