package telegram

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/ledger"
)

// pageSize is the most messages that Telegram gives at once.
const pageSize = 100

// settled is how long an album at the end of a channel may still grow.
const settled = 15 * time.Second

// renamedAgain is how often a name that a channel no longer has is looked up.
const renamedAgain = 24 * time.Hour

// mtproto reads the channel by its account: the newest page, which is all there
// is to do on most runs, and where that does not reach what was read before,
// pages from there on, oldest first.
func (r *run) mtproto(ctx context.Context) error {
	acc := r.kind.account
	ch, err := acc.Resolve(ctx, r.name, false)
	if err != nil {
		return err
	}
	if err := r.bind(ctx, ch); err != nil {
		return r.sureRenamed(ctx, err)
	}
	top, err := acc.History(ctx, r.prog.Channel, 0, 0, pageSize)
	if err != nil {
		return err
	}
	if err := r.follow(ctx, top); err != nil {
		return err
	}
	if len(top.Messages) == 0 {
		r.report.Empty = true
		return nil
	}
	last := r.prog.Last
	newest := top.Messages[len(top.Messages)-1].ID
	from := last
	if r.first {
		if from, err = r.startOf(ctx, top); err != nil {
			return err
		}
	}
	if newest > from {
		p := &pager{run: r, cursor: from, newest: newest}
		if err := p.pages(ctx, top.Messages); err != nil {
			return err
		}
	}
	return r.reread(ctx, top.Messages, last)
}

// sureRenamed asks Telegram again, once a day, whether the name still leads to
// another channel.
func (r *run) sureRenamed(ctx context.Context, renamed error) error {
	if r.job.Now.Sub(r.prog.Checked) < renamedAgain {
		return renamed
	}
	r.prog.Checked = r.job.Now
	if err := r.kind.book.save(ctx, r.name, r.prog); err != nil {
		return err
	}
	ch, err := r.kind.account.Resolve(ctx, r.name, true)
	if err != nil {
		return err
	}
	if err := r.bind(ctx, ch); err != nil {
		return err
	}
	return r.mtproto(ctx)
}

// follow keeps up with the channel's name. A renamed channel is read on by its
// id; but when somebody else took the old name, its posts' links lead there and
// the operator has to say what is meant.
func (r *run) follow(ctx context.Context, h History) error {
	if h.Channel.ID != r.prog.Channel || h.Channel.Name == "" {
		return nil
	}
	r.prog.Name, r.prog.Title = h.Channel.Name, h.Channel.Title
	if slices.ContainsFunc(h.Names, func(n string) bool { return strings.EqualFold(n, r.name) }) {
		return nil
	}
	if to := defaultPreviewURL + "/" + h.Channel.Name; to != r.job.State.MovedTo {
		r.report.MovedTo = to
	}
	if r.job.Now.Sub(r.prog.Checked) < renamedAgain {
		return nil
	}
	r.prog.Checked = r.job.Now
	if err := r.store(ctx, true); err != nil {
		return err
	}
	ch, err := r.kind.account.Resolve(ctx, r.name, true)
	var failed *crawl.Error
	if errors.As(err, &failed) && failed.Cause == ledger.CauseVanished {
		return nil // renamed, and nobody has the old name
	}
	if err != nil {
		return err
	}
	return r.bind(ctx, ch)
}

// startOf finds where a first run begins: the id before the oldest of the
// newest messages that it is to read. top is the newest page.
func (r *run) startOf(ctx context.Context, top History) (int, error) {
	n := r.backfill()
	if n >= top.Count {
		return 0, nil
	}
	if n <= len(top.Messages) {
		return r.wholeAlbum(ctx, top.Messages[len(top.Messages)-n])
	}
	// Where the messages just there are hidden, begin with older ones.
	for skip := n - 1; skip < top.Count; skip += pageSize {
		h, err := r.kind.account.History(ctx, r.prog.Channel, 0, skip, pageSize)
		if err != nil {
			return 0, err
		}
		if len(h.Messages) > 0 {
			return r.wholeAlbum(ctx, h.Messages[len(h.Messages)-1])
		}
	}
	return 0, nil
}

