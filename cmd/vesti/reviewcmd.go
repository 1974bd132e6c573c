package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vesti.nixg.ru/httpui"
	"vesti.nixg.ru/ledger"
)

func newReview(c *call) *cobra.Command {
	var pick, reject, undo bool
	var direction, note string
	cmd := &cobra.Command{
		Use:   "review POST --pick | --reject | --undo [--direction D]",
		Short: "Pick or reject a post, correct its direction, or take that back",
		Long: `Pick or reject a post, correct its direction, or take that back. An editor's word
outranks every classification. A new verdict replaces the earlier one and keeps a
corrected direction and the note; --direction alone keeps the verdict. --undo takes
all of them back.`,
		Example: "  vesti review 3f2a9c01 --pick\n  vesti review 3f2a9c01 --direction llm\n  vesti review 3f2a9c01 --undo",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			note, ok := httpui.CleanNote(note)
			if !ok {
				return usagef("--note: want %d letters at most", httpui.MaxNote)
			}
			word := ledger.PostReviewed{Direction: ledger.Direction(direction), Note: note}
			switch {
			case pick && reject, undo && (pick || reject || direction != ""), !pick && !reject && !undo && direction == "":
				return usagef("say one of --pick, --reject, --undo, or --direction D")
			case pick:
				word.Verdict = ledger.VerdictPicked
			case reject:
				word.Verdict = ledger.VerdictRejected
			}
			return c.withApp(cmd.Context(), func(ctx context.Context, a *App) error { return c.review(ctx, a, args[0], word, undo) })
		},
	}
	f := cmd.Flags()
	f.BoolVar(&pick, "pick", false, "a story to follow")
	f.BoolVar(&reject, "reject", false, "no story; a corrected direction stays")
	f.BoolVar(&undo, "undo", false, "take the verdict and the corrected direction back")
	f.StringVar(&direction, "direction", "", "the right direction; without --pick or --reject the verdict stays")
	f.StringVar(&note, "note", "", "a note kept with the decision")
	return cmd
}

func (c *call) review(ctx context.Context, a *App, name string, word ledger.PostReviewed, undo bool) error {
	if err := a.checkDirection(word.Direction); err != nil {
		return err
	}
	num, err := a.findPost(ctx, name)
	if err != nil {
		return err
	}
	post, err := a.log.Post(ctx, num)
	if err != nil {
		return fmt.Errorf("read post %q: %w", name, err)
	}
	events, err := a.log.PostEvents(ctx, num)
	if err != nil {
		return fmt.Errorf("read history of post %q: %w", name, err)
	}
	// What the command line does not name stays.
	switch {
	case undo && httpui.LastWord(events) == (ledger.PostReviewed{}):
		return c.result(map[string]any{"ok": true, "id": post.ID, "verdict": word.Verdict, "direction": word.Direction}, func(w io.Writer) {
			fmt.Fprintf(w, "%s: there is nothing to take back\n", post.Item.Title)
		})
	case !undo:
		if word.Verdict == ledger.VerdictNone {
			word.Verdict = post.State.Verdict
		}
		if word.Direction == "" {
			word.Direction = post.State.Corrected
		}
		if word.Note == "" {
			word.Note = httpui.LastWord(events).Note
		}
	}
	if _, err := a.log.Record(ctx, ledger.NewEvent(ledger.ActorOperator, num, "", word)); err != nil {
		return fmt.Errorf("record review: %w", err)
	}
	out := map[string]any{"ok": true, "id": post.ID, "verdict": word.Verdict, "direction": word.Direction}
	return c.result(out, func(w io.Writer) {
		said := strings.TrimSpace(fmt.Sprintf("%s %s", word.Verdict, word.Direction))
		if said == "" {
			said = "no editor's word any more"
		}
		fmt.Fprintf(w, "%s: %s\n", post.Item.Title, said)
	})
}

// findPost finds the post that a command line names. Errors match errUsage where
// it names none, or several.
func (a *App) findPost(ctx context.Context, name string) (ledger.PostNum, error) {
	num, err := a.log.FindPost(ctx, name)
	switch {
	case errors.Is(err, ledger.ErrNotFound), errors.Is(err, ledger.ErrInvalid):
		return 0, usagef("no post is called %q; give its id, the first 8 or more digits of it, or its number", name)
	case errors.Is(err, ledger.ErrAmbiguous):
		return 0, usagef("several posts begin with %q; give more digits", name)
	case err != nil:
		return 0, fmt.Errorf("find post %q: %w", name, err)
	}
	return num, nil
}

func newReplay(c *call) *cobra.Command {
	var cause string
	var all bool
	cmd := &cobra.Command{
		Use:   "replay POST... | --cause C | --all",
		Short: "Put parked posts back into the queue",
		Long: `Put parked posts back into the queue, each with all its attempts: those named, those
parked for one cause, or all. "vesti status --json" counts them by cause.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if n := len(args); (n > 0) == (all || cause != "") || all && cause != "" {
				return usagef("say which posts: their ids, or --cause C, or --all")
			}
			if cause != "" && !slices.Contains(ledger.PostCauses(), ledger.Cause(cause)) {
				return usagef("--cause %s: want one of %s", cause, joinList(ledger.PostCauses(), func(c ledger.Cause) string { return string(c) }))
			}
			return c.withApp(cmd.Context(), func(ctx context.Context, a *App) error {
				n, err := c.replayParked(ctx, a, args, ledger.Cause(cause))
				if err != nil {
					return err
				}
				return c.result(map[string]any{"ok": true, "returned": n}, func(w io.Writer) { fmt.Fprintf(w, "%d posts are back in the queue\n", n) })
			})
		},
	}
	cmd.Flags().StringVar(&cause, "cause", "", "all posts parked for this cause")
	cmd.Flags().BoolVar(&all, "all", false, "all parked posts")
	return cmd
}

// replayChunk bounds how many posts are returned in one transaction.
const replayChunk = 500

func (c *call) replayParked(ctx context.Context, a *App, names []string, cause ledger.Cause) (int, error) {
	var nums []ledger.PostNum
	for _, name := range names {
		num, err := a.findPost(ctx, name)
		if err != nil {
			return 0, err
		}
		post, err := a.log.Post(ctx, num)
		if err != nil {
			return 0, fmt.Errorf("read post %q: %w", name, err)
		}
		if post.State.Status != ledger.StatusParked {
			return 0, fmt.Errorf("post %q is not parked, it is %s", name, post.State.Status)
		}
		nums = append(nums, num)
	}
	if len(names) > 0 {
		return len(nums), a.returnPosts(ctx, nums)
	}
	total := 0
	for {
		nums, err := a.log.Parked(ctx, cause, replayChunk)
		if err != nil {
			return total, fmt.Errorf("list parked posts: %w", err)
		}
		if len(nums) == 0 {
			return total, nil
		}
		if err := a.returnPosts(ctx, nums); err != nil {
			return total, err
		}
		total += len(nums)
		c.progress("%d posts returned", total)
	}
}

func (a *App) returnPosts(ctx context.Context, nums []ledger.PostNum) error {
	events := make([]ledger.Event, len(nums))
	for i, num := range nums {
		post, err := a.log.Post(ctx, num)
		if err != nil {
			return fmt.Errorf("read post %d: %w", num, err)
		}
		events[i] = ledger.NewEvent(ledger.ActorOperator, num, "",
			ledger.PostReturned{Reason: ledger.ReturnReplay, Lane: post.State.Lane, Stage: post.State.Stage})
	}
	if _, err := a.log.Record(ctx, events...); err != nil {
		return fmt.Errorf("return posts: %w", err)
	}
	return nil
}
