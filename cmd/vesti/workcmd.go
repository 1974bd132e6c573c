package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"vesti.nixg.ru/classify"
)

func newWork(c *call) *cobra.Command {
	var workers, limit int
	cmd := &cobra.Command{
		Use:   "work",
		Short: "Classify what waits in the queue, then stop",
		Long: `Classify what waits in the queue, then stop.

A post that cannot be classified goes back to the queue with a delay, or is
parked with its cause after ledger.max_attempts; the run goes on and ends with
exit code 0.`,
		Example: "  vesti work --workers 8 --limit 200",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if workers < 0 || workers > mostWorkers {
				return usagef("--workers %d: want 1 to %d, or 0 for the setting work.workers", workers, mostWorkers)
			}
			if err := checkLimit(limit); err != nil {
				return err
			}
			return c.withApp(cmd.Context(), func(ctx context.Context, a *App) error {
				return c.work(ctx, a, workers, limit)
			})
		},
	}
	cmd.Flags().IntVar(&workers, "workers", 0, fmt.Sprintf("posts at once, up to %d; 0 for the setting work.workers", mostWorkers))
	cmd.Flags().IntVar(&limit, "limit", 0, "most posts to take; 0 for all that wait")
	return cmd
}

func (c *call) work(ctx context.Context, a *App, workers, limit int) error {
	sum, err := a.pool.Drain(ctx, limit, workers, func(s classify.Summary) {
		c.progress("%d claimed, %d classified, %d failed", s.Claimed, s.Classified, s.Failed)
	})
	if err != nil && ctx.Err() == nil {
		return err
	}
	// A stop returns what was in hand to the queue: that is a good end.
	return c.result(sum, func(w io.Writer) {
		fmt.Fprintf(w, "%d claimed in %s: %d classified, %d failed, %d returned, %d parked\n",
			sum.Claimed, millis(sum.DurationMS), sum.Classified, sum.Failed, sum.Returned, sum.Parked)
	})
}
