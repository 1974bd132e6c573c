package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/projections/sources"
)

func newSources(c *call) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sources",
		Short: "List, find, check, reload, reset, import and export sources",
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newSourcesImport(c))
	cmd.AddCommand(needing(needsDesk, newSourcesList(c), newSourcesReload(c), newSourcesReset(c))...)
	cmd.AddCommand(needing(needsStore, newSourcesDropped(c))...)
	cmd.AddCommand(needing(needsSources, newSourcesCheck(c), newSourcesExport(c), newSourcesPreview(c))...)
	cmd.AddCommand(needing(needsNothing, newSourcesDiscover(c))...)
	return cmd
}

type sourceRow struct {
	Slug       ledger.Slug    `json:"slug"`
	Name       string         `json:"name"`
	Crawler    ledger.Crawler `json:"crawler"`
	Status     string         `json:"status"`
	Enabled    bool           `json:"enabled"`
	Priority   string         `json:"priority"`
	LastFetch  time.Time      `json:"last_fetch,omitzero"`
	LastOK     time.Time      `json:"last_ok,omitzero"`
	Next       time.Time      `json:"next,omitzero"`
	ErrorCount int            `json:"error_count"`
	LastError  string         `json:"last_error,omitempty"`
	MovedTo    string         `json:"moved_to,omitempty"`
	Throttled  time.Time      `json:"throttled_until,omitzero"`
	Truncated  bool           `json:"truncated,omitempty"`
	Note       string         `json:"note,omitempty"` // why it is as it is, in words
}

const (
	noteTruncated = "the document was not read whole, it is cut or too long; what was complete is kept"
	noteEmpty     = "the document has no entries"
)

func newSourcesList(c *call) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the sources and how they are doing",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withApp(cmd.Context(), func(ctx context.Context, a *App) error {
				rows, err := a.sourceRows(ctx)
				if err != nil {
					return err
				}
				return c.result(map[string]any{"sources": rows}, func(w io.Writer) {
					tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
					for _, r := range rows {
						next := "never"
						if !r.Next.IsZero() {
							next = r.Next.In(a.cfg.location()).Format("2006-01-02 15:04")
						}
						fmt.Fprintf(tw, "%s\t%s\t%s\t%s\tnext %s\t%d errors\t%s\n", r.Slug, r.Crawler, r.Priority, r.Status, next, r.ErrorCount, r.Note)
					}
					_ = tw.Flush()
				})
			})
		},
	}
}

