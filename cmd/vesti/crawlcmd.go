package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/ledger"
)

func newCrawl(c *call) *cobra.Command {
	var sel selection
	var dry bool
	cmd := &cobra.Command{
		Use:   "crawl --all | --direction D | --source S",
		Short: "Crawl sources now, whether they are due or not",
		Long: `Crawl sources now, whether they are due or not. New posts wait in the queue;
"vesti work", or a running server, classifies them. A failure counts as one of the
schedule's would: after five in a row a source is dead, and asked once a day.
"vesti sources check" asks without counting.

Exit code 3: done, but some sources failed. A source that was told to wait, or
had nothing new, has not failed.`,
		Example: "  vesti crawl --all\n  vesti crawl --source lwn --dry-run",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := sel.check(); err != nil {
				return err
			}
			if dry {
				c.needs = needsSources
			}
			return c.withApp(cmd.Context(), func(ctx context.Context, a *App) error {
				return c.crawl(ctx, a, sel.crawl(), dry)
			})
		},
	}
	sel.flags(cmd)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "fetch and read, print what is new, revised, seen again or known, store nothing")
	return cmd
}

// selection is the flags that say which sources a command is about.
type selection struct {
	all       bool
	direction string
	sources   []string
}

func (s *selection) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.all, "all", false, "all enabled sources")
	cmd.Flags().StringVar(&s.direction, "direction", "", "the enabled sources of this direction")
	cmd.Flags().StringSliceVar(&s.sources, "source", nil, "this source, by its slug; may be given again")
}

func (s *selection) check() error {
	n := 0
	for _, given := range []bool{s.all, s.direction != "", len(s.sources) > 0} {
		if given {
			n++
		}
	}
	if n != 1 {
		return usagef("say which sources: one of --all, --direction D, --source S")
	}
	return nil
}

func (s *selection) crawl() crawl.Selection {
	sel := crawl.Selection{All: s.all, Direction: ledger.Direction(s.direction)}
	for _, slug := range s.sources {
		sel.Slugs = append(sel.Slugs, ledger.Slug(slug))
	}
	return sel
}

func (c *call) crawl(ctx context.Context, a *App, sel crawl.Selection, dry bool) error {
	if err := a.checkDirection(sel.Direction); err != nil {
		return err
	}
	if err := a.space(); err != nil && !dry {
		return err
	}
	sum, err := a.crawler.RunOnce(ctx, sel, crawl.Once{DryRun: dry, Progress: c.runProgress()})
	if err != nil {
		return asUsage(err)
	}
	if err := c.result(sum, func(w io.Writer) { printCrawl(w, sum, dry) }); err != nil {
		return err
	}
	return partial(sum)
}

// checkDirection wants one of the configured directions, or none.
func (a *App) checkDirection(d ledger.Direction) error {
	if d == "" || slices.Contains(a.cfg.Directions, d) {
		return nil
	}
	return usagef("--direction %s: want one of %s", d, joinList(a.cfg.Directions, func(d ledger.Direction) string { return string(d) }))
}

func (c *call) runProgress() func(crawl.Result) {
	return func(r crawl.Result) {
		line := fmt.Sprintf("%-24s %-12s", r.Slug, r.Outcome)
		if r.Error != "" {
			c.progress("%s %s", line, r.Error)
			return
		}
		note := ""
		if r.Truncated {
			note = "; " + noteTruncated
		}
		c.progress("%s %d entries, %d new, %d seen again, %d revised, %d dropped%s", line, r.Fetched, r.New, r.SeenAgain, r.Revised, r.Dropped, note)
	}
}

func printCrawl(w io.Writer, s crawl.Summary, dry bool) {
	for _, e := range s.Entries {
		fmt.Fprintf(w, "%s  %s  %s  %s\n    %s\n    %s\n", e.Source, day(e.Published), strings.ReplaceAll(e.Outcome, "_", " "), e.Title, e.URL, e.TextStart)
	}
	for _, d := range s.Drops {
		fmt.Fprintf(w, "%s  left out by %s: %s\n", d.Source, d.Rule, d.Title)
	}
	note := ""
	if dry {
		note = "; a dry run, nothing was stored"
	}
	fmt.Fprintf(w, "%d sources in %s: %d entries, %d new, %d seen again, %d revised, %d dropped; %d not modified, %d throttled, %d failed%s\n",
		s.Sources, millis(s.DurationMS), s.Fetched, s.New, s.SeenAgain, s.Revised, s.Dropped, s.NotModified, s.Throttled, s.Errors, note)
}

// partial is the error of a round in which some sources failed.
func partial(s crawl.Summary) error {
	if s.Errors == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d of %d", errPartial, s.Errors, s.Sources)
}

func day(t time.Time) string {
	if t.IsZero() {
		return "no date"
	}
	return t.UTC().Format("2006-01-02 15:04")
}

func millis(ms int64) time.Duration {
	return (time.Duration(ms) * time.Millisecond).Round(time.Millisecond)
}
