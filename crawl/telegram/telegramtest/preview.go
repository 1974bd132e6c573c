// Package telegramtest has a server of preview pages for tests. Only tests
// import it.
package telegramtest

import (
	"encoding/base64"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"vesti.nixg.ru/crawl/telegram"
)

// Channel is what the server shows of one channel.
type Channel struct {
	ID        int64
	Name      string // as the blocks spell it
	Title     string
	Messages  []telegram.Message // ascending; albums folded
	NoPreview bool               // redirects to the landing page
	NoID      bool               // blocks without data-view
}

// Preview serves preview pages over loopback, 20 messages a page, without the
// link rel=prev.
type Preview struct {
	URL string

	mu       sync.Mutex
	channels map[string]*Channel
	landing  map[string]string // what t.me/<name> shows in place of a channel's landing page
	fail     func(r *http.Request) int
	requests []Request
}

// Request is one that the server got.
type Request struct {
	Path string // with its query
	At   time.Time
}

// pageSize is what Telegram shows.
const pageSize = 20

// NewPreview starts a server that ends with the test.
func NewPreview(t testing.TB) *Preview {
	t.Helper()
	p := &Preview{channels: map[string]*Channel{}, landing: map[string]string{}}
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	p.URL = s.URL
	return p
}

// Set makes the name lead to c.
func (p *Preview) Set(name string, c Channel) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.Messages = slices.Clone(c.Messages)
	p.channels[strings.ToLower(name)] = &c
}

// Land makes the name lead to a landing page with this body.
func (p *Preview) Land(name, body string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.channels, strings.ToLower(name))
	p.landing[strings.ToLower(name)] = body
}

// Fail answers requests with the status that f gives, 0 for as usual; nil for
// all as usual.
func (p *Preview) Fail(f func(r *http.Request) int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fail = f
}

// Requests returns what was asked since the last call.
func (p *Preview) Requests() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.requests
	p.requests = nil
	return r
}

// ServeHTTP implements http.Handler.
func (p *Preview) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, Request{Path: r.URL.RequestURI(), At: time.Now()})
	if p.fail != nil {
		if status := p.fail(r); status != 0 {
			if status == http.StatusTooManyRequests {
				w.Header().Set("Retry-After", "120")
			}
			w.WriteHeader(status)
			return
		}
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	name, preview := strings.CutPrefix(r.URL.Path, "/s/")
	name = strings.ToLower(strings.TrimPrefix(name, "/"))
	c := p.channels[name]
	switch {
	case preview && (c == nil || c.NoPreview):
		w.Header().Set("Location", "/"+name)
		w.WriteHeader(http.StatusFound)
	case preview:
		before, _ := strconv.Atoi(r.URL.Query().Get("before"))
		fmt.Fprint(w, c.page(before))
	case c != nil:
		fmt.Fprintf(w, landingPage, html.EscapeString(c.Title))
	default:
		fmt.Fprint(w, p.landing[name])
	}
}

const landingPage = `<!DOCTYPE html><html><body><div class="tgme_page"><div class="tgme_page_title" dir="auto"><span>%s</span></div>` +
	`<div class="tgme_page_extra">1 234 subscribers</div><div class="tgme_page_action"></div></div></body></html>`

// VacantPage is the landing page of a name that nobody has.
const VacantPage = `<!DOCTYPE html><html><body><div class="tgme_page"><div class="tgme_page_icon"></div>` +
	`<div class="tgme_page_description">contact <a class="tgme_username_link">@somebody</a> right away</div></div></body></html>`

