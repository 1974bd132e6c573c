package telegram

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"

	"vesti.nixg.ru/crawl"
)

// pageKind is what an address at t.me shows.
type pageKind uint8

const (
	pageUnknown  pageKind = iota
	pageHistory           // a channel's messages
	pageChannel           // the landing page of a channel without a preview
	pageGroup             // the landing page of a group: groups have no preview
	pagePerson            // of a user or a bot
	pageVacant            // nobody has this name
	pageKindSize = iota
)

// page is a page of t.me, parsed.
type page struct {
	Kind     pageKind
	Channel  Channel
	Messages []Message // ascending, service messages among them
	Broken   int       // blocks of messages that cannot be read
	Strange  string    // why a history cannot be trusted; "" where it can
}

var errNotHTML = errors.New("not an HTML page")

// parsePage reads a page of t.me. It never fails for what Telegram may show,
// only for bytes that are no page at all.
func parsePage(body []byte) (page, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return page{}, errNotHTML
	}
	root, err := html.Parse(bytes.NewReader(body))
	if err != nil {
		return page{}, fmt.Errorf("%w: %w", errNotHTML, err)
	}
	doc := goquery.NewDocumentFromNode(root)
	history := doc.Find(".tgme_channel_history")
	if history.Length() == 0 {
		return page{Kind: landingKind(doc), Channel: Channel{Title: squeeze(doc.Find(".tgme_page_title").First())}}, nil
	}
	p := page{Kind: pageHistory, Channel: Channel{Title: channelTitle(doc)}}
	history.Find(".tgme_widget_message[data-post]").Each(func(_ int, s *goquery.Selection) {
		name, m, ok := parseMessage(s)
		if !ok {
			p.Broken++
			return
		}
		p.Channel.Name = name
		if id := viewedChannel(s.AttrOr("data-view", "")); id != 0 {
			p.Channel.ID = id
		}
		p.Messages = append(p.Messages, m)
	})
	slices.SortStableFunc(p.Messages, func(a, b Message) int { return a.ID - b.ID })
	p.Strange = strangeness(p, history)
	return p, nil
}

// manyPosts without any text or picture among them are no chance.
const manyPosts = 5

// strangeness tells a history whose markup is no longer the one that is known
// from a channel that has little to show: nothing may be taken for the end of
// the history, or for texts that were emptied, only because a class was renamed.
func strangeness(p page, history *goquery.Selection) string {
	if len(p.Messages) == 0 {
		switch {
		case p.Broken > 0:
			return fmt.Sprintf("none of its %d messages can be read", p.Broken)
		case history.Find(".tme_no_messages_found").Length() == 0 && history.Children().Length() > 0:
			return "it shows neither messages nor that there are none"
		}
		return ""
	}
	dated := func(m Message) bool { return !m.Date.IsZero() }
	if !slices.ContainsFunc(p.Messages, dated) {
		return "none of its messages has a date"
	}
	posts, bare := 0, 0
	for _, m := range p.Messages {
		if m.Service {
			continue
		}
		posts++
		if m.bare() {
			bare++
		}
	}
	if posts >= manyPosts && bare == posts {
		return fmt.Sprintf("none of its %d posts has a text or media", posts)
	}
	return ""
}

// bare reports whether a preview shows nothing of the message.
func (m Message) bare() bool {
	return m.Text == "" && slices.Equal(m.Media, []string{MediaUnsupported})
}

func channelTitle(doc *goquery.Document) string {
	if t := squeeze(doc.Find(".tgme_channel_info_header_title").First()); t != "" {
		return t
	}
	return strings.TrimSpace(doc.Find(`meta[property="og:title"]`).First().AttrOr("content", ""))
}

