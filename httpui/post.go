package httpui

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gorilla/mux"

	"vesti.nixg.ru/httpui/i18n"
	"vesti.nixg.ru/ledger"
)

type postPage struct {
	ledger.Post
	SourceName string
	Title      string
	Carriers   []carrier
	Revisions  []revision
	Linked     *linkedPost
	Word       ledger.PostReviewed // the editor's, zero for none
	Directions []choice
	Fit        meterValue
	Decided    time.Time
	History    []happening
	Here       string
}

// meterValue is a share and what it is called.
type meterValue struct{ Relevance, Interest, Confidence float64 }

// carrier is a source that has the post's text.
type carrier struct {
	Source    ledger.Slug
	Name      string
	Title     string
	URL       string
	Published time.Time
	Seen      time.Time
}

// revision is a text that the post had, and how the next one differs.
type revision struct {
	At      time.Time
	Title   string
	Text    string
	Expired bool // retention removed the text
	Changes []change
}

// linkedPost is another post with the same address or an equal text.
type linkedPost struct {
	ID    ledger.PostID
	Title string
}

func (s *Server) post(w http.ResponseWriter, r *http.Request) error {
	post, err := s.findPost(r)
	if err != nil {
		return err
	}
	page, err := s.postPage(r, post)
	if err != nil {
		return err
	}
	return s.renderTitled(w, r, http.StatusOK, "post.html", page.Title, page)
}

// findPost reads the address: a post's ID, a prefix of one, or its number.
func (s *Server) findPost(r *http.Request) (ledger.Post, error) {
	num, err := s.Posts.FindPost(r.Context(), mux.Vars(r)["id"])
	if err != nil {
		return ledger.Post{}, err
	}
	return s.Posts.Post(r.Context(), num)
}

func (s *Server) postPage(r *http.Request, post ledger.Post) (postPage, error) {
	events, err := s.Posts.PostEvents(r.Context(), post.Num)
	if err != nil {
		return postPage{}, err
	}
	lang := s.language(r)
	names := s.sourceNames()
	page := postPage{
		Post: post, SourceName: cmp.Or(names[post.Item.Source], string(post.Item.Source)),
		Carriers: carriersOf(events, names), Revisions: revisionsOf(events), Word: LastWord(events), Here: s.here(r),
	}
	if page.Title, err = titleOf(lang, post.Item, names); err != nil {
		return postPage{}, err
	}
	if page.History, err = s.history(lang, events, names); err != nil {
		return postPage{}, err
	}
	for _, e := range events {
		if _, ok := e.Payload.(ledger.PostClassified); ok {
			page.Decided = e.At
		}
	}
	if page.Linked, err = s.linked(r.Context(), lang, post, names); err != nil {
		return postPage{}, err
	}
	for _, d := range s.Directions {
		page.Directions = append(page.Directions, choice{Value: string(d), Current: d == page.Word.Direction})
	}
	// A correction to a direction that the configuration has dropped stays.
	if d := page.Word.Direction; d != "" && !slices.Contains(s.Directions, d) {
		page.Directions = append(page.Directions, choice{Value: string(d), Current: true})
	}
	return page, nil
}

// titleOf is what a page calls an item: a post must have something to click on.
func titleOf(lang *i18n.Language, it ledger.Item, names map[ledger.Slug]string) (string, error) {
	if headline := it.Headline(); headline != "" {
		return headline, nil
	}
	return StandIn(lang, it.Media, cmp.Or(names[it.Source], string(it.Source)))
}

// StandIn is what a post with neither title nor text is called: the kind of its
// first medium and the name of its source. media are as in ledger.Item: of a
// feed's item they are addresses, which name no kind.
func StandIn(lang *i18n.Language, media []string, source string) (string, error) {
	key := "untitled"
	if len(media) > 0 && lang.Has("media."+media[0]) {
		key = "media." + media[0]
	}
	kind, err := lang.Text(key)
	if err != nil {
		return "", err
	}
	return lang.Text("post.stand_in", "kind", kind, "source", source)
}

func (s *Server) linked(ctx context.Context, lang *i18n.Language, post ledger.Post, names map[ledger.Slug]string) (*linkedPost, error) {
	if post.LinkedTo == 0 {
		return nil, nil //nolint:nilnil // no link is no error
	}
	other, err := s.Posts.Post(ctx, post.LinkedTo)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, nil //nolint:nilnil // nor is one that leads nowhere
	}
	if err != nil {
		return nil, err
	}
	title, err := titleOf(lang, other.Item, names)
	return &linkedPost{other.ID, title}, err
}

// carriersOf lists who has the text, the first who had it first.
func carriersOf(events []ledger.Event, names map[ledger.Slug]string) []carrier {
	var all []carrier
	for _, e := range events {
		c := carrier{Source: e.Source, Name: cmp.Or(names[e.Source], string(e.Source)), Seen: e.At}
		switch p := e.Payload.(type) {
		case ledger.PostFetched:
			c.Title, c.URL, c.Published = p.Item.Title, p.Item.URL, p.Item.Published
		case ledger.PostSeenAgain:
			c.Title, c.URL, c.Published = p.Title, p.URL, p.Published
		default:
			continue
		}
		all = append(all, c)
	}
	return all
}

