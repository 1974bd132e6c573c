package httpui

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/projections/search"
)

// hitJSON is a found post, with the field names of "vesti search --json" and
// what a list shows beside them.
type hitJSON struct {
	ID        ledger.PostID    `json:"id"`
	Title     string           `json:"title"`
	URL       string           `json:"url"`
	Source    ledger.Slug      `json:"source"`
	Carriers  []ledger.Slug    `json:"carriers,omitempty"`
	Direction ledger.Direction `json:"direction"`
	Lang      string           `json:"lang"`
	Published *time.Time       `json:"published"`
	Fetched   time.Time        `json:"fetched"`
	Status    string           `json:"status"`
	Verdict   ledger.Verdict   `json:"verdict"`
	Relevance float64          `json:"relevance"`
	Interest  float64          `json:"interest"`
	Summary   string           `json:"summary,omitempty"`
	Snippet   string           `json:"snippet"`
}

// NoteJSON tells what of a query was not followed, and by which reason.
type NoteJSON struct {
	Reason search.NoteReason `json:"reason"`
	Parts  []string          `json:"parts"` // of the query, as typed; the first 10
}

// NotesJSON puts the notes of each reason together.
func NotesJSON(notes []search.Note) []NoteJSON {
	out := []NoteJSON{}
	for _, n := range notes {
		i := slices.IndexFunc(out, func(o NoteJSON) bool { return o.Reason == n.Reason })
		if i < 0 {
			out = append(out, NoteJSON{Reason: n.Reason, Parts: []string{}})
			i = len(out) - 1
		}
		if n.Part != "" && len(out[i].Parts) < 10 {
			out[i].Parts = append(out[i].Parts, n.Part)
		}
	}
	return out
}

func plainText(segments []search.Segment) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteString(s.Text)
	}
	return b.String()
}

func (s *Server) apiSearch(w http.ResponseWriter, r *http.Request) error {
	req, err := s.searchParameters(r.URL.Query())
	if err != nil {
		return err
	}
	result, err := s.Search.Search(r.Context(), req)
	if err != nil {
		return err
	}
	hits := make([]hitJSON, 0, len(result.Hits))
	for _, h := range result.Hits {
		hits = append(hits, hitJSON{
			ID: h.ID, Title: h.Title, URL: h.URL, Source: h.Source, Carriers: h.Carriers, Direction: h.Direction, Lang: h.Lang,
			Published: known(h.Published), Fetched: h.Fetched.UTC(), Status: h.Status.String(), Verdict: h.Verdict,
			Relevance: h.Relevance, Interest: h.Interest, Summary: h.Summary, Snippet: plainText(h.Snippet),
		})
	}
	return writeJSON(w, http.StatusOK, map[string]any{
		"total": result.Total, "took_ms": result.Took.Milliseconds(), "hits": hits, "notes": NotesJSON(result.Notes),
	})
}

type postJSON struct {
	ID        ledger.PostID    `json:"id"`
	Num       ledger.PostNum   `json:"num"`
	Title     string           `json:"title"`
	URL       string           `json:"url"`
	Author    string           `json:"author,omitempty"`
	Source    ledger.Slug      `json:"source"`
	Lang      string           `json:"lang"`
	Published *time.Time       `json:"published"`
	Fetched   time.Time        `json:"fetched"`
	Text      string           `json:"text"`
	Status    string           `json:"status"`
	Verdict   ledger.Verdict   `json:"verdict"`
	Direction ledger.Direction `json:"direction"`
	Corrected bool             `json:"corrected"`
	Revisions int              `json:"revisions"`
	Decision  *decisionJSON    `json:"decision"`
	Carriers  []carrierJSON    `json:"carriers"`
}

type decisionJSON struct {
	Direction  ledger.Direction `json:"direction"`
	Relevance  float64          `json:"relevance"`
	Interest   float64          `json:"interest"`
	Confidence float64          `json:"confidence"`
	Summary    string           `json:"summary,omitempty"`
	Stage      string           `json:"stage"`
	Model      string           `json:"model,omitempty"`
	PromptHash string           `json:"prompt_hash,omitempty"`
	RuleSet    string           `json:"rule_set,omitempty"`
	Reasons    []reasonJSON     `json:"reasons"`
}

type reasonJSON struct {
	Stage   string  `json:"stage"`
	Rule    string  `json:"rule,omitempty"`
	Matched string  `json:"matched,omitempty"`
	Weight  float64 `json:"weight"`
	Note    string  `json:"note,omitempty"`
}

type carrierJSON struct {
	Source ledger.Slug `json:"source"`
	URL    string      `json:"url"`
	Seen   time.Time   `json:"seen"`
}

func (s *Server) apiPost(w http.ResponseWriter, r *http.Request) error {
	post, err := s.findPost(r)
	if err != nil {
		return err
	}
	events, err := s.Posts.PostEvents(r.Context(), post.Num)
	if err != nil {
		return err
	}
	it := post.Item
	j := postJSON{
		ID: post.ID, Num: post.Num, Title: it.Title, URL: it.URL, Author: it.Author, Source: it.Source, Lang: it.Lang,
		Published: known(it.Published), Fetched: post.Fetched.UTC(), Text: it.Text, Status: post.State.Status.String(),
		Verdict: post.State.Verdict, Direction: post.State.EffectiveDirection(), Corrected: post.State.Corrected != "",
		Revisions: post.Revisions, Decision: decisionOf(post.Decision), Carriers: []carrierJSON{},
	}
	for _, c := range carriersOf(events, nil) {
		j.Carriers = append(j.Carriers, carrierJSON{c.Source, c.URL, c.Seen.UTC()})
	}
	return writeJSON(w, http.StatusOK, j)
}

func decisionOf(c ledger.Classification) *decisionJSON {
	if c.Stage == "" {
		return nil
	}
	j := &decisionJSON{
		Direction: c.Direction, Relevance: c.Relevance, Interest: c.Interest, Confidence: c.Confidence, Summary: c.Summary,
		Stage: c.Stage, Model: c.Model, PromptHash: c.PromptHash, RuleSet: c.RuleSet, Reasons: []reasonJSON{},
	}
	for _, r := range c.Reasons {
		j.Reasons = append(j.Reasons, reasonJSON(r))
	}
	return j
}

// apiReview changes of an editor's word what the body names; the rest stays. ""
// takes back.
func (s *Server) apiReview(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Verdict   *ledger.Verdict   `json:"verdict"`
		Direction *ledger.Direction `json:"direction"`
		Note      *string           `json:"note"`
	}
	if err := readJSON(r, &body); err != nil {
		return err
	}
	if body.Verdict == nil && body.Direction == nil && body.Note == nil {
		return badJSON(`say what to change: "verdict", "direction", "note"; "" takes one back`)
	}
	post, err := s.findPost(r)
	if err != nil {
		return err
	}
	word, err := s.lastWord(r.Context(), post)
	if err != nil {
		return err
	}
	if body.Verdict != nil {
		word.Verdict = *body.Verdict
	}
	if body.Direction != nil {
		word.Direction = *body.Direction
	}
	if body.Note != nil {
		word.Note = *body.Note
	}
	if err := s.recordWord(r.Context(), post, word); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]any{"id": post.ID, "verdict": word.Verdict, "direction": word.Direction})
}

func (s *Server) apiRequeue(w http.ResponseWriter, r *http.Request) error {
	if err := nothingToSay(r); err != nil {
		return err
	}
	post, err := s.findPost(r)
	if err != nil {
		return err
	}
	if err := s.Commands.Requeue(r.Context(), post.Num); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]any{"id": post.ID})
}
