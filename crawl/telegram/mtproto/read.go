//go:build !notelegram

package mtproto

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/telegram"
	"vesti.nixg.ru/ledger"
)

// Resolve implements telegram.Account.
func (a *Account) Resolve(ctx context.Context, name string, fresh bool) (telegram.Channel, error) {
	s, err := a.session(ctx)
	if err != nil {
		return telegram.Channel{}, err
	}
	if !fresh {
		p, err := a.vault.peerByName(ctx, s.self.ID, name)
		if err != nil {
			return telegram.Channel{}, err
		}
		if p.ID != 0 {
			return p.channel(), nil
		}
	}
	p, err := a.lookUp(ctx, s, name)
	if err != nil {
		return telegram.Channel{}, err
	}
	return p.channel(), nil
}

func (p peer) channel() telegram.Channel {
	return telegram.Channel{ID: p.ID, Name: p.Name, Title: p.Title}
}

// lookUp asks Telegram for a name and stores the answer.
func (a *Account) lookUp(ctx context.Context, s state, name string) (peer, error) {
	found, err := call(ctx, a, methodResolve, func(ctx context.Context, api *tg.Client) (*tg.ContactsResolvedPeer, error) {
		return api.ContactsResolveUsername(ctx, &tg.ContactsResolveUsernameRequest{Username: name})
	})
	if err != nil {
		return peer{}, named(name, err)
	}
	at, isChannel := found.Peer.(*tg.PeerChannel)
	if !isChannel {
		return peer{}, &crawl.Error{Cause: ledger.CauseNotFeed, Message: name + " is a person or a bot, not a channel"}
	}
	for _, c := range found.Chats {
		switch c := c.(type) {
		case *tg.Channel:
			if c.ID != at.ChannelID || c.Min { // a min object's hash cannot be used
				continue
			}
			p := peer{ID: c.ID, Hash: c.AccessHash, Asked: name, Name: mainName(c), Title: c.Title}
			if p.Name == "" {
				p.Name = name
			}
			return p, a.vault.setPeer(ctx, s.self.ID, p)
		case *tg.ChannelForbidden:
			if c.ID == at.ChannelID {
				return peer{}, &crawl.Error{Cause: ledger.CausePrivate, Message: name + ": the channel is closed to this account"}
			}
		}
	}
	return peer{}, &crawl.Error{Cause: ledger.CauseParse, Message: name + ": Telegram's answer does not hold the channel it names"}
}

// named puts the channel's name before an error's message.
func named(name string, err error) error {
	var failed *crawl.Error
	if errors.As(err, &failed) && failed.Cause != ledger.CauseLogin {
		e := *failed
		e.Message = name + ": " + e.Message
		return &e
	}
	return err
}

// History implements telegram.Account.
func (a *Account) History(ctx context.Context, channel int64, offset, add, limit int) (telegram.History, error) {
	return a.read(ctx, channel, methodHistory, func(ctx context.Context, api *tg.Client, p peer) (tg.MessagesMessagesClass, error) {
		return api.MessagesGetHistory(ctx, &tg.MessagesGetHistoryRequest{
			Peer:     &tg.InputPeerChannel{ChannelID: p.ID, AccessHash: p.Hash},
			OffsetID: offset, AddOffset: add, Limit: limit,
		})
	})
}

// Messages implements telegram.Account.
func (a *Account) Messages(ctx context.Context, channel int64, ids []int) (telegram.History, error) {
	return a.read(ctx, channel, methodMessages, func(ctx context.Context, api *tg.Client, p peer) (tg.MessagesMessagesClass, error) {
		in := make([]tg.InputMessageClass, 0, len(ids))
		for _, id := range ids {
			in = append(in, &tg.InputMessageID{ID: id})
		}
		return api.ChannelsGetMessages(ctx, &tg.ChannelsGetMessagesRequest{
			Channel: &tg.InputChannel{ChannelID: p.ID, AccessHash: p.Hash}, ID: in,
		})
	})
}

type readCall func(ctx context.Context, api *tg.Client, p peer) (tg.MessagesMessagesClass, error)

// read calls a method on a channel. Where the access hash is no good any more,
// the channel's name is looked up again, once.
func (a *Account) read(ctx context.Context, channel int64, method string, f readCall) (telegram.History, error) {
	s, err := a.session(ctx)
	if err != nil {
		return telegram.History{}, err
	}
	p, err := a.vault.peerByID(ctx, s.self.ID, channel)
	if err != nil {
		return telegram.History{}, err
	}
	if p.ID == 0 {
		return telegram.History{}, fmt.Errorf("%w: Telegram channel %d was never resolved by this account", ledger.ErrNotFound, channel)
	}
	try := func() (tg.MessagesMessagesClass, error) {
		return call(ctx, a, method, func(ctx context.Context, api *tg.Client) (tg.MessagesMessagesClass, error) {
			return f(ctx, api, p)
		})
	}
	answer, err := try()
	if tgerr.Is(err, "CHANNEL_INVALID") {
		fresh, again := a.lookUp(ctx, s, p.Asked)
		if again != nil {
			return telegram.History{}, again
		}
		if fresh.ID != channel {
			return telegram.History{}, &crawl.Error{Cause: ledger.CauseRenamed, Message: fmt.Sprintf(
				"%s now leads to another channel, %q (id %d), and the old one (id %d) cannot be read any more",
				p.Asked, fresh.Title, fresh.ID, channel)}
		}
		p = fresh
		answer, err = try()
	}
	if err != nil {
		return telegram.History{}, named(p.Asked, err)
	}
	return historyOf(answer, p)
}

func historyOf(answer tg.MessagesMessagesClass, p peer) (telegram.History, error) {
	modified, ok := answer.AsModified()
	if !ok {
		return telegram.History{}, &crawl.Error{Cause: ledger.CauseParse, Message: p.Asked + ": Telegram says that nothing has changed since an answer that was never given"}
	}
	var h telegram.History
	origins := make(map[int64]string) // usernames of the channels that messages come from
	for _, c := range modified.GetChats() {
		c, ok := c.(*tg.Channel)
		if !ok {
			continue
		}
		if name := mainName(c); name != "" {
			origins[c.ID] = name
		}
		if c.ID == p.ID && !c.Min {
			h.Channel = telegram.Channel{ID: c.ID, Name: mainName(c), Title: c.Title}
			h.Names = allNames(c)
		}
	}
	h.Messages = convert(modified.GetMessages(), p.ID, origins)
	h.Count = len(h.Messages)
	if counted, ok := answer.(interface{ GetCount() int }); ok {
		h.Count = counted.GetCount()
	}
	return h, nil
}

// mainName is the channel's first name that is in use.
func mainName(c *tg.Channel) string {
	if names := allNames(c); len(names) > 0 {
		return names[0]
	}
	return ""
}

func allNames(c *tg.Channel) []string {
	var names []string
	if c.Username != "" {
		names = append(names, c.Username)
	}
	for _, u := range c.Usernames {
		if u.Active && !strings.EqualFold(u.Username, c.Username) {
			names = append(names, u.Username)
		}
	}
	return names
}