// landingKind tells landing pages apart by what stays the same in every
// language: which elements there are, not what they say. Only the counters of
// members are words; they are read in English, which Telegram gives without an
// Accept-Language header.
func landingKind(doc *goquery.Document) pageKind {
	switch {
	case doc.Find(".tgme_page").Length() == 0:
		return pageUnknown
	case doc.Find(".tgme_page_title").Length() == 0:
		return pageVacant
	}
	kind := pageChannel
	doc.Find(".tgme_page_extra").Each(func(_ int, s *goquery.Selection) {
		switch extra := squeeze(s); {
		case strings.HasPrefix(extra, "@"), strings.Contains(extra, "monthly user"):
			kind = pagePerson
		case strings.Contains(extra, "member"):
			kind = pageGroup
		}
	})
	return kind
}

// parseMessage reads one block of the history: a message or an album.
func parseMessage(s *goquery.Selection) (channel string, m Message, ok bool) {
	channel, number, _ := strings.Cut(s.AttrOr("data-post", ""), "/")
	id, err := strconv.ParseInt(number, 10, 32) // as wide as Telegram's
	if err != nil || id <= 0 {
		return "", Message{}, false
	}
	if _, err := crawl.ChannelName(channel); err != nil {
		return "", Message{}, false
	}
	m.ID = int(id)
	m.Service = s.HasClass("service_message")
	if date := s.Find(".tgme_widget_message_date time[datetime]"); date.Length() > 0 {
		m.DateRaw = date.First().AttrOr("datetime", "")
		if t, err := time.Parse(time.RFC3339, m.DateRaw); err == nil {
			m.Date = t.UTC()
		}
	}
	m.Text = blockText(s)
	m.Author = squeeze(s.Find(".tgme_widget_message_from_author").First())
	m.Edited = strings.HasPrefix(squeeze(s.Find(".tgme_widget_message_meta").First()), "edited")
	m.Forward = forwardOf(s)
	m.Members = albumMembers(s, m.ID)
	m.Media = blockMedia(s)
	if len(m.Media) == 0 && m.Text == "" && !m.Service {
		m.Media = []string{MediaUnsupported}
	}
	m.Views, m.Rounded = parseCount(squeeze(s.Find(".tgme_widget_message_views").First()))
	reactions, rounded := sumReactions(s)
	m.Reactions, m.Rounded = reactions, m.Rounded || rounded
	return channel, m, true
}

// blockText is the text of a block: the innermost text elements, which are
// sometimes nested in a copy of themselves, but not a quoted reply's. A poll's
// question and options stand for the text that a poll has not.
func blockText(s *goquery.Selection) string {
	var parts []string
	seen := make(map[string]bool)
	s.Find(".js-message_text").Each(func(_ int, t *goquery.Selection) {
		if t.Find(".js-message_text").Length() > 0 || t.Closest(".tgme_widget_message_reply").Length() > 0 {
			return
		}
		if text := messageText(t.Nodes[0]); text != "" && !seen[text] {
			seen[text] = true
			parts = append(parts, text)
		}
	})
	s.Find(".tgme_widget_message_poll").Each(func(_ int, p *goquery.Selection) {
		var options []string
		p.Find(".tgme_widget_message_poll_option_text").Each(func(_ int, o *goquery.Selection) {
			options = append(options, squeeze(o))
		})
		parts = append(parts, PollText(squeeze(p.Find(".tgme_widget_message_poll_question").First()), options))
	})
	return strings.Join(parts, "\n\n")
}

// PollText is how both ways write a poll.
func PollText(question string, options []string) string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(question))
	for _, o := range options {
		b.WriteString("\n- " + strings.TrimSpace(o))
	}
	return Tidy(b.String())
}

// forwardOf is where a message was forwarded from: a link, or a name where its
// sender hides the account.
func forwardOf(s *goquery.Selection) string {
	from := s.Find(".tgme_widget_message_forwarded_from").First()
	name := from.Find(".tgme_widget_message_forwarded_from_name").First()
	if href := name.AttrOr("href", ""); strings.HasPrefix(href, "https://") {
		href, _, _ = strings.Cut(href, "?")
		return href
	}
	return squeeze(name)
}

