package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/text/language"

	"vesti.nixg.ru/httpui"
	"vesti.nixg.ru/httpui/i18n"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/projections/posts"
	"vesti.nixg.ru/projections/search"
)

type searchResult struct {
	Total  int               `json:"total"`
	TookMS int64             `json:"took_ms"`
	Hits   []hit             `json:"hits"`
	Notes  []httpui.NoteJSON `json:"notes"` // what of the query was not followed
}

type hit struct {
	ID        ledger.PostID    `json:"id"`
	Title     string           `json:"title"`
	Heading   string           `json:"heading"` // the title, or what stands for one
	URL       string           `json:"url"`
	Source    ledger.Slug      `json:"source"`
	Direction ledger.Direction `json:"direction"`
	Verdict   ledger.Verdict   `json:"verdict"`
	Published time.Time        `json:"published,omitzero"`
	Snippet   string           `json:"snippet"`
}

func newSearch(c *call) *cobra.Command {
	var direction, source, lang, since, until, sort string
	var limit int
	cmd := &cobra.Command{
		Use:   "search [QUERY]",
		Short: "Find candidates by their text",
		Long: `Find candidates by their text. All words must be there, in any form; "quotes"
make a phrase, -word excludes, word* is a prefix, OR stands between alternatives.
Put -- before a query that begins with a minus. Without a query: the newest
candidates. Fields narrow it, and with a minus before them exclude:

  title:WORD
  source:SLUG
  direction:NAME         one of the directions, or none
  lang:ru                two letters
  status:VALUE           pending, classified or parked
  verdict:VALUE          picked, rejected or none
  after:DAY before:DAY   2026-01-31, 2026-01, 2026, today, yesterday, 12h, 7d, 2w

What of a query cannot be followed is left out and told on standard error, and
as "notes" with --json.`,
		Example: "  vesti search 'ядро linux' --limit 5\n  vesti search --direction llm --since 2026-11-01 --sort interest",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 0 || limit > search.MaxLimit {
				return usagef("--limit %d: want 1 to %d, or 0 for the most", limit, search.MaxLimit)
			}
			if limit == 0 {
				limit = search.MaxLimit
			}
			return c.withApp(cmd.Context(), func(ctx context.Context, a *App) error {
				r := search.Request{Query: strings.Join(args, " "), Sort: posts.Sort(sort), Limit: limit}
				if err := a.checkDirection(ledger.Direction(direction)); err != nil {
					return err
				}
				if err := a.checkSource(ctx, ledger.Slug(source)); err != nil {
					return err
				}
				if direction != "" {
					r.Directions = []ledger.Direction{ledger.Direction(direction)}
				}
				if source != "" {
					r.Sources = []ledger.Slug{ledger.Slug(source)}
				}
				var err error
				if lang != "" {
					if lang, err = parseLang(lang); err != nil {
						return err
					}
					r.Langs = []string{lang}
				}
				if r.Since, err = parseDay("--since", since, a.cfg.location()); err != nil {
					return err
				}
				if r.Until, err = parseDay("--until", until, a.cfg.location()); err != nil {
					return err
				}
				switch r.Sort {
				case "", posts.ByDate, posts.ByRelevance, posts.ByInterest:
				default:
					return usagef("--sort %s: want date, relevance or interest", sort)
				}
				return c.search(ctx, a, r)
			})
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return usagef("%s; put -- before a query that begins with a minus: vesti search -- -word", flagError(err))
	})
	f := cmd.Flags()
	f.IntVar(&limit, "limit", search.DefaultLimit, fmt.Sprintf("most hits to print, up to %d; 0 for as many as that", search.MaxLimit))
	f.StringVar(&direction, "direction", "", "only this direction")
	f.StringVar(&source, "source", "", "only what this source carries")
	f.StringVar(&lang, "lang", "", "only this language, by its two letters: ru, en")
	f.StringVar(&since, "since", "", "only from this day on, 2006-01-02, or a time as in RFC 3339")
	f.StringVar(&until, "until", "", "only before this day or time")
	f.StringVar(&sort, "sort", "", "date, relevance or interest (default relevance; date without a query)")
	return cmd
}

