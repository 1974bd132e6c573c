package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"vesti.nixg.ru/classify"
	"vesti.nixg.ru/classify/keyword"
	"vesti.nixg.ru/classify/learned"
	"vesti.nixg.ru/classify/llm"
	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/ledger"
)

// rulesEvery is how often the rules file is looked at for changes.
const rulesEvery = 2 * time.Second

func (a *App) buildClassifiers(ctx context.Context, tolerate func(error)) error {
	var err error
	if a.rules, err = openRules(a.cfg, a.logger); tolerate != nil && errors.Is(err, errUsage) {
		tolerate(err)
		a.rules, err = keyword.Open("", a.cfg.Directions) //nolint:wrapcheck // the binary's own
	}
	if err != nil {
		return err
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
		a.trainer = classify.NewTrainer(classify.TrainerOptions{
			History: a.log, Store: a.log.Store(learned.Namespace), Keyword: a.rules, Learned: a.learned, Logger: cascade.Logger,
		})
	}
	if a.cfg.FullText {
		cascade.FullText = a.fullText
	}
	if a.cfg.LLMKind != "none" {
		if cascade.LLM, err = newLLM(a.cfg, a.logger); err != nil {
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

// openRules reads the rules file; until there is one there are the starter rules,
// as far as they fit the configured directions.
func openRules(cfg Config, logger *slog.Logger) (*keyword.Classifier, error) {
	if _, err := os.Stat(cfg.Rules); errors.Is(err, fs.ErrNotExist) {
		logger.Info("there is no rules file; the starter rules hold for those of the directions that they know", "file", cfg.Rules)
	}
	rules, err := keyword.Open(cfg.Rules, cfg.Directions)
	if errors.Is(err, ledger.ErrInvalid) {
		return nil, usageError{err.Error()}
	}
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	return rules, nil
}

func newLLM(cfg Config, logger *slog.Logger) (*llm.Classifier, error) {
	c, err := llm.New(llm.Options{
		API:        llm.API(cfg.LLMKind),
		URL:        cfg.LLMURL,
		Model:      cfg.LLMModel,
		Key:        cfg.LLMKey,
		Directions: cfg.Directions,
		Context:    cfg.LLMContext,
		Think:      llm.Think(cfg.LLMThink),
		Timeout:    cfg.LLMTimeout,
		Logger:     logger.With("part", "llm"),
	})
	if errors.Is(err, ledger.ErrInvalid) {
		return nil, usagef("settings under llm: %v", err)
	}
	if err != nil {
		return nil, fmt.Errorf("set up the language model: %w", err)
	}
	return c, nil
}

// fullText gets the article of a post of which the crawler has too little,
// unless its source's pages are never to be fetched.
func (a *App) fullText(ctx context.Context, item ledger.Item) (string, error) {
	for _, src := range a.crawler.Sources() {
		if src.Slug == item.Source {
			if src.FullText == crawl.FullTextFalse {
				return "", fmt.Errorf("source %s has full_text: false", src.Slug)
			}
			got, err := a.pages.Get(ctx, src, item.URL)
			if err != nil {
				return "", fmt.Errorf("get article: %w", err)
			}
			return got.Text, nil
		}
	}
	return "", fmt.Errorf("%w: source %s is not configured any more", ledger.ErrNotFound, item.Source)
}

// watchRules puts an edited rules file in force, at the latest after rulesEvery
// and at once on SIGHUP. One with mistakes leaves the old rules there and says
// so, once for each state of the file, and to each SIGHUP.
func (a *App) watchRules(ctx context.Context, hangup <-chan os.Signal) error {
	tick := time.NewTicker(rulesEvery)
	defer tick.Stop()
	var told string
	for {
		asked := false
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-hangup:
			asked, told = true, ""
		}
		changed, err := a.readRules()
		switch {
		case err != nil && err.Error() != told:
			told = err.Error()
			a.logger.Error("the rules file cannot be used; the old rules stay in force", "error", err)
		case err == nil && changed:
			told = ""
		case err == nil && told != "":
			told = ""
			a.logger.Info("the rules file is good again; it has the rules that are in force", "hash", a.rules.Rules().Hash())
		case err == nil && asked:
			a.logger.Info("keyword rules read again, nothing has changed", "hash", a.rules.Rules().Hash())
		}
	}
}

// readRules puts the rules file in force as it is now.
func (a *App) readRules() (changed bool, err error) {
	if changed, err = a.rules.Reload(); changed {
		a.logger.Info("new keyword rules are in force", "hash", a.rules.Rules().Hash())
	}
	return changed, err //nolint:wrapcheck // names the file and the line
}

// rulesProblem says what is wrong with the rules file, and what holds in its
// place; "" for nothing.
func (a *App) rulesProblem() string {
	_, err := a.readRules()
	if err == nil {
		return ""
	}
	return fmt.Sprintf("%v; the rules from %s are in force", err, a.rules.Since().In(a.cfg.location()).Format("15:04"))
}
