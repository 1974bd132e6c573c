package telegram

import (
	"context"
	"fmt"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/ledger"
)

// run is one run of one channel: what both ways share.
type run struct {
	kind   *Kind
	job    crawl.Job
	rules  crawl.Rules
	name   string   // as configured
	prog   progress // as stored, and moved on by this run
	first  bool     // nothing was read before
	report crawl.Report
	dry    bool // the sink keeps nothing, so neither may the progress
}

// maxBackfill bounds the messages of a first run, whatever the source says.
const maxBackfill = 1_000_000

func (k *Kind) begin(ctx context.Context, job crawl.Job) (*run, error) {
	name, err := crawl.ChannelName(job.Source.Channel)
	if err != nil {
		return nil, &crawl.Error{Cause: ledger.CauseVanished, Message: err.Error(), Err: err}
	}
	rules, err := job.Source.Rules()
	if err != nil {
		return nil, fmt.Errorf("rules of source %s: %w", job.Source.Slug, err)
	}
	prog, err := k.book.load(ctx, name)
	if err != nil {
		return nil, err
	}
	prog.trim(job.Now)
	return &run{kind: k, job: job, rules: rules, name: name, prog: prog, first: prog.Last == 0}, nil
}

func (r *run) finish() {
	if r.prog.Last > 0 && !r.dry {
		r.report.Cursor = r.prog.cursor(r.name)
	}
	r.report.Title = r.prog.Title
}

// backfill is how many messages a first run reads.
func (r *run) backfill() int {
	if r.job.Source.Backfill <= 0 {
		return 100
	}
	return min(r.job.Source.Backfill, maxBackfill)
}

func (r *run) lane() ledger.Lane {
	if r.first && !r.job.Source.IsOwn {
		return ledger.LaneBackfill
	}
	return r.job.Source.Lane()
}

// bind ties the run to the channel that was found under its name. A name that
// leads to another channel than before is an alarm: its posts are not mixed.
func (r *run) bind(ctx context.Context, ch Channel) error {
	switch {
	case ch.ID == 0 && r.prog.Channel != 0: // this page does not tell; nothing says it is another
	case r.prog.Channel != 0 && ch.ID != r.prog.Channel:
		return &crawl.Error{Cause: ledger.CauseRenamed, Message: fmt.Sprintf(
			"the name %s now leads to another channel, %q (id %d); what was read under it is %q (id %d). Find out the channel's "+
				"new name and put it into sources.yaml, or follow the name with \"vesti telegram forget %s\"",
			r.name, ch.Title, ch.ID, r.prog.Title, r.prog.Channel, r.name)}
	case r.prog.Channel == 0 && ch.ID != 0:
		// The channel may have been read under another name: then go on from there.
		known, err := r.kind.book.loadID(ctx, ch.ID)
		if err != nil {
			return err
		}
		if known.Channel == ch.ID && known.Last >= r.prog.Last {
			r.prog = known
		}
		r.prog.Channel, r.prog.Recent = ch.ID, keepOf(r.prog, ch.ID)
		r.first = r.prog.Last == 0
	}
	if ch.Name != "" {
		r.prog.Name = ch.Name
	}
	if ch.Title != "" {
		r.prog.Title = ch.Title
	}
	return nil
}

// keepOf is the window of p if it belongs to the channel: posts that were keyed
// by a name have other keys.
func keepOf(p progress, channel int64) []recent {
	if p.Channel != channel {
		return nil
	}
	return p.Recent
}

// channel is the run's channel as items name it.
func (r *run) channel() Channel {
	ch := Channel{ID: r.prog.Channel, Name: r.prog.Name, Title: r.prog.Title}
	if ch.Name == "" {
		ch.Name = r.name
	}
	return ch
}

func (r *run) key(id int) ledger.ItemKey {
	return itemKey(channelKey(r.prog.Channel, r.name), id)
}

// commit hands over one page of messages that were not read before, oldest
// first, and then moves the progress on to message through.
func (r *run) commit(ctx context.Context, messages []Message, through int, from ledger.TextOrigin) error {
	var (
		items []ledger.Item
		kept  []Message
		drops []crawl.Dropped
	)
	for _, m := range messages {
		r.report.Entries++
		if m.Service {
			continue
		}
		it := m.item(r.job.Source, r.channel(), r.lane(), from)
		it.Key = r.key(m.ID)
		if rule, drop := r.rules.Drops(it.Title, it.Text); drop {
			drops = append(drops, crawl.Dropped{
				Source: it.Source, Key: it.Key, Title: it.Title, URL: it.URL, Published: it.Published, Rule: rule,
			})
			continue
		}
		items, kept = append(items, it), append(kept, m)
	}
	if err := r.drop(ctx, drops); err != nil {
		return err
	}
	if len(items) > 0 {
		if err := r.append(ctx, items, kept); err != nil {
			return err
		}
	}
	if r.dry {
		return nil
	}
	r.prog.Last = max(r.prog.Last, through)
	r.prog.trim(r.job.Now)
	return r.kind.book.save(ctx, r.name, r.prog)
}

