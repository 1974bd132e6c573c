package crawl

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"vesti.nixg.ru/ledger"
)

const (
	// probeInterval is the time between two looks at a dead source, and between
	// two unconditional requests to a live one.
	probeInterval = 24 * time.Hour
	// retryInterval is the pause after a run that the ledger could not take.
	retryInterval = time.Minute
	// mostBackoff is the longest delay that failures alone give a source.
	mostBackoff = 4 * time.Hour
	// jitter is the share by which every delay is made longer or shorter at
	// random, so that what fell together once does not stay together.
	jitter = 0.1
)

// Run crawls sources when they are due until ctx ends, and then returns nil
// when all its runs have ended. A run that is stopped by that leaves what it
// appended and no record of itself: its source stays due.
func (c *Crawler) Run(ctx context.Context) error {
	var runs sync.WaitGroup
	defer runs.Wait()
	for ctx.Err() == nil {
		left := c.gate.left()
		started, wait := c.startDue(ctx, &runs)
		if started {
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-c.wake:
		case <-left:
		}
		timer.Stop()
	}
	return nil
}

// startDue starts the runs of the sources that are due and find a place. wait
// is how long until the next source is due.
func (c *Crawler) startDue(ctx context.Context, runs *sync.WaitGroup) (started bool, wait time.Duration) {
	const horizon = time.Hour // looks again at the latest then, should the clock be set
	due, wait := c.waiting(horizon)
	for _, w := range due {
		if c.begin(w.entry) {
			runs.Go(func() {
				defer c.end(w.entry)
				c.crawl(ctx, w.entry, run{})
			})
			started = true
		}
	}
	return started, wait
}

// waiting is a source that is due.
type waiting struct {
	entry *entry
	slug  ledger.Slug
	asked bool // by somebody
	due   time.Time
}

// waiting returns the sources that are due and not running: first what somebody
// asked for, then what waits longest. wait is how long until the next one is
// due, at most horizon.
func (c *Crawler) waiting(horizon time.Duration) (due []waiting, wait time.Duration) {
	now := c.opts.Now()
	wait = horizon
	c.mu.Lock()
	for slug, e := range c.entries {
		switch {
		case e.busy || !e.scheduled():
		case e.trigger != "" || !e.due.After(now):
			due = append(due, waiting{entry: e, slug: slug, asked: e.trigger != "", due: e.due})
		default:
			wait = min(wait, e.due.Sub(now))
		}
	}
	c.mu.Unlock()
	slices.SortFunc(due, func(a, b waiting) int {
		switch {
		case a.asked != b.asked && a.asked:
			return -1
		case a.asked != b.asked:
			return 1
		case !a.due.Equal(b.due):
			return a.due.Compare(b.due)
		default:
			return strings.Compare(string(a.slug), string(b.slug))
		}
	})
	return due, wait
}

// begin takes the source and a place for its run; false says that one of them
// is taken. After a true, end gives them back.
func (c *Crawler) begin(e *entry) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	host := hostKey(e.src)
	if e.busy || !c.gate.tryEnter(host) {
		return false
	}
	e.busy, e.started, e.host = true, c.opts.Now(), host
	return true
}

func (c *Crawler) end(e *entry) {
	c.mu.Lock()
	e.busy = false
	host := e.host
	c.mu.Unlock()
	c.gate.leave(host)
}

// hostKey is what runs are limited by: the host, or the whole address where the
// host is one that the source's owner runs.
func hostKey(src Source) string {
	if src.Crawler == ledger.CrawlerTelegram {
		return "t.me"
	}
	if src.AllowPrivate {
		return src.FeedURL
	}
	u, err := url.Parse(src.FeedURL)
	if err != nil {
		return src.FeedURL
	}
	return strings.ToLower(u.Host)
}

// due is when a source in this state runs next. The stored time is kept, but a
// source that is well is never due later than its interval says today.
func (c *Crawler) due(src Source, s ledger.SourceState) time.Time {
	if s.Status != ledger.SourceAlive && s.Status != ledger.SourceEmpty || s.Next.IsZero() {
		return s.Next
	}
	latest := s.LastFetch.Add(stretch(c.interval(src), 1+jitter))
	if s.Next.After(latest) {
		return latest
	}
	return s.Next
}

func (c *Crawler) interval(src Source) time.Duration {
	if d := c.opts.Intervals[src.Priority]; d > 0 {
		return d
	}
	return src.Priority.Interval()
}

// next is when a source is due after a run that ended now and left it in state
// after. Each failure in a row doubles the delay, a dead source waits for its
// daily probe, and nobody asks before until.
func (c *Crawler) next(src Source, after ledger.SourceState, now, until time.Time) time.Time {
	delay := c.interval(src)
	switch {
	case after.Status == ledger.SourceGone:
		return time.Time{}
	case after.Status == ledger.SourceDead:
		delay = probeInterval
	case after.ErrorCount > 1:
		delay = max(delay, min(delay<<(after.ErrorCount-1), mostBackoff))
	}
	next := now.Add(c.jittered(delay))
	if until.After(next) {
		// Behind the pause, and not all at its very end.
		next = until.Add(stretch(min(delay, time.Hour), jitter*c.opts.Rand()))
	}
	return next.UTC()
}

// jittered is d, longer or shorter by up to a tenth.
func (c *Crawler) jittered(d time.Duration) time.Duration {
	return stretch(d, 1-jitter+2*jitter*c.opts.Rand())
}

func stretch(d time.Duration, factor float64) time.Duration {
	return time.Duration(float64(d) * factor)
}