func (a *App) sourceRows(ctx context.Context) ([]sourceRow, error) {
	a.settle(ctx)
	truncated := map[ledger.Slug]bool{}
	for _, s := range a.sources.All() {
		truncated[s.Slug] = s.Truncated
	}
	rows := []sourceRow{}
	for _, v := range a.crawler.Status() {
		r := sourceRow{
			Slug: v.Source.Slug, Name: v.Source.Name, Crawler: v.Source.Crawler, Status: v.State.Status.String(), Enabled: v.Source.Enabled,
			Priority: v.Source.Priority.String(), LastFetch: v.State.LastFetch, LastOK: v.State.LastOK, Next: v.Due,
			ErrorCount: v.State.ErrorCount, LastError: v.State.LastError, MovedTo: v.State.MovedTo,
			Throttled: v.State.ThrottledUntil, Truncated: truncated[v.Source.Slug],
		}
		var err error
		if r.Note, err = a.sourceNote(ctx, r, v.State.Status); err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// sourceNote says why a source is as it is; "" for one that is well.
func (a *App) sourceNote(ctx context.Context, r sourceRow, status ledger.SourceStatus) (string, error) {
	switch {
	case status == ledger.SourceThrottle:
		note := "told to wait until " + r.Throttled.In(a.cfg.location()).Format("2006-01-02 15:04")
		runs, err := a.sources.Runs(ctx, r.Slug, 1)
		if err != nil {
			return "", fmt.Errorf("list sources: %w", err)
		}
		if len(runs) > 0 && runs[0].Result == sources.ResultThrottled && runs[0].Error != "" {
			note += ": " + runs[0].Error
		}
		return note, nil
	case r.LastError != "":
		return r.LastError, nil
	case r.Truncated:
		return noteTruncated, nil
	case status == ledger.SourceEmpty:
		return noteEmpty, nil
	case r.MovedTo != "":
		return "moved for good to " + r.MovedTo, nil
	default:
		return "", nil
	}
}

func newSourcesCheck(c *call) *cobra.Command {
	var sel selection
	cmd := &cobra.Command{
		Use:   "check [--all | --direction D | --source S]",
		Short: "Fetch each source of sources.yaml once, report, store nothing",
		Long: `Fetch each source of sources.yaml once, report, store nothing. The file is read as
it is now, beside a running server too: check it here, then put it in force with
"vesti sources reload". A failure here is not counted against its source. Exit code 2:
the file has mistakes, each told with its line.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !sel.all && sel.direction == "" && len(sel.sources) == 0 {
				sel.all = true
			}
			if err := sel.check(); err != nil {
				return err
			}
			return c.withApp(cmd.Context(), func(ctx context.Context, a *App) error {
				if err := a.checkDirection(ledger.Direction(sel.direction)); err != nil {
					return err
				}
				list, err := a.readSources()
				if err != nil {
					return err
				}
				sum, err := a.crawler.Check(ctx, list, sel.crawl(), c.runProgress())
				if err != nil {
					return asUsage(err)
				}
				if err := c.result(sum, func(w io.Writer) {
					fmt.Fprintf(w, "%d sources checked: %d answered, %d throttled, %d failed\n", sum.Sources, sum.Sources-sum.Throttled-sum.Errors, sum.Throttled, sum.Errors)
				}); err != nil {
					return err
				}
				return partial(sum)
			})
		},
	}
	sel.flags(cmd)
	return cmd
}

func newSourcesReload(c *call) *cobra.Command {
	return &cobra.Command{
		Use:   "reload",
		Short: "Read sources.yaml again; a broken file leaves the running one in force",
		Long: `Read sources.yaml again and print what was added, changed and removed; a broken
file leaves the running registry in force. New sources and those that are defined
otherwise now are crawled at once; all others stay as they are, in error or not.

After a network that was away: "vesti sources check" tells who answers again and
counts nothing against a source, "vesti crawl --all" crawls all but those that are
gone, and "vesti sources reset" makes the dead ones alive and due at once.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withApp(cmd.Context(), func(ctx context.Context, a *App) error {
				changes, err := a.reloadSources(ctx)
				if err != nil {
					return err
				}
				out := struct {
					OK      bool `json:"ok"`
					Sources int  `json:"sources"`
					crawl.Changes
				}{true, len(a.crawler.Sources()), changes}
				return c.result(out, func(w io.Writer) { printChanges(w, changes, out.Sources) })
			})
		},
	}
}

func printChanges(w io.Writer, changes crawl.Changes, inForce int) {
	for _, part := range []struct {
		verb  string
		slugs []ledger.Slug
	}{{"added", changes.Added}, {"changed", changes.Changed}, {"removed", changes.Removed}} {
		for _, slug := range part.slugs {
			fmt.Fprintf(w, "%-8s %s\n", part.verb, slug)
		}
	}
	fmt.Fprintf(w, "%d added, %d changed, %d removed; %d sources in force\n",
		len(changes.Added), len(changes.Changed), len(changes.Removed), inForce)
}

func newSourcesReset(c *call) *cobra.Command {
	return &cobra.Command{
		Use:   "reset [SLUG...]",
		Short: "Make sources alive again, with no error; all dead and gone ones if none is named",
		Long: `Make sources alive again, with no error and no pause, and due at once: the named
ones, or all that are dead or gone. A source that has moved is asked at its configured
address again.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withApp(cmd.Context(), func(ctx context.Context, a *App) error {
				slugs := make([]ledger.Slug, len(args))
				for i, s := range args {
					slugs[i] = ledger.Slug(s)
				}
				n, err := a.resetSources(ctx, ledger.ActorOperator, slugs)
				if err != nil {
					return asUsage(err)
				}
				return c.result(map[string]any{"ok": true, "reset": n}, func(w io.Writer) { fmt.Fprintf(w, "%d sources reset\n", n) })
			})
		},
	}
}

func newSourcesDropped(c *call) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "dropped SLUG",
		Short: "List what a source's keep and block rules have left out",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkLimit(limit); err != nil {
				return err
			}
			return c.withApp(cmd.Context(), func(ctx context.Context, a *App) error {
				list, err := a.drops.List(ctx, ledger.Slug(args[0]), limit)
				if err != nil {
					return fmt.Errorf("list dropped entries: %w", err)
				}
				return c.result(map[string]any{"dropped": list}, func(w io.Writer) {
					for _, d := range list {
						fmt.Fprintf(w, "%s  %s  %s\n    %s\n", day(d.At), d.Rule, d.Title, d.URL)
					}
					fmt.Fprintf(w, "%d shown\n", len(list))
				})
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 50, "most entries to show, the newest; 0 for all")
	return cmd
}

// checkLimit wants a limit of which 0 is none.
func checkLimit(n int) error {
	if n < 0 {
		return usagef("--limit %d: want a number, 0 for all", n)
	}
	return nil
}

// asUsage makes a wrong or unknown source name a usage error.
func asUsage(err error) error {
	if errors.Is(err, ledger.ErrNotFound) || errors.Is(err, ledger.ErrInvalid) {
		return usageError{err.Error()}
	}
	return err
}
