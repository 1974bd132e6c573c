package feed

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/page"
	"vesti.nixg.ru/ledger"
)

const (
	// shortText is the number of characters below which a text is no article's.
	shortText = 220
	// pagesPerAppend is how many fetched pages wait at most to be stored.
	pagesPerAppend = 8
	// maxTitle is the longest title or author that is kept, in bytes.
	maxTitle = 2 << 10
	// maxRawDate is the longest date that is kept as it was written, in bytes.
	maxRawDate = 200
	// maxAhead is how far a date may lie ahead of the clock.
	maxAhead = 24 * time.Hour
)

// taking is a run's way through the entries of its document.
type taking struct {
	*Kind
	job     crawl.Job
	doc     *Document
	report  *crawl.Report
	shared  *sharedTexts
	notices notices
	batch   []ledger.Item // that wait to be stored
	asked   int           // pages, since the last batch was stored
}

// take hands the newest entries of doc to the job's sink, oldest first, so that
// the order of posts is that of the entries. Entries that are known and have
// not changed are settled before any page is fetched.
func (k *Kind) take(ctx context.Context, job crawl.Job, doc *Document, report *crawl.Report) error {
	identify(job.Source.Slug, doc.Entries)
	entries := newest(doc.Entries, job.Source.MaxItems, job.Now)
	slices.Reverse(entries)
	report.Fetched = len(entries)
	entries, err := k.drop(ctx, job, entries, report)
	if err != nil {
		return err
	}
	keys := make([]ledger.ItemKey, len(entries))
	for i, e := range entries {
		keys[i] = e.key
	}
	known, err := job.Sink.KnownItems(ctx, keys)
	if err != nil {
		return fmt.Errorf("look up entries: %w", err)
	}
	t := &taking{Kind: k, job: job, doc: doc, report: report, shared: newSharedTexts(job, doc.Entries), notices: newNotices()}
	pageCtx, cancel := timeForPages(ctx)
	defer cancel()
	for i, e := range entries {
		if known[i].Post != 0 && e.settled(known[i].Fingerprint, job.Now) {
			continue
		}
		if err := t.entry(ctx, pageCtx, e, known[i].Post); err != nil {
			return errors.Join(err, t.flush(ctx))
		}
		if t.asked == pagesPerAppend {
			if err := t.flush(ctx); err != nil {
				return err
			}
		}
	}
	if err := t.flush(ctx); err != nil {
		return err
	}
	return t.takeBack(ctx, entries, known)
}

// timeForPages leaves a quarter of a run's time to what is not pages: a site
// whose pages hang must not make its feed one that fails.
func timeForPages(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadlineCause(ctx, end.Add(-time.Until(end)/4), errPageTime)
}

var errPageTime = errors.New("the run has no more time for pages")

// entry makes an item of an entry, with its page where that is wanted. own is
// its post, zero for a new entry.
func (t *taking) entry(ctx, pageCtx context.Context, e *Entry, own ledger.PostNum) error {
	item := t.item(t.job, t.doc, e)
	if t.wantsPage(t.job.Source, item) {
		if err := t.fromPage(ctx, pageCtx, e, &item, own); err != nil {
			return err
		}
		t.asked++
	}
	return t.add(ctx, e, item, own)
}

// add puts an item into the batch.
func (t *taking) add(ctx context.Context, e *Entry, item ledger.Item, own ledger.PostNum) error {
	id, err := t.shared.take(ctx, &item, e.rawText(), own)
	if err != nil {
		return err
	}
	if item.Lang == "" {
		item.Lang = guessLanguage(item.Title + "\n" + item.Text)
	}
	t.notices.texts[e.key] = id
	t.batch = append(t.batch, item)
	return nil
}

// flush stores the batch.
func (t *taking) flush(ctx context.Context) error {
	t.asked = 0
	if len(t.batch) == 0 {
		return nil
	}
	appended, err := t.job.Sink.Append(ctx, t.batch)
	if err != nil {
		return fmt.Errorf("store entries: %w", err)
	}
	t.report.Count(appended)
	t.batch = t.batch[:0]
	return nil
}

// drop leaves out what the source's rules say. They look at what the feed
// gives, so that no page is fetched for an entry that nobody wants.
func (k *Kind) drop(ctx context.Context, job crawl.Job, entries []*Entry, report *crawl.Report) ([]*Entry, error) {
	rules, err := job.Source.Rules()
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", job.Source.Slug, err)
	}
	if rules.Empty() {
		return entries, nil
	}
	kept := make([]*Entry, 0, len(entries))
	var dropped []crawl.Dropped
	for _, e := range entries {
		text, _ := e.text()
		rule, drops := rules.Drops(e.Title, text)
		if !drops {
			kept = append(kept, e)
			continue
		}
		dropped = append(dropped, crawl.Dropped{
			Source: job.Source.Slug, Key: e.key, Title: e.Title, URL: e.Link, Published: e.published(job.Now), Rule: rule,
		})
	}
	if len(dropped) > 0 {
		n, err := job.Sink.Drop(ctx, dropped)
		if err != nil {
			return nil, fmt.Errorf("keep dropped entries: %w", err)
		}
		report.Dropped += n
	}
	return kept, nil
}

