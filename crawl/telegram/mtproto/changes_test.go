//go:build !notelegram

package mtproto_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gotd/td/tg"

	"vesti.nixg.ru/crawl/telegram"
	"vesti.nixg.ru/ledger"
)

func TestEditsDeletionsAndCounts(t *testing.T) {
	w := newWorld(t)
	c := w.server.add(portChannel(1, 150))
	w.mustCrawl()
	w.edit(c, 20, func(m *tg.Message) { // beyond the newest page, in the window
		m.Message, m.EditDate = "Теперь тут написано совсем о другом порте", 1
	})
	w.edit(c, 140, func(m *tg.Message) { m.EditDate, m.EditHide = 1, true }) // a reaction counts as an edit
	w.edit(c, 141, func(m *tg.Message) {
		m.Views = 500
		m.Reactions = tg.MessageReactions{Results: []tg.ReactionCount{
			{Reaction: &tg.ReactionEmoji{Emoticon: "👍"}, Count: 30}, {Reaction: &tg.ReactionPaid{}, Count: 3},
		}}
	})
	w.remove(c, 30, 145)
	rep := w.mustCrawl()
	if rep.Revised != 1 || rep.New != 0 {
		t.Errorf("report %+v, want one revision", rep)
	}
	if p := w.post(20); p.Revisions != 1 || !strings.Contains(p.Item.Text, "о другом порте") {
		t.Errorf("post 20: %+v", p.Item)
	}
	for _, id := range []int{29, 30, 31, 144, 145, 146} {
		if got, want := w.post(id).State.Removed, id == 30 || id == 145; got != want {
			t.Errorf("message %d removed: %v", id, got)
		}
	}
	events, err := w.log.PostEvents(t.Context(), w.post(141).Num)
	if err != nil {
		t.Fatal(err)
	}
	m, ok := events[len(events)-1].Payload.(ledger.PostMeasured)
	if !ok || *m.Measures.Views != 500 || *m.Measures.Reactions != 33 || m.Measures.Rounded {
		t.Errorf("last event of post 141: %+v", events[len(events)-1].Payload)
	}
	head := w.log.Head()
	w.mustCrawl()
	if w.log.Head() != head {
		t.Error("a quiet run wrote to the ledger")
	}
	w.pass(73 * time.Hour) // out of the window
	w.edit(c, 21, func(m *tg.Message) { m.Message = "Поздняя правка никому не видна" })
	if rep := w.mustCrawl(); rep.Revised != 0 {
		t.Errorf("an edit after three days: %+v", rep)
	}
}

func TestAlbumThatIsStillComing(t *testing.T) {
	w := newWorld(t)
	c := portChannel(1, 3)
	part := func(id int) *tg.Message {
		m := message(id)
		m.GroupedID, m.Date = 7, int(noon.Unix())
		m.Media = &tg.MessageMediaPhoto{Photo: &tg.PhotoEmpty{}}
		if id > 4 {
			m.Message = ""
		}
		m.SetFlags()
		return m
	}
	c.messages = append(c.messages, part(4))
	w.server.add(c)
	if rep := w.mustCrawl(); rep.New != 3 || rep.Cursor != "2000000001/3" {
		t.Errorf("report %+v: an album may still grow", rep)
	}
	w.server.set(func() { c.messages = append(c.messages, part(5), part(6)) })
	w.pass(time.Minute)
	if rep := w.mustCrawl(); rep.New != 1 || rep.Cursor != "2000000001/6" {
		t.Errorf("report %+v", rep)
	}
	if got := w.post(4).Item.Media; len(got) != 3 {
		t.Errorf("media %v", got)
	}
	w.remove(c, 4)
	if rep := w.mustCrawl(); rep.New+rep.Revised != 0 {
		t.Errorf("after its first picture was deleted: %+v", rep)
	}
	if w.post(4).State.Removed {
		t.Error("the album is marked as removed")
	}
}