// revisionsOf lists the texts the post has had, newest first, each with what it
// changed in the one before. A post that was never revised has none.
func revisionsOf(events []ledger.Event) []revision {
	var all []revision
	compare := newDiffer()
	for _, e := range events {
		switch p := e.Payload.(type) {
		case ledger.PostFetched:
			all = append(all, revision{At: e.At, Title: p.Item.Title, Text: p.Item.Text, Expired: p.Item.Text == "" && p.TextLen > 0})
		case ledger.PostRevised:
			if len(all) == 0 {
				continue
			}
			last := all[len(all)-1]
			next := revision{At: e.At, Title: cmp.Or(p.Title, last.Title), Text: last.Text, Expired: last.Expired}
			if p.TextChanged {
				next.Text, next.Expired = p.Text, p.Text == "" && p.TextLen > 0
			}
			if !next.Expired && !last.Expired {
				next.Changes = compare.changes(last.Text, next.Text)
			}
			all = append(all, next)
		default:
		}
	}
	if len(all) < 2 {
		return nil
	}
	slices.Reverse(all)
	return all
}

func (s *Server) lastWord(ctx context.Context, post ledger.Post) (ledger.PostReviewed, error) {
	events, err := s.Posts.PostEvents(ctx, post.Num)
	return LastWord(events), err
}

// LastWord is the editor's last word in a post's history, zero without one.
func LastWord(events []ledger.Event) ledger.PostReviewed {
	for _, e := range slices.Backward(events) {
		if p, ok := e.Payload.(ledger.PostReviewed); ok {
			return p
		}
	}
	return ledger.PostReviewed{}
}

// MaxNote is the most letters of an editor's note; the form on the page takes as
// many.
const MaxNote = 1000

// CleanNote returns a note as it is kept. ok is false where it is too long.
func CleanNote(note string) (clean string, ok bool) {
	clean = strings.TrimSpace(strings.ReplaceAll(note, "\r\n", "\n")) // as forms send lines, and as they count them
	return clean, utf8.RuneCountInString(clean) <= MaxNote
}

// review records an editor's word. A button in a list sends only the verdict;
// what the form does not say stays as it was.
func (s *Server) review(w http.ResponseWriter, r *http.Request) error {
	if err := parseForm(r); err != nil {
		return err
	}
	post, err := s.findPost(r)
	if err != nil {
		return err
	}
	word, err := s.lastWord(r.Context(), post)
	if err != nil {
		return err
	}
	if r.PostForm.Has("verdict") {
		word.Verdict = ledger.Verdict(r.PostForm.Get("verdict"))
	}
	if r.PostForm.Has("direction") {
		word.Direction = ledger.Direction(r.PostForm.Get("direction"))
	}
	if r.PostForm.Has("note") {
		word.Note = r.PostForm.Get("note")
	}
	if r.PostForm.Has("undo") {
		word = ledger.PostReviewed{}
	}
	if err := s.recordWord(r.Context(), post, word); err != nil {
		return err
	}
	if wantsJSON(r) {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	s.flash(w, r, flashOf(word))
	s.redirectBack(w, r)
	return nil
}

// recordWord checks an editor's word and hands it on.
func (s *Server) recordWord(ctx context.Context, post ledger.Post, word ledger.PostReviewed) error {
	switch word.Verdict {
	case ledger.VerdictNone, ledger.VerdictPicked, ledger.VerdictRejected:
	default:
		return &httpError{status: http.StatusBadRequest, key: "error.verdict"}
	}
	if d := word.Direction; d != "" && d != post.State.Corrected && !slices.Contains(s.Directions, d) {
		return &httpError{status: http.StatusBadRequest, key: "error.direction"}
	}
	var ok bool
	if word.Note, ok = CleanNote(word.Note); !ok {
		return &httpError{status: http.StatusBadRequest, key: "error.note"}
	}
	return s.Commands.Review(ctx, post.Num, word)
}

func flashOf(word ledger.PostReviewed) string {
	switch {
	case word.Verdict == ledger.VerdictPicked:
		return "flash.picked"
	case word.Verdict == ledger.VerdictRejected:
		return "flash.rejected"
	case word.Direction != "":
		return "flash.corrected"
	default:
		return "flash.undone"
	}
}

func (s *Server) requeue(w http.ResponseWriter, r *http.Request) error {
	if err := parseForm(r); err != nil {
		return err
	}
	post, err := s.findPost(r)
	if err != nil {
		return err
	}
	if err := s.Commands.Requeue(r.Context(), post.Num); err != nil {
		return err
	}
	s.flash(w, r, "flash.requeued")
	s.redirectBack(w, r)
	return nil
}
