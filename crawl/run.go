package crawl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime/debug"
	"strings"
	"time"

	"vesti.nixg.ru/ledger"
)

// run is how one run differs from a scheduled one.
type run struct {
	trigger ledger.Trigger      // "" takes the entry's
	dry     *drySink            // writes nothing
	change  func(Source) Source // of the source, for this run; nil for none
}

// ending is how a run ended.
type ending struct {
	slug     ledger.Slug
	status   ledger.SourceStatus // of the source, after it
	report   Report
	err      error // nil, an *Error, a *Throttled, ctx's, or what the ledger said
	duration time.Duration
}

// crawl runs one source, which begin has taken, records how it ended and
// reschedules it.
func (c *Crawler) crawl(ctx context.Context, e *entry, r run) ending {
	c.mu.Lock()
	src, full, trigger := e.src, e.full, e.trigger
	defined := src
	if r.dry == nil {
		e.trigger = ""
	}
	c.mu.Unlock()
	if r.change != nil {
		src = r.change(src)
	}
	started := c.opts.Now()
	res := ending{slug: src.Slug}

	state, err := c.opts.Log.Source(ctx, src.Slug)
	if err != nil {
		res.err = fmt.Errorf("read state of source %s: %w", src.Slug, err)
		if r.dry == nil {
			c.postpone(ctx, e, res.err)
		}
		return res
	}
	job := Job{Source: src, State: state, Now: started, Unconditional: full || unconditional(state, started)}
	switch {
	case r.dry != nil:
		job.State.Validators, job.Unconditional, job.Sink = ledger.Validators{}, true, r.dry
	default:
		job.Sink = &ledgerSink{Log: c.opts.Log, drops: c.opts.Drops}
	}
	clock := time.Now()
	done := c.metrics.enter()
	res.report, res.err = c.ask(ctx, job)
	done()
	res.duration = time.Since(clock)
	if r.dry != nil {
		res.status = c.outcome(job, firstTrigger(r.trigger, trigger, state), res).after.Status
		return res
	}
	if stopped(ctx, res.err) || ledgerFault(res.err) {
		res.status = state.Status
		c.postpone(ctx, e, res.err)
		return res
	}
	out := c.outcome(job, firstTrigger(r.trigger, trigger, state), res)
	c.settle(ctx, e, defined, out, &res)
	return res
}

// ask calls the source's kind, in its time, and makes an error of a panic: the
// next source has done nothing wrong.
func (c *Crawler) ask(ctx context.Context, job Job) (rep Report, err error) {
	runCtx, cancel := context.WithTimeout(ctx, c.opts.RunTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			c.opts.Logger.LogAttrs(ctx, slog.LevelError, "run of source panicked",
				slog.String("source", string(job.Source.Slug)), slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			err = &Error{Cause: ledger.CauseInternal, Message: fmt.Sprintf("a defect in vesti: %v", p)}
		}
	}()
	rep, err = c.opts.Kinds[job.Source.Crawler].Crawl(runCtx, job)
	if err != nil && ctx.Err() == nil && runCtx.Err() != nil && errors.Is(err, runCtx.Err()) {
		err = &Error{Cause: ledger.CauseTimeout, Message: fmt.Sprintf("the run took longer than %s", c.opts.RunTimeout), Err: err}
	}
	return rep, err
}

// unconditional decides that a source is asked without validators: once a day,
// as long as it is not well, and when it never was.
func unconditional(s ledger.SourceState, now time.Time) bool {
	switch {
	case s.ErrorCount > 0, s.Status == ledger.SourceDead, s.Status == ledger.SourceGone:
		return true
	case s.Status == ledger.SourceAlive && s.LastOK.Before(s.LastFetch): // reset after a failure
		return true
	default:
		return now.Sub(s.Validators.FullAt) >= probeInterval
	}
}

func firstTrigger(asked, pending ledger.Trigger, state ledger.SourceState) ledger.Trigger {
	switch {
	case asked != "":
		return asked
	case pending != "":
		return pending
	case state.Status == ledger.SourceDead:
		return ledger.TriggerProbe
	default:
		return ledger.TriggerSchedule
	}
}

// stopped tells the end of the context from a failure of the source.
func stopped(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}

// ledgerFault reports whether err is the ledger's own trouble, of which the
// source is not to blame.
func ledgerFault(err error) bool {
	return errors.Is(err, ledger.ErrNoSpace) || errors.Is(err, ledger.ErrReadOnly) || errors.Is(err, ledger.ErrClosed)
}

// outcome is what a run makes of its source.
type outcome struct {
	events []ledger.Event
	after  ledger.SourceState
}

