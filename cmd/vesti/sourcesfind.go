package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/discover"
	"vesti.nixg.ru/crawl/fetch"
	"vesti.nixg.ru/ledger"
)

func newSourcesDiscover(c *call) *cobra.Command {
	var private bool
	cmd := &cobra.Command{
		Use:   "discover URL",
		Short: "Find the feeds of a site from any of its pages",
		Long: `Find the feeds of a site from any of its pages: the ones that the page declares
or links to, else those at addresses where sites often have one. Each was
fetched and read. Nothing is stored.`,
		Example: "  vesti sources discover lwn.net",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withApp(cmd.Context(), func(ctx context.Context, a *App) error {
				found, err := discover.Feeds(ctx, a.client, args[0], discover.Options{AllowPrivate: private})
				if !private && errors.Is(err, fetch.ErrPrivate) {
					return fmt.Errorf("%w; where that is meant, give --allow-private", err)
				}
				if err != nil {
					return err //nolint:wrapcheck // says what was asked of whom
				}
				return c.result(map[string]any{"feeds": found}, func(w io.Writer) {
					for _, f := range found {
						address := f.FeedURL
						if f.Channel != "" {
							address = "channel " + f.Channel
						}
						fmt.Fprintf(w, "%s\n    %s, %s: %d entries, the newest %s\n", address, f.Title, f.How, f.Entries, day(f.Newest))
					}
				})
			})
		},
	}
	cmd.Flags().BoolVar(&private, "allow-private", false, "the site's host may have a private address")
	return cmd
}

func newSourcesPreview(c *call) *cobra.Command {
	var keep, block []string
	cmd := &cobra.Command{
		Use:   "preview SLUG [--keep RULE]... [--block RULE]...",
		Short: "Count what keep and block rules would leave out of a source, before they are saved",
		Long: `Fetch a source and count what its keep and block rules leave out of what it has
now, or what the given ones would in their place. Nothing is stored.

A rule is a word or words, a beginning with a star at its end (advert*), or a
/regular expression/; "title:" or "text:" before it has it look there only.`,
		Example: "  vesti sources preview lwn --block 'title: security updates' --block '/\\bCVE-\\d+/'",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withApp(cmd.Context(), func(ctx context.Context, a *App) error {
				src, err := a.sourceBySlug(ledger.Slug(args[0]))
				if err != nil {
					return err
				}
				if len(keep)+len(block) > 0 {
					src.Keep, src.Block = keep, block
				}
				sum, err := a.crawler.Preview(ctx, src)
				if err != nil {
					return asUsage(err)
				}
				if err := c.result(sum, func(w io.Writer) { printPreview(w, sum) }); err != nil {
					return err
				}
				return partial(sum)
			})
		},
	}
	cmd.Flags().StringArrayVar(&keep, "keep", nil, "in place of the source's rules: keep only what matches; may be given again")
	cmd.Flags().StringArrayVar(&block, "block", nil, "in place of the source's rules: leave out what matches; may be given again")
	return cmd
}

func (a *App) sourceBySlug(slug ledger.Slug) (crawl.Source, error) {
	for _, s := range a.crawler.Sources() {
		if s.Slug == slug {
			return s, nil
		}
	}
	return crawl.Source{}, usagef("source %q is not in the registry", slug)
}

func printPreview(w io.Writer, s crawl.Summary) {
	counts := map[string]int{}
	for _, d := range s.Drops {
		counts[d.Rule]++
		fmt.Fprintf(w, "%s: %s\n    %s\n", d.Rule, d.Title, d.URL)
	}
	for _, rule := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(w, "%4d left out by %s\n", counts[rule], rule)
	}
	for _, r := range s.Results {
		if r.Error != "" {
			fmt.Fprintln(w, r.Error)
		}
	}
	fmt.Fprintf(w, "%d entries looked at, %d left out, %d kept\n", s.Fetched, s.Dropped, s.Fetched-s.Dropped)
}