// item is the entry as the ledger takes it, with what the feed gave.
func (k *Kind) item(job crawl.Job, doc *Document, e *Entry) ledger.Item {
	src := job.Source
	text, from := e.text()
	it := ledger.Item{
		Source: src.Slug, Key: e.key, Fingerprint: e.fingerprint,
		URL: e.Link, CanonicalURL: CanonicalURL(e.Link),
		Title: ledger.CutText(e.Title, maxTitle), Author: ledger.CutText(e.Author, maxTitle), PublishedRaw: ledger.CutText(e.PublishedRaw, maxRawDate),
		Text: text, TextFrom: from,
		Lang: language(src.Lang, e.Language, doc.Language), Direction: src.Direction,
		IsOwn: src.IsOwn, Lane: src.Lane(), Media: e.Media,
	}
	it.Published = e.published(job.Now)
	cutText(&it)
	return it
}

func cutText(it *ledger.Item) {
	if len(it.Text) > ledger.MaxText {
		it.Text, it.Truncated = ledger.CutText(it.Text, ledger.MaxText), true
	}
}

// text is the entry's text by what the feed gave: its content, else its
// summary.
func (e *Entry) text() (string, ledger.TextOrigin) {
	if text := e.Content.Plain(); text != "" {
		return text, ledger.TextContent
	}
	if text := e.Summary.Plain(); text != "" {
		return text, ledger.TextSummary
	}
	return "", ledger.TextTitle
}

// published is the entry's date, zero where it has none that can be believed:
// then it counts as published when it was fetched.
func (e *Entry) published(now time.Time) time.Time {
	if e.Published.After(now.Add(maxAhead)) {
		return time.Time{}
	}
	return e.Published
}

// wantsPage reports whether the entry's page is to be fetched.
func (k *Kind) wantsPage(src crawl.Source, it ledger.Item) bool {
	isPage := it.URL != "" && !slices.Contains(it.Media, it.URL)
	if k.pages == nil || !isPage || src.FullText == crawl.FullTextFalse {
		return false
	}
	return src.FullText == crawl.FullTextTrue || it.TextFrom != ledger.TextContent || shorter(it.Text, shortText)
}

// shorter reports whether s has fewer than n characters.
func shorter(s string, n int) bool {
	for range s {
		if n--; n == 0 {
			return false
		}
	}
	return true
}

// fromPage takes the text of the entry's page in the place of the feed's, where
// it is the longer one. A page that fails is no failure of the source: the
// feed's text stays, and so it does where the page's is another article's. It
// returns an error only where ctx ended or the ledger failed.
func (t *taking) fromPage(ctx, pageCtx context.Context, e *Entry, it *ledger.Item, own ledger.PostNum) error {
	if pageCtx.Err() != nil && ctx.Err() == nil {
		it.Fingerprint = e.later()
		// The next run gets the document again, and goes on with the pages.
		v := &t.report.Validators
		v.ETag, v.LastModified, v.BodyHash = "", "", ledger.Hash{}
		return nil
	}
	source := string(t.job.Source.Slug)
	p, err := t.pages.Get(pageCtx, t.job.Source, it.URL)
	if ctx.Err() != nil {
		return fmt.Errorf("get pages: %w", context.Cause(ctx))
	}
	if err == nil && lostItsWay(it.URL, p.URL) {
		err = errors.New("the site sends the link to its front page, or to one that asks something first")
	}
	if err != nil {
		t.log.DebugContext(ctx, "page not read", "source", source, "url", it.URL, "error", err)
		if passing(err) {
			it.Fingerprint = e.retryOn(t.job.Now)
		}
		return nil
	}
	text := withoutHeadline(p.Text, e.Title)
	longer := len(text) > len(it.Text) || p.From == ledger.TextSelector
	if longer {
		// Asked by the entry's own address: a notice may name itself as canonical.
		id := ledger.IdentifyText(text, it.Key)
		notice, err := t.shared.anothers(ctx, it, id, own)
		if err != nil {
			return err
		}
		if notice {
			t.notices.count[id]++
			it.Fingerprint = e.noticed()
			t.log.DebugContext(ctx, "page has the text of another article", "source", source, "url", it.URL)
			return nil
		}
		it.Text, it.TextFrom, it.Truncated = text, p.From, p.Truncated
		cutText(it)
	}
	if c := CanonicalURL(p.Canonical); c != "" {
		it.CanonicalURL = c
	}
	return nil
}

func isFromPage(it *ledger.Item) bool {
	return it.TextFrom == ledger.TextPage || it.TextFrom == ledger.TextSelector
}

// lostItsWay reports whether a link to an article ended at a front page, as
// sites do with articles that are gone, or at one that wants a login or consent.
func lostItsWay(link, final string) bool {
	from, err1 := url.Parse(link)
	to, err2 := url.Parse(final)
	return err1 == nil && err2 == nil && (!page.IsFront(from) && page.IsFront(to) || !isGate(from) && isGate(to))
}

// isGate reports whether u is by its name a page in front of others.
func isGate(u *url.URL) bool {
	host, _, _ := strings.Cut(u.Hostname(), ".")
	for _, part := range append(strings.Split(u.Path, "/"), host) {
		switch strings.ToLower(part) {
		case "login", "log-in", "signin", "sign-in", "sso", "auth", "oauth", "consent":
			return true
		}
	}
	return false
}

// passing reports whether a page's failure may be over on another day.
func passing(err error) bool {
	var throttled *crawl.Throttled
	var failed *crawl.Error
	switch {
	case errors.As(err, &throttled), errors.Is(err, errPageTime), errors.Is(err, page.ErrBusy):
		return true
	case !errors.As(err, &failed):
		return false
	}
	switch failed.Cause {
	case ledger.CauseDNS, ledger.CauseConnect, ledger.CauseTLS, ledger.CauseTimeout:
		return true
	case ledger.CauseHTTP:
		return failed.HTTPStatus >= 500
	default:
		return false
	}
}
