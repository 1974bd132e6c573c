package telegram

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/ledger"
)

// The kinds of media in Message.Media and ledger.Item.Media. Both ways use the
// same words.
const (
	MediaPhoto       = "photo"
	MediaVideo       = "video"
	MediaVideoNote   = "video_note" // a round video message
	MediaAnimation   = "animation"
	MediaVoice       = "voice"
	MediaAudio       = "audio"
	MediaDocument    = "document"
	MediaSticker     = "sticker"
	MediaPoll        = "poll"
	MediaLocation    = "location"
	MediaContact     = "contact"
	MediaUnsupported = "unsupported" // something that this way cannot show
)

// Channel is a channel as Telegram knows it.
type Channel struct {
	ID    int64  // the same in MTProto and on preview pages; 0 for unknown
	Name  string // its username now, as its owner spells it; "" for none
	Title string
}

// Message is one message of a channel, or an album folded into one.
type Message struct {
	ID        int   // of an album, its first message's
	Members   []int // the ids of an album's messages, ascending; nil for a single message
	Album     int64 // what MTProto groups an album by; 0 for none
	Date      time.Time
	DateRaw   string
	Text      string // plain, with hidden links written out
	Author    string // the signature; "" for none
	Media     []string
	Views     *int64 // nil for unknown
	Reactions *int64 // of all kinds together; nil for unknown
	Rounded   bool   // Views or Reactions were rounded: "8.67M"
	Edited    bool
	Forward   string // URL of the message it was forwarded from, or a name where there is no link; "" for none
	Service   bool   // tells of the channel itself (a pinned message, a new photo): no post
}

// last is the highest id that the message takes.
func (m Message) last() int {
	if len(m.Members) > 0 {
		return m.Members[len(m.Members)-1]
	}
	return m.ID
}

// ids are all ids that the message takes.
func (m Message) ids() []int {
	if len(m.Members) > 0 {
		return m.Members
	}
	return []int{m.ID}
}

// fingerprint is the hash of what makes the message differ after an edit. Both
// ways give the same one, so that a switch revises nothing.
func (m Message) fingerprint() ledger.Hash {
	media := slices.Clone(m.Media)
	slices.Sort(media)
	return ledger.HashOf(ledger.Normalise(m.Text), strings.Join(media, " "))
}

// ItemKey is the identity of a message, by either way and whatever the channel
// is called now. Of an album, id is its first message's.
func ItemKey(channel int64, id int) ledger.ItemKey {
	return itemKey(strconv.FormatInt(channel, 10), id)
}

func itemKey(channel string, id int) ledger.ItemKey {
	return ledger.ItemKey("telegram\x1f" + channel + "\x1f" + strconv.Itoa(id))
}

// Link is the public address of a message, "" for a channel without a name.
func Link(name string, id int) string {
	if name == "" {
		return ""
	}
	return "https://t.me/" + name + "/" + strconv.Itoa(id)
}

// titleLimit bounds a title, which is a message's first line, in characters.
const titleLimit = 120

// item makes what the ledger gets of the message.
func (m Message) item(src crawl.Source, ch Channel, lane ledger.Lane, from ledger.TextOrigin) ledger.Item {
	text := ledger.CutText(m.Text, ledger.MaxText)
	it := ledger.Item{
		Source:       src.Slug,
		Key:          ItemKey(ch.ID, m.ID),
		Fingerprint:  m.fingerprint(),
		URL:          Link(ch.Name, m.ID),
		CanonicalURL: canonical(Link(ch.Name, m.ID)),
		Title:        firstLine(text),
		Author:       m.Author,
		Published:    m.Date,
		PublishedRaw: m.DateRaw,
		Text:         text,
		TextFrom:     from,
		Truncated:    len(text) < len(m.Text),
		Lang:         src.Lang,
		Direction:    src.Direction,
		IsOwn:        src.IsOwn,
		Lane:         lane,
		Measures:     ledger.Measures{Views: m.Views, Reactions: m.Reactions, Rounded: m.Rounded},
		ForwardOf:    m.Forward,
		Media:        m.Media,
		ItemID:       strconv.Itoa(m.ID),
	}
	if strings.HasPrefix(m.Forward, "https://t.me/") {
		it.CanonicalURL = canonical(m.Forward) // the original and its forwards are linked, whatever their texts
	}
	return it
}

// canonical is a t.me address as it is compared: names there have no case.
func canonical(link string) string { return strings.ToLower(link) }

// firstLine is the first line of text that is not blank, cut between words.
func firstLine(text string) string {
	line := ""
	for l := range strings.Lines(text) {
		if line = strings.TrimSpace(l); line != "" {
			break
		}
	}
	r := []rune(line)
	if len(r) <= titleLimit {
		return line
	}
	cut := string(r[:titleLimit])
	if i := strings.LastIndexByte(cut, ' '); i > len(cut)/2 {
		cut = cut[:i]
	}
	return cut + "…"
}

// fold makes one message of each album. Messages are in ascending order.
func fold(messages []Message) []Message {
	var out []Message
	for _, m := range messages {
		if n := len(out) - 1; n >= 0 && m.Album != 0 && out[n].Album == m.Album {
			out[n] = join(out[n], m)
			continue
		}
		if m.Album != 0 && m.Members == nil {
			m.Members = []int{m.ID}
		}
		out = append(out, m)
	}
	return out
}

// join adds a message to the album before it. Views and reactions count each
// reader once for every member, so the largest stands for all.
func join(album, m Message) Message {
	album.Members = append(slices.Clone(album.Members), m.ID)
	album.Media = append(slices.Clone(album.Media), m.Media...)
	switch {
	case album.Text == "":
		album.Text = m.Text
	case m.Text != "" && !slices.Contains(strings.Split(album.Text, "\n\n"), m.Text):
		album.Text += "\n\n" + m.Text
	}
	album.Views = larger(album.Views, m.Views)
	album.Reactions = larger(album.Reactions, m.Reactions)
	album.Edited = album.Edited || m.Edited
	if album.Forward == "" {
		album.Forward = m.Forward
	}
	if album.Author == "" {
		album.Author = m.Author
	}
	return album
}

func larger(a, b *int64) *int64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}