func (r *run) drop(ctx context.Context, drops []crawl.Dropped) error {
	if len(drops) == 0 {
		return nil
	}
	n, err := r.job.Sink.Drop(ctx, drops)
	if err != nil {
		return fmt.Errorf("keep what the rules of source %s left out: %w", r.job.Source.Slug, err)
	}
	r.report.Dropped += n
	return nil
}

func (r *run) append(ctx context.Context, items []ledger.Item, messages []Message) error {
	appended, err := r.job.Sink.Append(ctx, items)
	if err != nil {
		return fmt.Errorf("append messages of channel %s: %w", r.name, err)
	}
	r.report.Fetched += len(items)
	r.report.Count(appended)
	for i, a := range appended {
		if a.Post == 0 {
			r.dry = true
			continue
		}
		if a.Outcome == ledger.OutcomeSeenAgain {
			continue // another source's post: its counts and its life are that source's
		}
		r.prog.remember(recentOf(messages[i], a.Post))
	}
	return nil
}

func recentOf(m Message, post ledger.PostNum) recent {
	return recent{
		ID: m.ID, Members: m.Members, Post: post, Hash: m.fingerprint().String(), Date: m.Date,
		Views: m.Views, Reactions: m.Reactions,
	}
}

// revise compares messages that were read before with what they were then:
// edits are appended again under their keys, counts that grew notably are
// recorded. Messages that have left the window are left alone.
func (r *run) revise(ctx context.Context, messages []Message, from ledger.TextOrigin) error {
	var (
		items   []ledger.Item
		edited  []Message
		grown   []ledger.Event
		changed bool
	)
	for _, m := range messages {
		known := r.prog.find(m.ID)
		if known == nil || m.Service {
			continue
		}
		changed = changed || known.Missing > 0
		known.Missing = 0
		if known.ID != m.ID {
			m.ID = known.ID // the album's first message was deleted: it is the same post
			if m.Text == "" {
				continue // its caption went with it, and is no edit
			}
		}
		if m.fingerprint().String() != known.Hash && !m.bare() { // what a preview no longer shows is no edit
			it := m.item(r.job.Source, r.channel(), r.job.Source.Lane(), from)
			it.Key = r.key(m.ID)
			items, edited = append(items, it), append(edited, m)
		}
		if e, grew := measured(known, m); grew {
			grown = append(grown, ledger.NewEvent(ledger.ActorCrawler, known.Post, r.job.Source.Slug, e))
		}
	}
	if len(items) > 0 {
		if err := r.append(ctx, items, edited); err != nil {
			return err
		}
		r.kind.metrics.changes.WithLabelValues("edited").Add(float64(len(items)))
	}
	if err := r.record(ctx, "measured", grown); err != nil {
		return err
	}
	return r.store(ctx, changed || len(items)+len(grown) > 0)
}

// remove records that posts are gone at their source. The posts stay.
func (r *run) remove(ctx context.Context, gone []recent, why string) error {
	events := make([]ledger.Event, 0, len(gone))
	for _, g := range gone {
		events = append(events, ledger.NewEvent(ledger.ActorCrawler, g.Post, r.job.Source.Slug,
			ledger.PostRemoved{Key: r.key(g.ID), Cause: why}))
		r.prog.drop(g.ID)
	}
	if err := r.record(ctx, "removed", events); err != nil {
		return err
	}
	return r.store(ctx, len(events) > 0)
}

func (r *run) record(ctx context.Context, kind string, events []ledger.Event) error {
	if len(events) == 0 {
		return nil
	}
	seqs, err := r.job.Sink.Record(ctx, events...)
	if err != nil {
		return fmt.Errorf("record changes of channel %s: %w", r.name, err)
	}
	if len(seqs) == 0 || seqs[0] == 0 {
		r.dry = true
	}
	r.kind.metrics.changes.WithLabelValues(kind).Add(float64(len(events)))
	return nil
}

func (r *run) store(ctx context.Context, changed bool) error {
	if !changed || r.dry {
		return nil
	}
	return r.kind.book.save(ctx, r.name, r.prog)
}

// A count is worth an event when it grew by half and by these.
const (
	notableViews     = 100
	notableReactions = 10
)

// measured tells what to record of a message's counts. Counts that fell are
// not: previews round, and an album's members differ.
func measured(known *recent, m Message) (ledger.PostMeasured, bool) {
	if !grew(known.Views, m.Views, notableViews) && !grew(known.Reactions, m.Reactions, notableReactions) {
		return ledger.PostMeasured{}, false
	}
	known.Views, known.Reactions = larger(known.Views, m.Views), larger(known.Reactions, m.Reactions)
	return ledger.PostMeasured{Measures: ledger.Measures{
		Views: known.Views, Reactions: known.Reactions, Rounded: m.Rounded,
	}}, true
}

func grew(before, now *int64, least int64) bool {
	if now == nil {
		return false
	}
	var b int64
	if before != nil {
		b = *before
	}
	return *now-b >= max(least, b/2)
}