func TestTextsLinksForwardsAndMedia(t *testing.T) {
	w := newWorld(t)
	c := portChannel(1, 0)
	put := func(id int, change func(*tg.Message)) {
		m := message(id)
		m.Message = ""
		change(m)
		m.SetFlags()
		c.messages = append(c.messages, m)
	}
	put(1, func(m *tg.Message) { // the emoji takes two UTF-16 units
		m.Message = "🚢 читайте здесь и @port, https://example.org"
		m.Entities = []tg.MessageEntityClass{
			&tg.MessageEntityTextURL{Offset: 11, Length: 5, URL: "https://example.org/полно"},
			&tg.MessageEntityBold{Offset: 0, Length: 2},
			&tg.MessageEntityTextURL{Offset: 19, Length: 5, URL: "https://t.me/port"},
			&tg.MessageEntityURL{Offset: 26, Length: 19},
			&tg.MessageEntityTextURL{Offset: 400, Length: 5, URL: "https://example.org/broken"},
		}
	})
	put(2, func(m *tg.Message) {
		m.Message = "переслано из другого порта"
		m.FwdFrom = tg.MessageFwdHeader{FromID: &tg.PeerChannel{ChannelID: 55}, ChannelPost: 77}
		m.FwdFrom.SetFlags()
	})
	put(3, func(m *tg.Message) {
		m.Message = "переслано от человека без имени"
		m.FwdFrom = tg.MessageFwdHeader{FromName: "Некто"}
		m.FwdFrom.SetFlags()
	})
	put(4, func(m *tg.Message) { m.Media = &tg.MessageMediaPhoto{Photo: &tg.PhotoEmpty{}} })
	put(5, func(m *tg.Message) {
		m.Media = &tg.MessageMediaPoll{
			Poll: tg.Poll{
				Question: tg.TextWithEntities{Text: "Когда открывать порт?"},
				Answers: []tg.PollAnswerClass{
					&tg.PollAnswer{Text: tg.TextWithEntities{Text: "Весной"}, Option: []byte{0}},
					&tg.PollAnswer{Text: tg.TextWithEntities{Text: "Летом"}, Option: []byte{1}},
				},
			},
		}
	})
	put(6, func(m *tg.Message) {
		m.Media = &tg.MessageMediaDocument{Document: &tg.Document{Attributes: []tg.DocumentAttributeClass{&tg.DocumentAttributeAudio{Voice: true}}}}
	})
	c.messages = append(c.messages, &tg.MessageService{
		ID: 7, Post: true, PeerID: &tg.PeerChannel{ChannelID: port}, Date: 1, Action: &tg.MessageActionPinMessage{},
	})
	put(8, func(m *tg.Message) { m.Media = &tg.MessageMediaDice{Value: 3, Emoticon: "🎲"} })
	c.origins = []tg.ChatClass{(&channel{id: 55, name: "Other_Port", title: "Другой"}).chat(false)}
	w.server.add(c)
	if rep := w.mustCrawl(); rep.New != 7 || rep.Cursor != "2000000001/8" {
		t.Errorf("report %+v, want 7 new to 8", rep)
	}
	for id, want := range map[int]string{
		1: "🚢 читайте здесь (https://example.org/полно) и @port, https://example.org",
		4: "", 5: "Когда открывать порт?\n- Весной\n- Летом", 6: "", 8: "",
	} {
		if got := w.post(id).Item.Text; got != want {
			t.Errorf("message %d: text %q, want %q", id, got, want)
		}
	}
	for id, want := range map[int]string{4: telegram.MediaPhoto, 5: telegram.MediaPoll, 6: telegram.MediaVoice, 8: telegram.MediaUnsupported} {
		if got := w.post(id).Item.Media; !slices.Equal(got, []string{want}) {
			t.Errorf("message %d: media %v, want %s", id, got, want)
		}
	}
	if it := w.post(2).Item; it.ForwardOf != "https://t.me/Other_Port/77" || it.CanonicalURL != "https://t.me/other_port/77" {
		t.Errorf("forward of %q, canonical %q", it.ForwardOf, it.CanonicalURL)
	}
	if got := w.post(3).Item.ForwardOf; got != "Некто" {
		t.Errorf("forward of %q", got)
	}
}
