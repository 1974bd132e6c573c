package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vesti.nixg.ru/ledger"
)

func newRebuild(c *call) *cobra.Command {
	return &cobra.Command{
		Use:   "rebuild [PROJECTION...]",
		Short: "Build projections again from the ledger",
		Long: `Build projections again from the ledger, all of them if none is named. The old ones
serve until the new ones have caught up. "vesti status" lists the projections.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withApp(cmd.Context(), func(ctx context.Context, a *App) error {
				names := args
				if len(names) == 0 {
					names = a.runner.Names()
				}
				for _, name := range names { // a wrong one is told before the first is built
					if !slices.Contains(a.runner.Names(), name) {
						return usagef("no projection is called %q; there are %s", name, strings.Join(a.runner.Names(), ", "))
					}
				}
				if err := a.space(); err != nil {
					return err
				}
				for _, name := range names {
					if err := c.rebuild(ctx, a, name); err != nil {
						return err
					}
				}
				out := map[string]any{"ok": true, "rebuilt": names, "events": a.log.Head()}
				return c.result(out, func(w io.Writer) {
					fmt.Fprintf(w, "rebuilt from %d events: %s\n", a.log.Head(), strings.Join(names, ", "))
				})
			})
		},
	}
}

func (c *call) rebuild(ctx context.Context, a *App, name string) error {
	err := a.runner.Rebuild(ctx, name, func(done, head ledger.Seq) { c.progress("%s: %d of %d events", name, done, head) })
	if err != nil {
		return fmt.Errorf("rebuild %s: %w", name, err)
	}
	return nil
}
