package telegram

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const historyHead = `<section class="tgme_channel_history">`

// block is one message of a page; inner stands between its head and its date.
func block(post, inner string) string {
	return `<div class="tgme_widget_message" data-post="` + post + `">` + inner +
		`<a class="tgme_widget_message_date"><time datetime="2026-05-20T12:00:00+00:00"></time></a></div>`
}

func said(text string) string { return `<div class="js-message_text">` + text + `</div>` }

func TestBlocksThatAreNoMessages(t *testing.T) {
	for _, post := range []string{
		"", "port", "port/", "port/x", "port/0", "port/-3", "port/1.5", "port/2147483648", "port/99999999999999999999",
		"/7", "../7", "no name/7", `port"onload/7`,
	} {
		p, err := parsePage([]byte(historyHead + block("port/5", said("да")) + block(post, said("нет"))))
		if err != nil || len(p.Messages) != 1 || p.Broken != 1 || p.Strange != "" {
			t.Errorf("data-post %q: %+v, %v; want one message and a broken block", post, p, err)
		}
	}
}

// A member's id far from its album's would carry the progress away.
func TestAlbumMembersOfOtherAlbums(t *testing.T) {
	inner := `<div class="tgme_widget_message_grouped_wrap">`
	for _, id := range []string{"5", "6", "4", "2147483647", "99999999999999999999", "x"} {
		inner += `<a class="tgme_widget_message_photo_wrap" href="https://t.me/port/` + id + `?single"></a>`
	}
	p, err := parsePage([]byte(historyHead + block("port/5", inner+`</div>`)))
	if err != nil || len(p.Messages) != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	if m := p.Messages[0]; m.last() != 6 || len(m.Members) != 2 {
		t.Errorf("members %v, want 5 and 6", m.Members)
	}
}

func TestTextsOfAllScripts(t *testing.T) {
	for in, want := range map[string]string{
		"🚢 груз <i class=\"emoji\" style=\"x\"><b>⚓️</b></i> в порту":    "🚢 груз ⚓️ в порту",
		`<tg-emoji emoji-id="5">👩‍👩‍👧</tg-emoji> семья`:                  "👩‍👩‍👧 семья",
		"مرحبا بالعالم <b>שלום</b>":                                      "مرحبا بالعالم שלום",
		"a &amp;lt;b&amp;gt; &lt;script&gt;alert(1)&lt;/script&gt;":      "a &lt;b&gt; <script>alert(1)</script>",
		`<a href="javascript:alert(1)">жми</a>`:                          "жми",
		`<tg-spoiler><span class="s">тайна</span></tg-spoiler> &nbsp;`:   "тайна",
		"第一行<br/><br>第二行":                                                "第一行\n\n第二行",
		`<blockquote>цитата<br>в две строки</blockquote>ответ`:           "цитата\nв две строки\nответ",
		`<pre><code class="language-go">x := 1&#10;y := 2</code></pre>.`: "x := 1\ny := 2\n.",
	} {
		p, err := parsePage([]byte(historyHead + block("port/5", said(in))))
		if err != nil || len(p.Messages) != 1 {
			t.Fatalf("%q: %+v, %v", in, p, err)
		}
		if got := p.Messages[0].Text; got != want {
			t.Errorf("%q: text %q, want %q", in, got, want)
		}
	}
}

// A page whose classes have changed is neither the end of a history nor a
// history of empty messages.
func TestChangedMarkup(t *testing.T) {
	page := historyHead
	for id := 1; id <= 6; id++ {
		page += block(fmt.Sprintf("port/%d", id), said("сообщение"))
	}
	for name, tt := range map[string]struct{ body, says string }{
		"messages":       {strings.ReplaceAll(page, "tgme_widget_message", "msg"), "neither messages nor"},
		"addresses":      {strings.ReplaceAll(page, `data-post="port/`, `data-post="`), "none of its 6 messages can be read"},
		"dates":          {strings.ReplaceAll(page, "datetime", "data-time"), "has a date"},
		"texts":          {strings.ReplaceAll(page, "js-message_text", "js-text"), "none of its 6 posts"},
		"nothing":        {page, ""},
		"empty, noted":   {historyHead + `<div class="tme_no_messages_found">No posts found</div>`, ""},
		"empty, unnoted": {historyHead, ""},
		"few and bare":   {historyHead + block("port/1", "") + block("port/2", ""), ""},
	} {
		p, err := parsePage([]byte(tt.body))
		if err != nil || p.Kind != pageHistory {
			t.Fatalf("%s: %+v, %v", name, p, err)
		}
		if p.Strange == "" != (tt.says == "") || !strings.Contains(p.Strange, tt.says) {
			t.Errorf("%s: %q, want %q", name, p.Strange, tt.says)
		}
	}
}

func TestPagesThatAreNotTelegrams(t *testing.T) {
	for name, body := range map[string]string{
		"login wall": `<html><body><form action="/login"><input type=password></form></body></html>`,
		"cookies":    `<html><body><h1>Before you continue</h1><button>Accept all cookies</button></body></html>`,
		"binary":     "\x00\x01\x02\xff\xfe", "json": `{"ok":false}`, "cut": "<html><body><sec",
	} {
		if p, err := parsePage([]byte(body)); err == nil && (p.Kind != pageUnknown || len(p.Messages) > 0) {
			t.Errorf("%s: %+v", name, p)
		}
	}
	for name, body := range map[string]string{
		"blank": " \n", "nested": historyHead + strings.Repeat(`<div class="js-message_text">`, 100_000),
	} {
		if _, err := parsePage([]byte(body)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Pages of megabytes that are all one thing take no more than seconds.
func TestHugePages(t *testing.T) {
	const n = 50_000
	repeat := func(f func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(f(i))
		}
		return b.String()
	}
	for name, body := range map[string]string{
		"messages":  repeat(func(i int) string { return block(fmt.Sprintf("port/%d", i+1), "") }),
		"texts":     block("port/1", repeat(func(i int) string { return said(fmt.Sprint(i)) })),
		"links":     block("port/1", said(repeat(func(int) string { return `<a href="https://example.org">я</a>` }))),
		"lines":     block("port/1", said(repeat(func(int) string { return "<br>\u00a0" }))),
		"reactions": block("port/1", repeat(func(int) string { return `<span class="tgme_reaction"><i></i>8.67M</span>` })),
	} {
		start := time.Now()
		if _, err := parsePage([]byte(historyHead + body)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%s: took %s", name, took)
		}
	}
}