// wholeAlbum returns the id before m, or before the album that m is part of.
func (r *run) wholeAlbum(ctx context.Context, m Message) (int, error) {
	if m.Album == 0 {
		return m.ID - 1, nil
	}
	h, err := r.kind.account.History(ctx, r.prog.Channel, m.ID, 0, albumSize)
	if err != nil {
		return 0, err
	}
	first := m.ID
	for _, before := range slices.Backward(h.Messages) {
		if before.Album != m.Album {
			break
		}
		first = before.ID
	}
	return first - 1, nil
}

// albumSize is the most messages that an album has.
const albumSize = 10

// pager commits messages page by page. An album at the end of a page waits for
// the rest of it.
type pager struct {
	run    *run
	cursor int // every message up to it was fetched
	newest int
	held   []Message
}

// pages fetches and commits from cursor to the newest message. Each window
// holds the 100 messages that follow the cursor, hidden ones included: what is
// missing in it does not exist for us. So an empty window spans 100 ids or
// more, and a short one is no end. The end is the newest page, top, which is
// there already: no window has to reach beyond it.
func (p *pager) pages(ctx context.Context, top []Message) error {
	for p.cursor < top[0].ID-1 {
		h, err := p.run.kind.account.History(ctx, p.run.prog.Channel, p.cursor+1, -pageSize, pageSize)
		if err != nil {
			return err
		}
		fresh := above(h.Messages, p.cursor)
		next := min(p.cursor+pageSize, top[0].ID-1)
		if len(fresh) > 0 {
			next = fresh[len(fresh)-1].ID
		}
		if err := p.take(ctx, fresh, next); err != nil {
			return err
		}
	}
	return p.take(ctx, above(top, p.cursor), max(p.cursor, p.newest))
}

// take commits fresh messages, which follow the cursor, and moves it to next.
func (p *pager) take(ctx context.Context, fresh []Message, next int) error {
	page := append(p.held, fresh...)
	p.held, p.cursor = nil, next
	through := next
	if n := tailAlbum(page); n < len(page) && (next < p.newest || p.run.job.Now.Sub(page[len(page)-1].Date) < settled) {
		p.held, page = slices.Clone(page[n:]), page[:n]
		through = p.held[0].ID - 1
	}
	messages := fold(page)
	p.run.kind.metrics.messages.WithLabelValues(string(wayMTProto)).Add(float64(len(messages)))
	return p.run.commit(ctx, messages, through, ledger.TextMessage)
}

// tailAlbum returns where the album at the end of page begins; its length
// where there is none.
func tailAlbum(page []Message) int {
	n := len(page)
	for n > 0 && page[n-1].Album != 0 && page[n-1].Album == page[len(page)-1].Album {
		n--
	}
	return n
}

func above(messages []Message, id int) []Message {
	i := slices.IndexFunc(messages, func(m Message) bool { return m.ID > id })
	if i < 0 {
		return nil
	}
	return messages[i:]
}

// reread looks at the window's posts again: those on the newest page there,
// the others by their ids.
func (r *run) reread(ctx context.Context, top []Message, last int) error {
	have := make(map[int]Message, len(top))
	for _, m := range top {
		have[m.ID] = m
	}
	window := slices.DeleteFunc(slices.Clone(r.prog.Recent), func(k recent) bool { return k.ID > last })
	var ask []int
	for _, k := range window {
		for _, id := range k.ids() {
			if _, ok := have[id]; !ok {
				ask = append(ask, id)
			}
		}
	}
	for ids := range slices.Chunk(ask, pageSize) {
		h, err := r.kind.account.Messages(ctx, r.prog.Channel, ids)
		if err != nil {
			return fmt.Errorf("look again at messages of %s: %w", r.name, err)
		}
		for _, m := range h.Messages {
			have[m.ID] = m
		}
	}
	var known []Message
	var gone []recent
	for _, k := range window {
		var group []Message
		for _, id := range k.ids() {
			if m, ok := have[id]; ok {
				group = append(group, m)
			}
		}
		if len(group) == 0 {
			gone = append(gone, k)
			continue
		}
		known = append(known, fold(group)...)
	}
	if err := r.revise(ctx, known, ledger.TextMessage); err != nil {
		return err
	}
	return r.remove(ctx, gone, "deleted")
}
