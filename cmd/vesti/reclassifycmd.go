package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"vesti.nixg.ru/classify"
	"vesti.nixg.ru/classify/keyword"
	"vesti.nixg.ru/classify/llm"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/ownfile"
)

func newReclassify(c *call) *cobra.Command {
	var rulesFile, model, since, direction string
	var dry bool
	cmd := &cobra.Command{
		Use:   "reclassify",
		Short: "Judge classified posts again, by new rules or another model",
		Long: `Judge classified posts again, by the rules in force or those of --rules, and with
--model by a language model where the rules are not sure. With --dry-run: print what
would change (gained, lost and moved per direction, shifts of scores, samples, the
time that a model would take) and write nothing. An editor's decisions stay. Run
twice, the second run changes nothing.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withApp(cmd.Context(), func(ctx context.Context, a *App) error {
				o, err := c.reclassifyOptions(a, rulesFile, model)
				if err != nil {
					return err
				}
				if o.Since, err = parseDay("--since", since, a.cfg.location()); err != nil {
					return err
				}
				if err := a.checkDirection(ledger.Direction(direction)); err != nil {
					return err
				}
				o.Direction, o.DryRun = ledger.Direction(direction), dry
				diff, err := classify.Reclassify(ctx, a.log, a.log, o)
				if err != nil && diff.Written > 0 {
					return fmt.Errorf("reclassify, after %d decisions were written: %w", diff.Written, err)
				}
				if err != nil {
					return fmt.Errorf("reclassify: %w", err)
				}
				out := struct {
					OK bool `json:"ok"`
					classify.Diff
				}{true, diff}
				return c.result(out, func(w io.Writer) { _ = diff.WriteText(w) })
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&rulesFile, "rules", "", "judge by this rules file in place of the one in force")
	f.StringVar(&model, "model", "", "ask this language model, at the configured server, where rules are not sure")
	f.StringVar(&since, "since", "", "only posts found since this day, 2006-01-02, or time")
	f.StringVar(&direction, "direction", "", "only posts that are in this direction now")
	f.BoolVar(&dry, "dry-run", false, "show what would change, write nothing")
	return cmd
}

func (c *call) reclassifyOptions(a *App, rulesFile, model string) (classify.ReclassifyOptions, error) {
	if problem := a.rulesProblem(); problem != "" && rulesFile == "" {
		fmt.Fprintln(c.err, problem)
	}
	o := classify.ReclassifyOptions{
		Keyword: a.rules.Rules(), KeywordSettles: a.cfg.SettleKeywords, LearnedSettles: a.cfg.SettleLearned, LLMWorkers: a.cfg.LLMWorkers,
		Progress: func(p classify.ReclassifyProgress) { c.progress("%s: %d of %d %s", p.Step, p.Done, p.Total, p.Of) },
	}
	if rulesFile != "" {
		b, err := ownfile.Read(c.path(rulesFile))
		if err != nil {
			return o, usagef("--rules: %v", err)
		}
		if o.Keyword, err = keyword.Parse(rulesFile, b, a.cfg.Directions); err != nil {
			return o, asUsage(err)
		}
	}
	if a.learned != nil {
		o.Learned = a.learned.Model()
	}
	if model == "" {
		return o, nil
	}
	cfg := a.cfg
	if cfg.LLMKind == "none" {
		cfg.LLMKind = string(llm.Ollama)
	}
	cfg.LLMModel = model
	var err error
	o.LLM, err = newLLM(cfg, a.logger)
	return o, err
}

func newClassify(c *call) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "classify",
		Short: "Measure the classifiers",
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(needing(needsNothing, newClassifyEval(c))...)
	return cmd
}

func newClassifyEval(c *call) *cobra.Command {
	var as map[string]string
	cmd := &cobra.Command{
		Use:   "eval FILE.jsonl",
		Short: "Judge labelled texts: precision, recall, F1, confusion, what each stage settled",
		Long: `Judge labelled texts, one JSON object a line with "text" and "direction" or "label"
(also "title", "lang"), "-" for standard input, by the rules and models in force.
Prints precision, recall and F1 of each direction, the confusion matrix, and what
share each stage settled. Stores nothing.`,
		Example: "  vesti classify eval labelled.jsonl --as linux=tech",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.interactive = args[0] == "-"
			return c.withApp(cmd.Context(), func(ctx context.Context, a *App) error {
				in := c.in
				if args[0] != "-" {
					f, err := os.Open(c.path(args[0]))
					if err != nil {
						return usagef("read labelled texts: %v", err)
					}
					defer f.Close()
					in = f
				}
				o := classify.EvalOptions{
					As:       map[ledger.Direction]ledger.Direction{},
					Progress: func(n int) { c.progress("%d lines judged", n) },
				}
				for from, to := range as {
					o.As[ledger.Direction(from)] = ledger.Direction(to)
				}
				eval, err := classify.Evaluate(ctx, in, a.cascade, a.cfg.Directions, o)
				if errors.Is(err, ledger.ErrInvalid) {
					return usagef("%s: %v", args[0], err)
				}
				if err != nil {
					return fmt.Errorf("evaluate %s: %w", args[0], err)
				}
				out := struct {
					OK bool `json:"ok"`
					classify.Evaluation
				}{true, eval}
				return c.result(out, func(w io.Writer) { _ = eval.WriteText(w) })
			})
		},
	}
	cmd.Flags().StringToStringVar(&as, "as", nil, "count a direction or label as another, label=direction; may be given again")
	return cmd
}
