package main

import (
	"context"
	"errors"
	"time"

	"vesti.nixg.ru/ledger/badgerlog"
)

const (
	retainFirst = 10 * time.Minute // after the start, when the first crawls are over
	retainEvery = 6 * time.Hour
)

func (a *App) retention() badgerlog.Retention {
	return badgerlog.Retention{Posts: a.cfg.KeepPosts, Revisions: a.cfg.KeepRevision, Runs: a.cfg.KeepRuns}
}

// retain applies the retention settings now and then. The engine gives the
// space back by itself.
func (a *App) retain(ctx context.Context) error {
	timer := time.NewTimer(retainFirst)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		report, err := a.log.Retain(ctx, a.retention())
		switch {
		case errors.Is(err, context.Canceled):
		case err != nil:
			a.logger.Error("retention did not come to its end; it is tried again", "error", err)
		default:
			a.logger.Info("retention applied", "posts", report.Posts, "revisions", report.Revisions, "runs", report.Runs)
		}
		timer.Reset(retainEvery)
	}
}
