package httpui

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"vesti.nixg.ru/httpui/i18n"
	"vesti.nixg.ru/ledger"
)

// happening is an event as a history shows it.
type happening struct {
	Seq   ledger.Seq
	At    time.Time
	Actor string
	Type  string
	Tone  string // good, bad, key or ""
	Text  string
}

// history tells a post's events, newest first.
func (s *Server) history(lang *i18n.Language, events []ledger.Event, names map[ledger.Slug]string) ([]happening, error) {
	all := make([]happening, 0, len(events))
	for _, e := range slices.Backward(events) {
		text, tone, err := teller{lang, s.said, names}.tell(e)
		if err != nil {
			return nil, err
		}
		all = append(all, happening{e.Seq, e.At, actorOf(e.Actor), e.Type.String(), tone, text})
	}
	return all, nil
}

// actorOf is the kind of an actor: which of the workers it was says nothing.
func actorOf(a ledger.Actor) string {
	kind, _, _ := strings.Cut(string(a), "/")
	return kind
}

// teller puts events into words.
type teller struct {
	lang  *i18n.Language
	said  sayings
	names map[ledger.Slug]string
}

func (t teller) tell(e ledger.Event) (text, tone string, err error) {
	source := cmp.Or(t.names[e.Source], string(e.Source))
	switch p := e.Payload.(type) {
	case ledger.PostFetched:
		text, err = t.lang.Text("event.fetched", "source", source)
	case ledger.PostSeenAgain:
		text, err = t.lang.Text("event.seen_again", "source", source)
	case ledger.PostRevised:
		text, err = t.lang.Text(revisedKey(p))
	case ledger.PostClassified:
		return t.classified(p)
	case ledger.PostFailed:
		return t.failed(p)
	case ledger.PostReturned:
		text, err = t.with("event.returned", "reason", "return", p.Reason)
	case ledger.PostReviewed:
		return t.reviewed(p)
	case ledger.PostMeasured:
		text, err = t.measured(p.Measures)
	case ledger.PostRemoved:
		tone = "bad"
		text, err = t.lang.Text("event.removed")
	case ledger.PostPrioritised:
		text, err = t.lang.Text("event.prioritised")
	case ledger.StoryGrouped:
		text, err = t.lang.Text("event.grouped")
	case ledger.StoryUngrouped:
		text, err = t.lang.Text("event.ungrouped")
	case ledger.PostExpired:
		text, err = t.lang.Text("event.expired")
	default:
		text, err = t.lang.Text("event.unknown")
	}
	return text, tone, err
}

// with fills one place of a text by the name of a value of a closed set.
func (t teller) with(key, place, set string, value any) (string, error) {
	name, err := label(t.lang, set, value)
	if err != nil {
		return "", err
	}
	return t.lang.Text(key, place, name)
}

func revisedKey(p ledger.PostRevised) string {
	switch {
	case !p.TextChanged:
		return "event.retitled"
	case p.Requeued:
		return "event.revised_requeued"
	default:
		return "event.revised"
	}
}

func (t teller) classified(p ledger.PostClassified) (text, tone string, err error) {
	key := "event.classified"
	switch {
	case p.Provisional:
		key = "event.classified_provisional"
	case p.Replay:
		key = "event.reclassified"
	}
	direction, err := label(t.lang, "direction", p.Direction)
	if err != nil {
		return "", "", err
	}
	stage, err := label(t.lang, "stage", p.Stage)
	if err != nil {
		return "", "", err
	}
	text, err = t.lang.Text(key, "direction", direction, "stage", stage,
		"interest", t.lang.Percent(p.Interest), "relevance", t.lang.Percent(p.Relevance))
	return text, "key", err
}

func (t teller) failed(p ledger.PostFailed) (text, tone string, err error) {
	cause, err := label(t.lang, "cause", p.Cause)
	if err != nil {
		return "", "", err
	}
	key := "event.failed"
	if p.Parked {
		key = "event.parked"
	}
	message, err := t.said.in(t.lang, p.Message)
	if err != nil {
		return "", "", err
	}
	text, err = t.lang.Text(key, "cause", cause, "n", p.Attempt, "message", message)
	return text, "bad", err
}

func (t teller) reviewed(p ledger.PostReviewed) (text, tone string, err error) {
	switch p.Verdict {
	case ledger.VerdictPicked:
		tone = "good"
		text, err = t.lang.Text("event.picked")
	case ledger.VerdictRejected:
		tone = "bad"
		text, err = t.lang.Text("event.rejected")
	default:
		if p.Direction == "" && p.Note == "" {
			text, err = t.lang.Text("event.undone")
		}
	}
	if err != nil {
		return "", "", err
	}
	parts := []string{text}
	if p.Direction != "" {
		corrected, err := t.with("event.corrected", "direction", "direction", p.Direction)
		if err != nil {
			return "", "", err
		}
		parts = append(parts, corrected)
	}
	if p.Note != "" {
		parts = append(parts, "“"+p.Note+"”")
	}
	return strings.TrimSpace(strings.Join(parts, " ")), tone, nil
}

func (t teller) measured(m ledger.Measures) (string, error) {
	var parts []string
	if m.Views != nil {
		s, err := t.lang.Plural("measure.views", int(*m.Views))
		if err != nil {
			return "", err
		}
		parts = append(parts, s)
	}
	if m.Reactions != nil {
		s, err := t.lang.Plural("measure.reactions", int(*m.Reactions))
		if err != nil {
			return "", err
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, ", "), nil
}
