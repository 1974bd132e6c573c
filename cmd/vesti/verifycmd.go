package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"vesti.nixg.ru/ledger/badgerlog"
)

var errUnsound = errors.New("the store has problems")

func newVerify(c *call) *cobra.Command {
	var repair bool
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check everything that must hold in the store",
		Long: `Check everything that must hold in the store; a running server goes on meanwhile.
Exit code 1: something is wrong. With --repair, what can be had from the events
(every index, every folded state) is put right, and what the disk has spoilt for
good is given up, so that all else can be used and backed up: a post whose text is
lost is parked, if it waits, and counts as one whose texts have expired; a store
whose log has lost its end is opened without it. Restore a backup instead if there
is one that has it. "vesti compact" then removes the damaged files. Damaged events
are only reported.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.acceptLoss = repair
			return c.withApp(cmd.Context(), func(ctx context.Context, a *App) error { return c.verify(ctx, a, repair) })
		},
	}
	cmd.Flags().BoolVar(&repair, "repair", false, "put right what can be, give up what is lost")
	return cmd
}

func (c *call) verify(ctx context.Context, a *App, repair bool) error {
	report, err := a.log.Verify(ctx, badgerlog.VerifyOptions{Repair: repair, Progress: c.stepProgress()})
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	out := struct {
		OK bool `json:"ok"`
		badgerlog.VerifyReport
	}{report.OK(), report}
	if err := c.result(out, func(w io.Writer) {
		fmt.Fprintf(w, "%d events (%d of another version), %d posts: %d pending, %d classified, %d parked; %d sources, %d texts\n",
			report.Events, report.Unknown, report.Posts, report.Pending, report.Classified, report.Parked, report.Sources, report.Texts)
		for _, p := range report.Found {
			fmt.Fprintf(w, "problem: %s\n", p)
		}
		fmt.Fprintf(w, "%d problems, %d repaired\n", report.Problems, report.Repaired)
	}); err != nil {
		return err
	}
	if !report.OK() {
		return errUnsound
	}
	return nil
}

// stepProgress prints how far a long piece of work on the store is.
func (c *call) stepProgress() badgerlog.Progress {
	return func(step string, done, total uint64) {
		if total == 0 { // it is not known
			c.progress("%s: %d", step, done)
			return
		}
		c.progress("%s: %d of %d", step, done, total)
	}
}