func (c *call) search(ctx context.Context, a *App, r search.Request) error {
	a.settle(ctx)
	found, err := a.search.Search(ctx, r)
	if err != nil {
		return fmt.Errorf("search: %w", err)
	}
	out := searchResult{Total: found.Total, TookMS: found.Took.Milliseconds(), Hits: []hit{}, Notes: httpui.NotesJSON(found.Notes)}
	for _, h := range found.Hits {
		heading := plain(h.Heading)
		if heading == "" {
			if heading, err = a.standIn(h); err != nil {
				return fmt.Errorf("search: %w", err)
			}
		}
		out.Hits = append(out.Hits, hit{
			ID: h.ID, Title: h.Title, Heading: heading, URL: h.URL, Source: h.Source, Direction: h.Direction, Verdict: h.Verdict, Published: h.Date, Snippet: plain(h.Snippet),
		})
	}
	if err := c.searchNotes(found.Notes); err != nil {
		return fmt.Errorf("search: %w", err)
	}
	return c.result(out, func(w io.Writer) {
		for _, h := range out.Hits {
			about := orDash(string(h.Direction))
			if h.Verdict != ledger.VerdictNone {
				about += "  " + string(h.Verdict)
			}
			fmt.Fprintf(w, "%s  %s  %s  %s\n", h.ID.String()[:12], h.Published.In(a.cfg.location()).Format("2006-01-02 15:04"), h.Source, about)
			for _, line := range []string{h.Heading, h.URL, h.Snippet} {
				if line != "" {
					fmt.Fprintf(w, "    %s\n", line)
				}
			}
		}
		fmt.Fprintf(w, "%d found, %d shown\n", out.Total, len(out.Hits))
	})
}

// searchNotes tells a person, in the pages' words, what of a query was not
// followed. A program finds it in the result.
func (c *call) searchNotes(notes []search.Note) error {
	if c.json || len(notes) == 0 {
		return nil
	}
	words, err := i18n.Load()
	if err != nil {
		return fmt.Errorf("read the catalogue: %w", err)
	}
	for _, n := range notes {
		text, err := httpui.NoteText(words.Match("en", ""), n)
		if err != nil {
			return err //nolint:wrapcheck // names the text
		}
		fmt.Fprintln(c.err, text)
	}
	return nil
}

// checkSource wants a source of the registry, one that was there once, or none.
func (a *App) checkSource(ctx context.Context, slug ledger.Slug) error {
	if slug == "" {
		return nil
	}
	_, err := a.sourceBySlug(slug)
	if err == nil || slug.Validate() != nil {
		return err
	}
	events, readErr := a.log.SourceEvents(ctx, slug, 1)
	if readErr != nil {
		return fmt.Errorf("read history of source %s: %w", slug, readErr)
	}
	if len(events) > 0 {
		return nil
	}
	return err
}

// parseLang wants a language that there is, and returns its code as posts have it.
func parseLang(s string) (string, error) {
	base, err := language.ParseBase(s)
	if err != nil {
		return "", usagef("--lang %s: no language is known by that; want two letters, such as ru or en", s)
	}
	return base.String(), nil
}

func plain(segments []search.Segment) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteString(s.Text)
	}
	return b.String()
}

// standIn is what the pages call a post without title and text, in English as
// all that commands say.
func (a *App) standIn(h search.Hit) (string, error) {
	words, err := i18n.Load()
	if err != nil {
		return "", fmt.Errorf("read the catalogue: %w", err)
	}
	name := string(h.Source)
	for _, src := range a.crawler.Sources() {
		if src.Slug == h.Source {
			name = cmp.Or(src.Name, name)
		}
	}
	return httpui.StandIn(words.Match("en", ""), h.Media, name)
}

// parseDay reads a day of the configured zone, or a time.
func parseDay(flag, s string, loc *time.Location) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if t, err := time.ParseInLocation(time.DateOnly, s, loc); err == nil {
		return t, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, usagef("%s %q: want a day such as 2026-11-30, or a time such as 2026-11-30T12:00:00Z", flag, s)
	}
	return t, nil
}