// page is the page of up to 20 messages below before; 0 for the newest.
func (c *Channel) page(before int) string {
	end := len(c.Messages)
	if before > 0 {
		end, _ = slices.BinarySearchFunc(c.Messages, before, func(m telegram.Message, id int) int { return m.ID - id })
	}
	start, count := end, 0
	for start > 0 && count < pageSize {
		start--
		count += max(1, len(c.Messages[start].Members))
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<!DOCTYPE html><html><head><meta charset="utf-8"><meta property="og:title" content="%s"></head><body>`+
		`<main class="tgme_main"><section class="tgme_channel_history js-message_history">`, html.EscapeString(c.Title))
	if start == end {
		b.WriteString(`<div class="tme_no_messages_found">No posts found</div>`)
	}
	for _, m := range c.Messages[start:end] {
		c.block(&b, m)
	}
	b.WriteString(`</section></main></body></html>`)
	return b.String()
}

func (c *Channel) block(b *strings.Builder, m telegram.Message) {
	service, view := "", ""
	if m.Service {
		service = " service_message"
	}
	if !c.NoID {
		view = fmt.Sprintf(` data-view="%s"`, base64.RawURLEncoding.EncodeToString(
			fmt.Appendf(nil, `{"c":-%d,"p":%d,"t":1,"h":"00"}`, c.ID, m.ID)))
	}
	link := fmt.Sprintf("https://t.me/%s/%d", c.Name, m.ID)
	fmt.Fprintf(b, `<div class="tgme_widget_message_wrap"><div class="tgme_widget_message js-widget_message%s" data-post="%s/%d"%s>`,
		service, c.Name, m.ID, view)
	if strings.HasPrefix(m.Forward, "https://") {
		fmt.Fprintf(b, `<div class="tgme_widget_message_forwarded_from">Forwarded from <a class="tgme_widget_message_forwarded_from_name" href="%s">it</a></div>`, m.Forward)
	}
	c.media(b, m)
	if m.Text != "" {
		fmt.Fprintf(b, `<div class="tgme_widget_message_text js-message_text" dir="auto">%s</div>`, markup(m.Text))
	}
	if m.Reactions != nil {
		fmt.Fprintf(b, `<div class="tgme_widget_message_reactions"><span class="tgme_reaction"><i class="emoji"><b>👍</b></i>%s</span></div>`, round(*m.Reactions))
	}
	b.WriteString(`<div class="tgme_widget_message_footer"><div class="tgme_widget_message_info">`)
	if m.Views != nil {
		fmt.Fprintf(b, `<span class="tgme_widget_message_views">%s</span>`, round(*m.Views))
	}
	edited := ""
	if m.Edited {
		edited = "edited &nbsp;"
	}
	author := ""
	if m.Author != "" {
		author = `<span class="tgme_widget_message_from_author" dir="auto">` + html.EscapeString(m.Author) + `</span>,&nbsp;`
	}
	fmt.Fprintf(b, `<span class="tgme_widget_message_meta">%s%s<a class="tgme_widget_message_date" href="%s"><time datetime="%s" class="time"></time></a></span></div></div></div></div>`,
		edited, author, link, m.Date.UTC().Format("2006-01-02T15:04:05+00:00"))
}

func (c *Channel) media(b *strings.Builder, m telegram.Message) {
	if len(m.Members) > 0 {
		b.WriteString(`<div class="tgme_widget_message_grouped_wrap js-message_grouped_wrap">`)
		defer b.WriteString(`</div>`)
	}
	for i, kind := range m.Media {
		class, suffix, id := "tgme_widget_message_photo_wrap", "", m.ID
		if kind == telegram.MediaVideo {
			class = "tgme_widget_message_video_player"
		}
		if len(m.Members) > 0 {
			class, suffix, id = class+" grouped_media_wrap", "?single", m.Members[min(i, len(m.Members)-1)]
		}
		fmt.Fprintf(b, `<a class="%s" href="https://t.me/%s/%d%s"></a>`, class, c.Name, id, suffix)
	}
}

// hiddenLink is a link that WithLink has written out.
var hiddenLink = regexp.MustCompile(`(\S+) \((https?://[^)]+)\)`)

// markup is the HTML of a message's text.
func markup(text string) string {
	s := html.EscapeString(text)
	s = hiddenLink.ReplaceAllString(s, `<a href="$2">$1</a>`)
	return strings.ReplaceAll(s, "\n", "<br/>")
}

// round writes a count as previews do: three digits and a unit.
func round(n int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{1e6, "M"}, {1e3, "K"}} {
		if n >= unit.size {
			return strconv.FormatFloat(float64(n)/float64(unit.size), 'g', 3, 64) + unit.name
		}
	}
	return strconv.FormatInt(n, 10)
}
