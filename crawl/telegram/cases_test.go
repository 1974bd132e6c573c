package telegram_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/telegram"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/ledgertest/cases"
)

func TestPublicCases(t *testing.T) {
	cases.Run(t, cases.Telegram, func(t *testing.T, c cases.Case) error {
		switch c.InputType(t) {
		case "telegram":
			return checkPage(t, c)
		case "inline":
			return checkNames(t, c)
		default:
			t.Fatalf("case %s: no check for input %q", c.ID, c.InputType(t))
			return nil
		}
	})
}

type pageExpect struct {
	Entries       *int
	Items         []itemExpect
	SourceStatus  string   `json:"source_status"`
	ErrorMentions []string `json:"error_mentions"`
}

type itemExpect struct {
	N            int
	Link         string
	Published    *time.Time
	TextEquals   *string    `json:"text_equals"`
	TextContains []string   `json:"text_contains"`
	TextLacks    []string   `json:"text_not_contains"`
	Separate     [][]string `json:"text_lines_separate"`
}

// checkPage crawls the case's page and looks at what came into the ledger.
func checkPage(t *testing.T, c cases.Case) error {
	var in struct {
		File    string
		Channel string
		Now     time.Time
	}
	c.Decode(t, c.Input, &in)
	var want pageExpect
	c.Decode(t, c.Expect, &want)
	body := c.File(t, in.File)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery != "" {
			fmt.Fprint(w, `<section class="tgme_channel_history"><div class="tme_no_messages_found"></div></section>`)
			return
		}
		w.Write(body)
	}))
	defer server.Close()
	w := newWorld(t, func(o *telegram.Options) { o.PreviewURL = server.URL })
	w.source.Channel, w.now = in.Channel, in.Now
	rep, err := w.crawl()
	var bad []error
	miss := func(format string, args ...any) { bad = append(bad, fmt.Errorf(format, args...)) }
	if want.Entries != nil && rep.Entries != *want.Entries {
		miss("%d entries, want %d", rep.Entries, *want.Entries)
	}
	if want.SourceStatus == "" && err != nil {
		miss("run failed: %v", err)
	}
	if want.SourceStatus == "permanent_error" {
		var failed *crawl.Error
		if !errors.As(err, &failed) || failed.Cause != ledger.CauseNoPreview {
			miss("error %v, want cause %s", err, ledger.CauseNoPreview)
		}
	}
	for _, m := range want.ErrorMentions {
		if err == nil || !strings.Contains(err.Error(), m) {
			miss("error %v does not mention %q", err, m)
		}
	}
	for _, i := range want.Items {
		bad = append(bad, i.check(t, w)...)
	}
	return errors.Join(bad...)
}

func (i itemExpect) check(t *testing.T, w *world) []error {
	t.Helper()
	var bad []error
	miss := func(format string, args ...any) {
		bad = append(bad, fmt.Errorf("item %d: "+format, append([]any{i.N}, args...)...))
	}
	id, err := strconv.Atoi(i.Link[strings.LastIndexByte(i.Link, '/')+1:])
	if err != nil {
		t.Fatal(err)
	}
	key := ledger.ItemKey("telegram\x1f@" + w.source.Channel + "\x1f" + strconv.Itoa(id))
	known, err := w.log.KnownItems(t.Context(), []ledger.ItemKey{key})
	if err != nil {
		t.Fatal(err)
	}
	if known[0].Post == 0 {
		return []error{fmt.Errorf("item %d: not in the ledger", i.N)}
	}
	p, err := w.log.Post(t.Context(), known[0].Post)
	if err != nil {
		t.Fatal(err)
	}
	it := p.Item
	flat := strings.Join(strings.Fields(it.Text), " ")
	if it.URL != i.Link {
		miss("link %q, want %q", it.URL, i.Link)
	}
	if i.Published != nil && !it.Published.Equal(*i.Published) {
		miss("published %s, want %s", it.Published, i.Published)
	}
	if i.TextEquals != nil && it.Text != *i.TextEquals {
		miss("text %q, want %q", it.Text, *i.TextEquals)
	}
	for _, s := range i.TextContains {
		if !strings.Contains(flat, s) {
			miss("text %q lacks %q", it.Text, s)
		}
	}
	for _, s := range i.TextLacks {
		if strings.Contains(flat, s) {
			miss("text %q holds %q", it.Text, s)
		}
	}
	for _, pair := range i.Separate {
		for line := range strings.Lines(it.Text) {
			if strings.Contains(line, pair[0]) && strings.Contains(line, pair[1]) {
				miss("%q and %q stand on one line", pair[0], pair[1])
			}
		}
	}
	return bad
}

func checkNames(t *testing.T, c cases.Case) error {
	var in struct{ Channels []string }
	c.Decode(t, c.Input, &in)
	var want struct{ Channel string }
	c.Decode(t, c.Expect, &want)
	for _, s := range in.Channels {
		got, err := crawl.ChannelName(s)
		if err != nil {
			return err
		}
		if got != want.Channel {
			return fmt.Errorf("%q is channel %q, want %q", s, got, want.Channel)
		}
	}
	return nil
}
