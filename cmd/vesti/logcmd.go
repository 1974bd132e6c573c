package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"vesti.nixg.ru/ledger"
)

type logEntry struct {
	Seq     ledger.Seq     `json:"seq"`
	At      time.Time      `json:"at"`
	Type    string         `json:"type"`
	Actor   ledger.Actor   `json:"actor"`
	Source  ledger.Slug    `json:"source,omitempty"`
	Payload map[string]any `json:"payload"`
}

func newLog(c *call) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "log POST|SOURCE",
		Short: "Show everything that happened to a post or a source",
		Long: `Show everything that happened to a post or a source. A post is named by its id, by
the first 8 or more digits of it, or by its number; a source by its slug.

With --json: {"events": [{"seq", "at", "type", "actor", "source", "payload"}]}, oldest
first. The keys of a payload are those of its type, in snake_case; times are in UTC,
durations in milliseconds ("duration_ms"), what is not known is null.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkLimit(limit); err != nil {
				return err
			}
			return c.withApp(cmd.Context(), func(ctx context.Context, a *App) error {
				events, err := a.history(ctx, args[0], limit)
				if err != nil {
					return err
				}
				entries := make([]logEntry, len(events))
				for i, e := range events {
					entries[i] = logEntry{e.Seq, e.At, e.Type.String(), e.Actor, e.Source, payloadJSON(e.Payload)}
				}
				return c.result(map[string]any{"events": entries}, func(w io.Writer) {
					for _, e := range events {
						printEvent(w, e, a.cfg.location())
					}
				})
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 50, "most events of a source to show, the newest; 0 for all; a post's are always all shown")
	return cmd
}

// history finds what name means: a configured or once crawled source, else a post.
func (a *App) history(ctx context.Context, name string, limit int) ([]ledger.Event, error) {
	slug := ledger.Slug(name)
	if slug.Validate() == nil {
		events, err := a.log.SourceEvents(ctx, slug, limit)
		if err != nil {
			return nil, fmt.Errorf("read history of source %s: %w", slug, err)
		}
		if len(events) > 0 {
			return events, nil
		}
	}
	for _, s := range a.crawler.Sources() {
		if s.Slug == slug {
			return nil, nil
		}
	}
	num, err := a.findPost(ctx, name)
	if errors.Is(err, errUsage) {
		return nil, usagef("neither a source nor a post: %v", err)
	}
	if err != nil {
		return nil, err
	}
	events, err := a.log.PostEvents(ctx, num)
	if err != nil {
		return nil, fmt.Errorf("read history of post %s: %w", name, err)
	}
	return events, nil
}

func printEvent(w io.Writer, e ledger.Event, loc *time.Location) {
	fmt.Fprintf(w, "%d  %s  %s  %s", e.Seq, e.At.In(loc).Format("2006-01-02 15:04:05"), e.Type, e.Actor)
	if e.Source != "" {
		fmt.Fprintf(w, "  %s", e.Source)
	}
	fmt.Fprintln(w)
	for _, line := range describe(e.Payload) {
		fmt.Fprintf(w, "    %s\n", line)
	}
}

// describe says in a few lines what an event says.
func describe(p ledger.Payload) []string {
	switch p := p.(type) {
	case ledger.PostFetched:
		return []string{p.Item.Title, p.Item.URL, fmt.Sprintf("%d bytes of text from the %s, published %s", p.TextLen, p.Item.TextFrom, day(p.Item.Published)), "id " + p.ID.String()}
	case ledger.PostSeenAgain:
		return []string{p.Title, p.URL}
	case ledger.PostRevised:
		return []string{p.Title, fmt.Sprintf("revision %d, new text: %t, requeued: %t", p.Revision, p.New, p.Requeued)}
	case ledger.PostClassified:
		return describeDecision(p)
	case ledger.PostFailed:
		line := fmt.Sprintf("attempt %d: %s: %s", p.Attempt, p.Cause, p.Message)
		if p.Parked {
			return []string{line, "parked"}
		}
		return []string{line, "again at " + p.RetryAt.UTC().Format(time.RFC3339)}
	case ledger.PostReturned:
		return []string{joinWords(fmt.Sprintf("%s, lane %s, stage %s", p.Reason, p.Lane, p.Stage), p.Note)}
	case ledger.PostReviewed:
		return []string{joinWords(fmt.Sprintf("verdict %s, direction %s", orDash(string(p.Verdict)), orDash(string(p.Direction))), p.Note)}
	case ledger.SourceCrawled:
		lines := []string{fmt.Sprintf("%s: HTTP %d, %d entries, %d new, %d seen again, %d revised, not modified: %t; %s",
			p.Trigger, p.HTTPStatus, p.Fetched, p.New, p.SeenAgain, p.Revised, p.NotModified, nextRun(p.Run))}
		if p.Truncated {
			lines = append(lines, noteTruncated)
		}
		return lines
	case ledger.SourceFailed:
		return []string{fmt.Sprintf("%s: %s: %s; %s", p.Trigger, p.Cause, p.Message, nextRun(p.Run))}
	case ledger.SourceThrottled:
		return []string{fmt.Sprintf("%s: %s; until %s", p.Trigger, p.Message, p.Until.UTC().Format(time.RFC3339))}
	case ledger.SourceMoved:
		if p.URL == "" {
			return []string{"back to " + p.From}
		}
		return []string{fmt.Sprintf("from %s to %s", p.From, p.URL)}
	case ledger.Unknown:
		return []string{"cannot be read: " + p.Err}
	default:
		return nil
	}
}

// nextRun says when the source is due after a run. One that is gone, or was
// taken off the registry, never is.
func nextRun(r ledger.Run) string {
	if r.Next.IsZero() {
		return "no next run"
	}
	return "next " + r.Next.UTC().Format(time.RFC3339)
}

// joinWords joins what is there of words.
func joinWords(words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}

func describeDecision(p ledger.PostClassified) []string {
	lines := []string{fmt.Sprintf("%s by %s, confidence %.2f, relevance %.2f, interest %.2f, in %s, provisional: %t",
		orDash(string(p.Direction)), p.Stage, p.Confidence, p.Relevance, p.Interest, p.Duration.Round(time.Microsecond), p.Provisional)}
	if p.RuleSet != "" {
		lines = append(lines, "rule set "+p.RuleSet)
	}
	if p.Model != "" {
		lines = append(lines, fmt.Sprintf("model %s %s, prompt %s", p.Model, orDash(p.ModelDigest), orDash(p.PromptHash)))
	}
	for _, r := range p.Reasons {
		matched := ""
		if r.Matched != "" {
			matched = fmt.Sprintf("matched %q", r.Matched)
		}
		lines = append(lines, joinWords(r.Stage, r.Rule, matched, fmt.Sprintf("%+.2f", r.Weight), r.Note))
	}
	if p.Summary != "" {
		lines = append(lines, p.Summary)
	}
	if p.RawReply != "" {
		lines = append(lines, "reply "+strconv.Quote(p.RawReply))
	}
	return lines
}