// outcome turns a run's end into events. Each is built twice: when the source
// is due again hangs on the state that the event leads to.
func (c *Crawler) outcome(job Job, trigger ledger.Trigger, res ending) outcome {
	rep, src := res.report, job.Source
	record := ledger.Run{
		Trigger: trigger, Started: job.Now.UTC(), Duration: res.duration, HTTPStatus: rep.HTTPStatus,
		Fetched: rep.Fetched, New: rep.New, SeenAgain: rep.SeenAgain, Revised: rep.Revised, Dropped: rep.Dropped,
		Bytes: rep.Bytes, Truncated: rep.Truncated,
	}
	var until time.Time
	payload := func(next time.Time) ledger.Payload {
		record.Next = next
		if throttled, ok := errors.AsType[*Throttled](res.err); ok {
			until = throttled.Until
			record.HTTPStatus = throttled.HTTPStatus
			return ledger.SourceThrottled{Run: record, Until: throttled.Until.UTC(), Message: cutMessage(throttled.Message)}
		}
		if res.err != nil {
			failed := asError(res.err)
			if failed.HTTPStatus != 0 {
				record.HTTPStatus = failed.HTTPStatus
			}
			return ledger.SourceFailed{Run: record, Cause: failed.Cause, Message: cutMessage(failed.Message)}
		}
		v := rep.Validators
		v.FullAt = job.State.Validators.FullAt
		if job.Unconditional {
			v.FullAt = job.Now.UTC()
		}
		return ledger.SourceCrawled{
			Run: record, NotModified: rep.NotModified, Empty: rep.Empty, Validators: v, Title: rep.Title, Cursor: rep.Cursor,
		}
	}
	actor := ledger.ActorCrawler
	if trigger == ledger.TriggerManual {
		actor = ledger.ActorOperator
	}
	event := func(p ledger.Payload) ledger.Event { return ledger.NewEvent(actor, 0, src.Slug, p) }

	next := c.next(src, job.State.Apply(event(payload(time.Time{}))), c.opts.Now(), until)
	out := outcome{after: job.State}
	if move, ok := moved(job, res); ok {
		out.events = append(out.events, event(move))
	}
	out.events = append(out.events, event(payload(next)))
	for _, e := range out.events {
		out.after = out.after.Apply(e)
	}
	return out
}

// moved is what a run that worked says of the source's address: a new one, or
// that the configured one of a feed answers by itself again.
func moved(job Job, res ending) (ledger.SourceMoved, bool) {
	configured, state := job.Source.address(), job.State
	if res.err != nil {
		return ledger.SourceMoved{}, false
	}
	if job.Source.FeedURL == "" {
		target := res.report.MovedTo
		return ledger.SourceMoved{From: configured, URL: target}, target != "" && target != state.MovedTo
	}
	now := job.Source.FeedAddress(state)
	if res.report.MovedTo != "" {
		now = res.report.MovedTo
	}
	switch {
	case now == configured:
		return ledger.SourceMoved{From: configured}, state.MovedTo != ""
	case now == state.MovedTo && state.MovedFrom == configured:
		return ledger.SourceMoved{}, false
	default:
		return ledger.SourceMoved{From: configured, URL: now}, true
	}
}

// settle stores a run's events and reschedules the source by them. defined is
// the source as it was when the run began.
func (c *Crawler) settle(ctx context.Context, e *entry, defined Source, out outcome, res *ending) {
	// A run that has ended is recorded even where ctx ends at this moment.
	recordCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if _, err := c.opts.Log.Record(recordCtx, out.events...); err != nil {
		res.err = errors.Join(res.err, fmt.Errorf("record run of source %s: %w", res.slug, err))
		c.postpone(ctx, e, res.err)
		return
	}
	c.metrics.ended(c.source(e).Crawler, *res)
	c.mu.Lock()
	e.state, e.due, e.full, e.faults = out.after, out.after.Next, false, 0
	if !reflect.DeepEqual(defined, e.src) {
		c.redefined(e, defined) // a reload during the run
	}
	c.mu.Unlock()
	res.status = out.after.Status
	c.logRun(ctx, *res, out.after.Next)
}

func (c *Crawler) logRun(ctx context.Context, res ending, next time.Time) {
	level, attrs := slog.LevelDebug, []slog.Attr{
		slog.String("source", string(res.slug)), slog.String("status", res.status.String()),
		slog.Int("http_status", res.report.HTTPStatus), slog.Int("fetched", res.report.Fetched), slog.Int("new", res.report.New),
		slog.Duration("duration", res.duration), slog.Time("next", next),
	}
	if res.report.New > 0 {
		level = slog.LevelInfo
	}
	if res.report.Truncated {
		attrs = append(attrs, slog.Bool("truncated", true))
	}
	if res.err != nil {
		level = slog.LevelWarn
		attrs = append(attrs, slog.String("error", res.err.Error()))
	}
	c.opts.Logger.LogAttrs(ctx, level, "source crawled", attrs...)
}

// postpone leaves the source as it was, to be tried again soon, and then less and
// less often, as on a disk that stays full: its site is asked for nothing. The log
// hears of one such run a minute.
func (c *Crawler) postpone(ctx context.Context, e *entry, err error) {
	c.mu.Lock()
	now, slug := c.opts.Now(), e.src.Slug
	delay := min(retryInterval<<min(e.faults, 10), max(retryInterval, c.interval(e.src)))
	e.due = now.Add(c.jittered(delay))
	stopped := ctx.Err() != nil
	say := !stopped && now.Sub(c.faultSaid) >= time.Minute
	if !stopped {
		e.faults++
	}
	if say {
		c.faultSaid = now
	}
	c.mu.Unlock()
	if say {
		c.opts.Logger.LogAttrs(ctx, slog.LevelError, "run of source not recorded",
			slog.String("source", string(slug)), slog.String("error", err.Error()))
	}
}

// asError is err as a typed one. A kind that returns another has a defect, and
// its source shows it.
func asError(err error) *Error {
	if typed, ok := errors.AsType[*Error](err); ok {
		return typed
	}
	return &Error{Cause: ledger.CauseInternal, Message: err.Error(), Err: err}
}

// The longest message that a run's record keeps, in bytes.
const maxMessage = 1000

func cutMessage(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) > maxMessage {
		return ledger.CutText(s, maxMessage-len("…")) + "…"
	}
	return s
}
