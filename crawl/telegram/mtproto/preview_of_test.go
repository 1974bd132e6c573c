//go:build !notelegram

package mtproto_test

import (
	"slices"
	"time"

	"github.com/gotd/td/tg"

	"vesti.nixg.ru/crawl/telegram"
	"vesti.nixg.ru/crawl/telegram/telegramtest"
)

type telegramPage = telegramtest.Channel

// previewOf is a channel of the MTProto server as preview pages show it,
// written out independently of what the account makes of its messages.
func previewOf(c *channel, preview bool) telegramPage {
	p := telegramPage{ID: c.id, Name: c.name, Title: c.title, NoPreview: !preview}
	var album int64
	for _, m := range c.messages {
		m, ok := m.(*tg.Message)
		if !ok {
			p.Messages = append(p.Messages, telegram.Message{ID: m.GetID(), Service: true})
			continue
		}
		out := telegram.Message{ID: m.ID, Date: time.Unix(int64(m.Date), 0), Text: m.Message}
		for _, e := range m.Entities {
			if u, ok := e.(*tg.MessageEntityTextURL); ok {
				r := []rune(m.Message) // only texts without emoji before their links
				shown := string(r[u.Offset : u.Offset+u.Length])
				out.Text = string(r[:u.Offset]) + shown + " (" + u.URL + ")" + string(r[u.Offset+u.Length:])
			}
		}
		if m.Media != nil {
			out.Media = []string{telegram.MediaPhoto}
		}
		if m.Views > 0 {
			v := int64(m.Views)
			out.Views = &v
		}
		if last := len(p.Messages) - 1; m.GroupedID != 0 && m.GroupedID == album {
			first := &p.Messages[last]
			if first.Members == nil {
				first.Members = []int{first.ID}
			}
			first.Members = append(first.Members, m.ID)
			first.Media = slices.Concat(first.Media, out.Media)
			continue
		}
		album = m.GroupedID
		p.Messages = append(p.Messages, out)
	}
	return p
}
