package telegram

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/fetch"
	"vesti.nixg.ru/ledger"
)

const (
	maxDeep = 12  // pages that are read only to look at known posts again
	farBack = 400 // ids: what was missed beyond them is read from its old end
	reserve = 30 * time.Second
)

// preview reads the channel from its public preview: from the newest page back
// to the last message read, then the pages' messages in order, oldest first.
func (r *run) preview(ctx context.Context) error {
	pages, err := r.walk(ctx)
	if err != nil {
		return err
	}
	last := r.prog.Last
	newer := pages
	if r.first {
		newer = newest(pages, r.backfill())
	}
	count := 0
	for _, p := range slices.Backward(newer) {
		fresh := slices.DeleteFunc(slices.Clone(p), func(m Message) bool { return m.ID <= last })
		if len(fresh) == 0 {
			continue
		}
		count += len(fresh)
		if err := r.commit(ctx, fresh, fresh[len(fresh)-1].last(), ledger.TextPreview); err != nil {
			return err
		}
	}
	r.kind.metrics.messages.WithLabelValues(string(wayPreview)).Add(float64(count))
	return r.lookAgain(ctx, pages, last)
}

// walk fetches pages, newest first, until one reaches what was read before.
func (r *run) walk(ctx context.Context) ([][]Message, error) {
	var (
		pages  [][]Message
		count  int
		before int
	)
	deep := r.deepFloor()
	for {
		p, err := r.fetchPage(ctx, before)
		if err != nil {
			return nil, err
		}
		if len(p.Messages) == 0 {
			r.report.Empty = before == 0
			return pages, nil
		}
		if before == 0 || r.prog.Channel == 0 {
			if err := r.bind(ctx, p.Channel); err != nil {
				return nil, err
			}
			deep = r.deepFloor()
		}
		oldest := p.Messages[0].ID
		pages = append(pages, p.Messages)
		for _, m := range p.Messages {
			count += len(m.ids())
		}
		switch {
		case r.first && (count >= r.backfill() || outOfTime(ctx)), oldest <= 1:
			return pages, nil
		case !r.first && before == 0 && oldest-r.prog.Last > farBack:
			return pages, r.climb(ctx, oldest)
		case !r.first && oldest <= r.prog.Last+1 && (deep == 0 || oldest <= deep || len(pages) >= maxDeep):
			return pages, nil
		}
		before = oldest
	}
}

// outOfTime reports whether the run ends so soon that what was read has to be
// handed over now.
func outOfTime(ctx context.Context) bool {
	end, limited := ctx.Deadline()
	return limited && time.Until(end) < reserve
}

// climb reads the messages from the last one read up to before, which are too
// many to hold: a stretch at a time, from its upper end down, the older
// stretches first. Each is committed, so that a run that is cut short goes on
// there.
func (r *run) climb(ctx context.Context, before int) error {
	const short = 20 // ids of a stretch that one page holds if none is deleted
	step := short
	for cursor := r.prog.Last; cursor < before-1; {
		end := min(cursor+1+step, before)
		pages, err := r.stretch(ctx, cursor, end)
		if err != nil {
			return err
		}
		found := 0
		for _, p := range slices.Backward(pages) {
			found += len(p)
			if err := r.commit(ctx, p, p[len(p)-1].last(), ledger.TextPreview); err != nil {
				return err
			}
		}
		r.kind.metrics.messages.WithLabelValues(string(wayPreview)).Add(float64(found))
		if err := r.commit(ctx, nil, end-1, ledger.TextPreview); err != nil {
			return err
		}
		cursor = end - 1
		switch {
		case len(pages) > 1:
			step = max(step/2, short)
		case found < short/2:
			step *= 2
		}
	}
	return nil
}

// stretch fetches the messages above cursor and below end, newest page first.
func (r *run) stretch(ctx context.Context, cursor, end int) ([][]Message, error) {
	var pages [][]Message
	for {
		p, err := r.fetchPage(ctx, end)
		if err != nil {
			return nil, err
		}
		if len(p.Messages) == 0 {
			return pages, nil
		}
		if fresh := above(p.Messages, cursor); len(fresh) > 0 {
			pages = append(pages, fresh)
		}
		if end = p.Messages[0].ID; end <= cursor+1 {
			return pages, nil
		}
	}
}

// deepFloor is the oldest known message that is due to be looked at again; 0
// when the newest page is enough.
func (r *run) deepFloor() int {
	if len(r.prog.Recent) == 0 || r.job.Now.Sub(r.prog.Deep) < r.kind.again {
		return 0
	}
	return r.prog.Recent[0].ID
}

// newest leaves of pages, newest first, what holds the newest limit messages.
func newest(pages [][]Message, limit int) [][]Message {
	var out [][]Message
	for _, p := range pages {
		from := len(p)
		for from > 0 && limit > 0 {
			from--
			limit -= len(p[from].ids())
		}
		if from < len(p) {
			out = append(out, p[from:])
		}
	}
	return out
}

