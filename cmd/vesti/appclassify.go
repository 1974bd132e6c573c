package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"vesti.nixg.ru/classify"
	"vesti.nixg.ru/classify/keyword"
	"vesti.nixg.ru/ledger"
)

// rulesEvery is how often the rules file is looked at for changes.
const rulesEvery = 2 * time.Second

func (a *App) buildClassifiers() error {
	path := a.cfg.Rules
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		path = "" // the starter rules, as far as they fit the configured directions
	}
	var err error
	if a.rules, err = keyword.Open(path, a.cfg.Directions); err != nil {
		if errors.Is(err, ledger.ErrInvalid) {
			return usageError{err.Error()}
		}
		return fmt.Errorf("read rules: %w", err)
	}
	a.pool, err = classify.New(classify.Options{
		Queue:      a.log,
		Decider:    classify.NewCascade(classify.CascadeOptions{Keyword: a.rules, KeywordSettles: a.cfg.SettleAt}),
		Workers:    a.cfg.Workers,
		Grace:      a.cfg.Grace,
		Logger:     a.logger.With("part", "classify"),
		Registerer: a.registry,
	})
	if err != nil {
		return fmt.Errorf("set up workers: %w", err)
	}
	return nil
}

// watchRules puts an edited rules file in force; one with mistakes leaves the
// old rules there and says so, once for each state of the file.
func (a *App) watchRules(ctx context.Context) error {
	tick := time.NewTicker(rulesEvery)
	defer tick.Stop()
	var told string
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		changed, err := a.rules.Reload()
		switch {
		case err != nil && err.Error() != told:
			told = err.Error()
			a.logger.Error("the rules file has mistakes; the old rules stay in force", "error", err)
		case err == nil && changed:
			told = ""
			a.logger.Info("new keyword rules are in force", "hash", a.rules.Rules().Hash())
		}
	}
}
