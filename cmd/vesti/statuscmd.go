package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"vesti.nixg.ru/ledger"
)

type statusResult struct {
	Queue       queueStatus                 `json:"queue"`
	Sources     map[string]int              `json:"sources"`
	Projections map[string]projectionStatus `json:"projections"`
	Head        ledger.Seq                  `json:"head"`
	Problem     string                      `json:"problem,omitempty"` // why no work is taken on
	Rules       string                      `json:"rules_problem,omitempty"`
}

type queueStatus struct {
	Pending        int            `json:"pending"`
	Processing     int            `json:"processing"`
	DoneToday      int            `json:"done_today"`
	Parked         int            `json:"parked"`
	Waiting        int            `json:"waiting"`
	Classified     int            `json:"classified"`
	OldestPendingS int64          `json:"oldest_pending_s"`
	ParkedByCause  map[string]int `json:"parked_by_cause,omitempty"`
}

type projectionStatus struct {
	Seq        ledger.Seq `json:"seq"`
	Lag        uint64     `json:"lag"`
	Rebuilding bool       `json:"rebuilding,omitempty"`
	Error      string     `json:"error,omitempty"`
}

func newStatus(c *call) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the queue, the sources and the projections",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withApp(cmd.Context(), func(ctx context.Context, a *App) error {
				a.settle(ctx)
				s := a.status(time.Now())
				return c.result(s, func(w io.Writer) { printStatus(w, s) })
			})
		},
	}
}

func (a *App) status(now time.Time) statusResult {
	q := a.queue.Counts(now.In(a.cfg.location()), a.log.Queue())
	s := statusResult{
		Queue: queueStatus{
			Pending: q.Pending, Processing: q.Processing, DoneToday: q.DoneToday, Parked: q.Parked,
			Waiting: q.Waiting, Classified: q.Classified, ParkedByCause: map[string]int{},
		},
		Sources:     map[string]int{"alive": 0, "dead": 0, "throttled": 0},
		Projections: map[string]projectionStatus{},
		Head:        a.log.Head(),
		Rules:       a.rulesProblem(),
	}
	if err := a.ready(); err != nil {
		s.Problem = err.Error()
	}
	if !q.OldestPending.IsZero() {
		s.Queue.OldestPendingS = int64(now.Sub(q.OldestPending).Seconds())
	}
	for cause, n := range q.ParkedByCause {
		s.Queue.ParkedByCause[string(cause)] = n
	}
	for _, v := range a.crawler.Status() {
		s.Sources[v.State.Status.String()]++
	}
	for _, p := range a.runner.Status() {
		s.Projections[p.Name] = projectionStatus{Seq: p.Seq, Lag: p.Lag, Rebuilding: p.Rebuilding, Error: p.Error}
	}
	return s
}

func printStatus(w io.Writer, s statusResult) {
	if s.Problem != "" {
		fmt.Fprintln(w, "no work is taken on:", s.Problem)
	}
	if s.Rules != "" {
		fmt.Fprintln(w, s.Rules)
	}
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(tw, "pending\t%d\t(%d of them wait for a delay to end)\n", s.Queue.Pending, s.Queue.Waiting)
	fmt.Fprintf(tw, "processing\t%d\t\n", s.Queue.Processing)
	fmt.Fprintf(tw, "done today\t%d\t\n", s.Queue.DoneToday)
	fmt.Fprintf(tw, "parked\t%d\t\n", s.Queue.Parked)
	fmt.Fprintf(tw, "oldest pending\t%s\t\n", time.Duration(s.Queue.OldestPendingS)*time.Second)
	_ = tw.Flush()
	fmt.Fprint(w, "\nsources:")
	for i := range ledger.SourceStatusLen {
		name := ledger.SourceStatus(i).String()
		if n := s.Sources[name]; n > 0 {
			fmt.Fprintf(w, " %d %s", n, name)
		}
	}
	fmt.Fprintf(w, "\nledger: %d events\n", s.Head)
	for name, p := range s.Projections {
		fmt.Fprintf(w, "projection %s: at %d, %d behind", name, p.Seq, p.Lag)
		if p.Rebuilding {
			fmt.Fprint(w, ", being rebuilt")
		}
		if p.Error != "" {
			fmt.Fprintf(w, ", stands still: %s", p.Error)
		}
		fmt.Fprintln(w)
	}
}