func (r *run) fetchPage(ctx context.Context, before int) (page, error) {
	if err := r.kind.pace.Wait(ctx); err != nil {
		if ctx.Err() != nil {
			return page{}, context.Cause(ctx)
		}
		return page{}, fmt.Errorf("wait for the turn of %s: %w", r.name, err)
	}
	address := r.kind.base + "/s/" + r.name
	if before > 0 {
		address += "?before=" + strconv.Itoa(before)
	}
	resp, err := r.kind.fetch.Get(ctx, fetch.Request{
		URL: address, Accept: fetch.AcceptPage, UserAgent: r.job.Source.UserAgent, AllowPrivate: r.kind.private,
	})
	if err != nil {
		return page{}, err
	}
	r.kind.metrics.pages.Inc()
	r.report.HTTPStatus = resp.Status
	r.report.Bytes += resp.Bytes
	p, err := parsePage(resp.Body)
	if err != nil {
		return page{}, &crawl.Error{Cause: ledger.CauseNotFeed, HTTPStatus: resp.Status, Message: r.name + ": the preview page is " + err.Error(), Err: err}
	}
	if p.Kind != pageHistory {
		return page{}, r.noHistory(p)
	}
	if p.Strange == "" && before > 0 && len(p.Messages) > 0 && p.Messages[len(p.Messages)-1].ID >= before {
		p.Strange = fmt.Sprintf("it shows message %d, though those before %d were asked for", p.Messages[len(p.Messages)-1].ID, before)
	}
	if p.Strange != "" {
		return page{}, &crawl.Error{Cause: ledger.CauseParse, HTTPStatus: resp.Status, Message: fmt.Sprintf(
			"%s: the preview page is not what it used to be (%s): Telegram may have changed its markup", r.name, p.Strange)}
	}
	if p.Broken > 0 {
		r.kind.log.WarnContext(ctx, "blocks of a preview page cannot be read", "source", r.job.Source.Slug, "blocks", p.Broken)
	}
	return p, nil
}

// noHistory says why a page shows no messages.
func (r *run) noHistory(p page) error {
	e := &crawl.Error{HTTPStatus: http.StatusOK, Cause: ledger.CauseNoPreview}
	login := `; to read it, log in with "vesti telegram login"`
	switch p.Kind {
	case pageChannel:
		e.Message = fmt.Sprintf("channel %s has no public preview (its owner, or an age or country limit, forbids it)%s", r.name, login)
	case pageGroup:
		e.Message = fmt.Sprintf("%s is a group, and groups have no public preview%s", r.name, login)
	case pagePerson:
		e.Cause, e.Message = ledger.CauseNotFeed, r.name+" is a person or a bot, not a channel"
	case pageVacant:
		e.Cause, e.Message = ledger.CauseVanished, fmt.Sprintf("nobody has the name %s now: the channel was renamed or deleted", r.name)
		if r.prog.Title != "" {
			e.Message += fmt.Sprintf("; it was %q (id %d)", r.prog.Title, r.prog.Channel)
		}
	default:
		e.Cause = ledger.CauseNotFeed
		e.Message = fmt.Sprintf("%s: the answer is neither a channel's preview nor a page of Telegram that is known", r.name)
	}
	return e
}

// lookAgain compares the pages with the window of known posts. A post that is
// gone from between others on two runs in a row was deleted.
func (r *run) lookAgain(ctx context.Context, pages [][]Message, last int) error {
	if len(pages) == 0 {
		return nil
	}
	seen := make(map[int]bool)
	var known []Message
	for _, p := range pages {
		for _, m := range p {
			for _, id := range m.ids() {
				seen[id] = true
			}
			if m.ID <= last {
				known = append(known, m)
				r.prog.Last = max(r.prog.Last, m.last()) // an album that grew
			}
		}
	}
	if err := r.revise(ctx, known, ledger.TextPreview); err != nil {
		return err
	}
	oldest := pages[len(pages)-1][0].ID
	if len(pages) > 1 {
		r.prog.Deep = r.job.Now
	}
	var covered, missing []*recent
	for i := range r.prog.Recent {
		k := &r.prog.Recent[i]
		if k.ID < oldest || k.ID > last {
			continue
		}
		covered = append(covered, k)
		if !slices.ContainsFunc(k.ids(), func(id int) bool { return seen[id] }) {
			missing = append(missing, k)
		}
	}
	if len(missing) == 0 || len(missing)*2 > len(covered) {
		return r.store(ctx, len(pages) > 1) // that much is no editing of a channel, but a page that shows too little
	}
	var gone []recent
	for _, k := range missing {
		if k.Missing++; k.Missing > 1 {
			gone = append(gone, *k)
		}
	}
	if len(gone) == 0 {
		return r.store(ctx, true)
	}
	return r.remove(ctx, gone, "no longer on the preview page")
}
