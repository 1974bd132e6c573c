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
	"vesti.nixg.ru/classify/learned"
	"vesti.nixg.ru/classify/llm"
	"vesti.nixg.ru/ledger"
)

// rulesEvery is how often the rules file is looked at for changes.
const rulesEvery = 2 * time.Second

func (a *App) buildClassifiers(ctx context.Context) error {
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
	cascade := classify.CascadeOptions{
		Keyword:        a.rules,
		KeywordSettles: a.cfg.SettleKeywords,
		LearnedSettles: a.cfg.SettleLearned,
		Provisional:    a.cfg.LLMProvisional,
		Logger:         a.logger.With("part", "classify"),
	}
	o := classify.Options{
		Queue:      a.log,
		Workers:    a.cfg.Workers,
		Grace:      a.cfg.Grace,
		Logger:     cascade.Logger,
		Registerer: a.registry,
	}
	if a.cfg.Learned {
		a.learned = &learned.Classifier{}
		if err := a.learned.Load(ctx, a.log.Store(learned.Namespace)); err != nil {
			a.logger.Warn("the learned model cannot be read; a new one will be trained", "error", err)
		}
		cascade.Learned = a.learned
	}
	if a.cfg.LLMKind != "none" {
		if cascade.LLM, err = a.newLLM(); err != nil {
			return err
		}
		a.breaker = classify.NewBreaker(classify.BreakerOptions{Probe: cascade.LLM.Probe, Logger: cascade.Logger})
		o.LLMWorkers, o.Breaker = a.cfg.LLMWorkers, a.breaker
	}
	a.cascade = classify.NewCascade(cascade)
	o.Decider = a.cascade
	if a.pool, err = classify.New(o); err != nil {
		return fmt.Errorf("set up workers: %w", err)
	}
	return nil
}

func (a *App) newLLM() (*llm.Classifier, error) {
	c, err := llm.New(llm.Options{
		API:        llm.API(a.cfg.LLMKind),
		URL:        a.cfg.LLMURL,
		Model:      a.cfg.LLMModel,
		Key:        a.cfg.LLMKey,
		Directions: a.cfg.Directions,
		Context:    a.cfg.LLMContext,
		Think:      llm.Think(a.cfg.LLMThink),
		Timeout:    a.cfg.LLMTimeout,
		Logger:     a.logger.With("part", "llm"),
	})
	if errors.Is(err, ledger.ErrInvalid) {
		return nil, usagef("settings under llm: %v", err)
	}
	if err != nil {
		return nil, fmt.Errorf("set up the language model: %w", err)
	}
	return c, nil
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
