//go:build !notelegram

package mtproto

import (
	"cmp"
	"slices"
	"strconv"
	"time"
	"unicode/utf16"

	"github.com/gotd/td/tg"

	"vesti.nixg.ru/crawl/telegram"
)

// convert makes of Telegram's messages what both ways give, in ascending order.
// Messages that do not exist are left out.
func convert(messages []tg.MessageClass, channel int64, origins map[int64]string) []telegram.Message {
	out := make([]telegram.Message, 0, len(messages))
	for _, m := range messages {
		switch m := m.(type) {
		case *tg.Message:
			if !ofChannel(m.PeerID, channel) {
				continue
			}
			out = append(out, convertOne(m, origins))
		case *tg.MessageService:
			if !ofChannel(m.PeerID, channel) {
				continue
			}
			out = append(out, telegram.Message{ID: m.ID, Date: time.Unix(int64(m.Date), 0).UTC(), Service: true})
		}
	}
	slices.SortFunc(out, func(a, b telegram.Message) int { return cmp.Compare(a.ID, b.ID) })
	return slices.CompactFunc(out, func(a, b telegram.Message) bool { return a.ID == b.ID })
}

func ofChannel(p tg.PeerClass, channel int64) bool {
	c, ok := p.(*tg.PeerChannel)
	return ok && c.ChannelID == channel
}

func convertOne(m *tg.Message, origins map[int64]string) telegram.Message {
	out := telegram.Message{
		ID:      m.ID,
		Album:   m.GroupedID,
		Date:    time.Unix(int64(m.Date), 0).UTC(),
		DateRaw: strconv.Itoa(m.Date),
		Text:    plainText(m.Message, m.Entities),
		Author:  m.PostAuthor,
		Edited:  m.EditDate != 0 && !m.EditHide,
	}
	if media, ok := m.GetMedia(); ok {
		kind, text := mediaOf(media)
		if text != "" {
			out.Text = join(out.Text, text)
		}
		if kind == telegram.MediaUnsupported && out.Text != "" {
			kind = "" // the preview shows such a message as mere text
		}
		if kind != "" {
			out.Media = []string{kind}
		}
	}
	if views, ok := m.GetViews(); ok {
		v := int64(views)
		out.Views = &v
	}
	if reactions, ok := m.GetReactions(); ok {
		var total int64
		for _, r := range reactions.Results {
			total += int64(r.Count)
		}
		out.Reactions = &total
	}
	if from, ok := m.GetFwdFrom(); ok {
		out.Forward = originOf(from, origins)
	}
	return out
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "\n\n" + b
}

// plainText is a message's text with its hidden links written out. Entities
// count in UTF-16 code units.
func plainText(text string, entities []tg.MessageEntityClass) string {
	type link struct {
		from, to int
		url      string
	}
	var links []link
	for _, e := range entities {
		if u, ok := e.(*tg.MessageEntityTextURL); ok && u.Length > 0 && u.Offset >= 0 {
			links = append(links, link{u.Offset, u.Offset + u.Length, u.URL})
		}
	}
	if len(links) == 0 {
		return telegram.Tidy(text)
	}
	slices.SortStableFunc(links, func(a, b link) int { return cmp.Compare(a.from, b.from) })
	units := utf16.Encode([]rune(text))
	var out []uint16
	at := 0
	for _, l := range links {
		if l.from < at || l.to > len(units) {
			continue // entities of one kind do not overlap; a broken one is not worth a message
		}
		out = append(out, units[at:l.from]...)
		shown := string(utf16.Decode(units[l.from:l.to]))
		out = append(out, utf16.Encode([]rune(telegram.WithLink(shown, l.url)))...)
		at = l.to
	}
	out = append(out, units[at:]...)
	return telegram.Tidy(string(utf16.Decode(out)))
}

// originOf is where a message was forwarded from: a link to the message, to the
// channel, or a name where its sender hides the account.
func originOf(f tg.MessageFwdHeader, origins map[int64]string) string {
	if from, ok := f.GetFromID(); ok {
		c, isChannel := from.(*tg.PeerChannel)
		if isChannel && f.ChannelPost > 0 {
			if name := origins[c.ChannelID]; name != "" {
				return telegram.Link(name, f.ChannelPost)
			}
			return "https://t.me/c/" + strconv.FormatInt(c.ChannelID, 10) + "/" + strconv.Itoa(f.ChannelPost)
		}
	}
	if f.FromName != "" {
		return f.FromName
	}
	return f.PostAuthor
}

// mediaOf is the kind of a message's media, and the text that stands for media
// which are text: a poll's.
func mediaOf(media tg.MessageMediaClass) (kind, text string) {
	switch m := media.(type) {
	case *tg.MessageMediaPhoto:
		return telegram.MediaPhoto, ""
	case *tg.MessageMediaDocument:
		return documentKind(m), ""
	case *tg.MessageMediaPoll:
		var options []string
		for _, o := range m.Poll.Answers {
			options = append(options, o.GetText().Text)
		}
		return telegram.MediaPoll, telegram.PollText(m.Poll.Question.Text, options)
	case *tg.MessageMediaGeo, *tg.MessageMediaGeoLive, *tg.MessageMediaVenue:
		return telegram.MediaLocation, ""
	case *tg.MessageMediaContact:
		return telegram.MediaContact, ""
	case *tg.MessageMediaWebPage, *tg.MessageMediaEmpty, nil:
		return "", ""
	default:
		return telegram.MediaUnsupported, ""
	}
}

func documentKind(m *tg.MessageMediaDocument) string {
	d, ok := m.Document.(*tg.Document)
	if !ok {
		return telegram.MediaDocument
	}
	kind := telegram.MediaDocument
	for _, a := range d.Attributes {
		switch a := a.(type) {
		case *tg.DocumentAttributeSticker:
			return telegram.MediaSticker
		case *tg.DocumentAttributeVideo:
			kind = telegram.MediaVideo
			if a.RoundMessage {
				return telegram.MediaVideoNote
			}
		case *tg.DocumentAttributeAudio:
			kind = telegram.MediaAudio
			if a.Voice {
				return telegram.MediaVoice
			}
		}
	}
	return kind
}
