//go:build !notelegram

package mtproto_test

import (
	"slices"
	"strings"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"
)

// channel is a channel on the server.
type channel struct {
	id, hash int64
	name     string // "" for none
	title    string
	messages []tg.MessageClass // ascending
	hidden   map[int]bool      // ids that take a place in the history and are not shown
	origins  []tg.ChatClass    // further chats in answers
	err      *tgerr.Error      // for every call on it
	min      bool              // answers show it as a min object, with a hash that does not work
}

// add puts a channel under its name.
func (s *server) add(c *channel) *channel {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.hidden == nil {
		c.hidden = map[int]bool{}
	}
	s.channels[c.id] = c
	if c.name != "" {
		s.names[strings.ToLower(c.name)] = c.id
	}
	return c
}

// rename gives the channel another name; the old one leads to heir, 0 for
// nobody.
func (s *server) rename(c *channel, name string, heir int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.names, strings.ToLower(c.name))
	if heir != 0 {
		s.names[strings.ToLower(c.name)] = heir
	}
	c.name = name
	s.names[strings.ToLower(name)] = c.id
}

func (c *channel) chat(partial bool) *tg.Channel {
	ch := &tg.Channel{ID: c.id, Title: c.title, Username: c.name, Broadcast: true, Photo: &tg.ChatPhotoEmpty{}, Date: 1}
	ch.AccessHash = c.hash
	if partial {
		ch.Min, ch.AccessHash = true, c.hash+99
	}
	ch.SetFlags()
	return ch
}

func (s *server) resolve(buf *bin.Buffer) (bin.Encoder, call, error) {
	c := call{method: "contacts.resolveUsername"}
	var r tg.ContactsResolveUsernameRequest
	if err := r.Decode(buf); err != nil {
		return nil, c, err
	}
	if r.Username == "some_person" {
		return &tg.ContactsResolvedPeer{Peer: &tg.PeerUser{UserID: 9}, Users: []tg.UserClass{&tg.UserEmpty{ID: 9}}}, c, nil
	}
	ch := s.channels[s.names[strings.ToLower(r.Username)]]
	if ch == nil {
		return nil, c, tgerr.New(400, "USERNAME_NOT_OCCUPIED")
	}
	c.channel = ch.id
	return &tg.ContactsResolvedPeer{Peer: &tg.PeerChannel{ChannelID: ch.id}, Chats: []tg.ChatClass{ch.chat(false)}}, c, nil
}

// history answers messages.getHistory: the window is counted in the list of
// all messages, hidden ones included, newest first.
func (s *server) history(buf *bin.Buffer) (bin.Encoder, call, error) {
	c := call{method: "messages.getHistory"}
	var r tg.MessagesGetHistoryRequest
	if err := r.Decode(buf); err != nil {
		return nil, c, err
	}
	peer, ok := r.Peer.(*tg.InputPeerChannel)
	if !ok {
		return nil, c, tgerr.New(400, "PEER_ID_INVALID")
	}
	c.channel = peer.ChannelID
	ch, err := s.channel(peer.ChannelID, peer.AccessHash)
	if err != nil {
		return nil, c, err
	}
	newer := 0
	if r.OffsetID > 0 {
		for _, m := range ch.messages {
			if m.GetID() >= r.OffsetID {
				newer++
			}
		}
	}
	from := max(newer+r.AddOffset, 0)
	var out []tg.MessageClass
	for i := from; i < min(from+min(r.Limit, 100), len(ch.messages)); i++ {
		if m := ch.messages[len(ch.messages)-1-i]; !ch.hidden[m.GetID()] {
			out = append(out, m)
		}
	}
	return s.answer(ch, out), c, nil
}

func (s *server) messages(buf *bin.Buffer) (bin.Encoder, call, error) {
	c := call{method: "channels.getMessages"}
	var r tg.ChannelsGetMessagesRequest
	if err := r.Decode(buf); err != nil {
		return nil, c, err
	}
	peer, ok := r.Channel.(*tg.InputChannel)
	if !ok {
		return nil, c, tgerr.New(400, "CHANNEL_INVALID")
	}
	c.channel = peer.ChannelID
	ch, err := s.channel(peer.ChannelID, peer.AccessHash)
	if err != nil {
		return nil, c, err
	}
	var out []tg.MessageClass
	for _, in := range r.ID {
		id := in.(*tg.InputMessageID).ID
		i := slices.IndexFunc(ch.messages, func(m tg.MessageClass) bool { return m.GetID() == id })
		if i < 0 {
			out = append(out, &tg.MessageEmpty{ID: id})
			continue
		}
		out = append(out, ch.messages[i])
	}
	return s.answer(ch, out), c, nil
}

func (s *server) channel(id, hash int64) (*channel, error) {
	ch := s.channels[id]
	if ch == nil || ch.hash != hash {
		return nil, tgerr.New(400, "CHANNEL_INVALID")
	}
	if ch.err != nil {
		return nil, ch.err
	}
	return ch, nil
}

func (s *server) answer(ch *channel, messages []tg.MessageClass) bin.Encoder {
	a := &tg.MessagesChannelMessages{
		Count: len(ch.messages), Messages: messages, Chats: append([]tg.ChatClass{ch.chat(ch.min)}, ch.origins...),
	}
	a.SetFlags()
	return a
}