// albumMembers are the ids of an album's messages, nil for a single message.
func albumMembers(s *goquery.Selection, first int) []int {
	var ids []int
	s.Find(".tgme_widget_message_grouped_wrap [href]").Each(func(_ int, a *goquery.Selection) {
		link, isMember := strings.CutSuffix(a.AttrOr("href", ""), "?single")
		if id, err := strconv.Atoi(link[strings.LastIndexByte(link, '/')+1:]); isMember && err == nil && id >= first && id < first+pageSize {
			ids = append(ids, id)
		}
	})
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if ids[0] != first {
		ids = slices.Insert(ids, 0, first)
	}
	return ids
}

// mediaClasses are the elements that stand for media, one for each.
var mediaClasses = []struct{ selector, kind string }{
	{".tgme_widget_message_photo_wrap", MediaPhoto},
	{".tgme_widget_message_video_player", MediaVideo},
	{".tgme_widget_message_roundvideo_player", MediaVideoNote},
	{".tgme_widget_message_voice_player", MediaVoice},
	{".tgme_widget_message_document_wrap", MediaDocument},
	{".tgme_widget_message_sticker_wrap, .tgme_widget_message_tgsticker_wrap, .tgme_widget_message_videosticker_wrap", MediaSticker},
	{".tgme_widget_message_poll", MediaPoll},
	{".tgme_widget_message_location_wrap", MediaLocation},
	{".tgme_widget_message_contact_wrap", MediaContact},
}

// blockMedia are the kinds of a block's media. The notice that a browser
// cannot play them is in every block and means nothing.
func blockMedia(s *goquery.Selection) []string {
	var kinds []string
	for _, c := range mediaClasses {
		s.Find(c.selector).Each(func(_ int, m *goquery.Selection) {
			switch kind := c.kind; {
			case m.Closest(".tgme_widget_message_reply, .tgme_widget_message_link_preview").Length() > 0:
			case kind == MediaDocument && m.Find(".tgme_widget_message_document_icon.audio").Length() > 0:
				kinds = append(kinds, MediaAudio)
			default:
				kinds = append(kinds, kind)
			}
		})
	}
	return kinds
}

// sumReactions adds up the chips under a message; nil when there are none.
func sumReactions(s *goquery.Selection) (total *int64, rounded bool) {
	s.Find(".tgme_reaction").Each(func(_ int, r *goquery.Selection) {
		last := r.Nodes[0].LastChild // before it stands the emoji
		if last == nil || last.Type != html.TextNode {
			return
		}
		n, approximate := parseCount(strings.TrimSpace(last.Data))
		if n == nil {
			return
		}
		if total == nil {
			total = new(int64)
		}
		*total += *n
		rounded = rounded || approximate
	})
	return total, rounded
}

// parseCount reads "512", "23.4K" or "8.67M"; nil for anything else.
func parseCount(s string) (n *int64, rounded bool) {
	s = strings.TrimSpace(s)
	scale := 1.0
	switch {
	case strings.HasSuffix(s, "K"):
		scale = 1e3
	case strings.HasSuffix(s, "M"):
		scale = 1e6
	case strings.HasSuffix(s, "B"):
		scale = 1e9
	}
	if scale > 1 {
		s = s[:len(s)-1]
	}
	s = strings.ReplaceAll(s, " ", "")
	if strings.Trim(s, "0123456789.") != "" {
		return nil, false // "NaN" and "1e9" are numbers to Go alone
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f > 1e9 {
		return nil, false
	}
	v := int64(f*scale + 0.5)
	return &v, scale > 1
}

// viewedChannel is the channel's id in a block's data-view: base64url of a JSON
// object whose "c" is the id, negative as the previews have it.
func viewedChannel(view string) int64 {
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(view, "="))
	if err != nil {
		return 0
	}
	var v struct {
		C json.Number `json:"c"`
	}
	if json.Unmarshal(raw, &v) != nil {
		return 0
	}
	id, err := v.C.Int64()
	if err != nil {
		return 0
	}
	return max(id, -id)
}

// squeeze is an element's text on one line.
func squeeze(s *goquery.Selection) string { return strings.Join(strings.Fields(s.Text()), " ") }
