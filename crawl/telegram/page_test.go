package telegram

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vesti.nixg.ru/ledger/ledgertest/cases"
)

func TestSavedHistoryPages(t *testing.T) {
	dir := cases.Corpora(t, "telegram-pages")
	for _, tt := range []struct {
		file    string
		channel Channel
		first   int
		last    int
		count   int
		edited  int
	}{
		{"sherlock-channel_feed.html", Channel{1006503122, "durov", "Pavel Durov"}, 519, 539, 20, 0},
		{"feedwatch-tg_web_sample.html", Channel{1935988068, "solokumi", "Kumar & Solo"}, 419, 424, 6, 4},
	} {
		t.Run(tt.file, func(t *testing.T) {
			p := parseFile(t, filepath.Join(dir, tt.file))
			if p.Kind != pageHistory || p.Channel != tt.channel || p.Broken != 0 {
				t.Fatalf("kind %d, channel %+v, broken %d; want history of %+v", p.Kind, p.Channel, p.Broken, tt.channel)
			}
			if len(p.Messages) != tt.count || p.Messages[0].ID != tt.first || p.Messages[tt.count-1].ID != tt.last {
				t.Fatalf("%d messages; want %d from %d to %d", len(p.Messages), tt.count, tt.first, tt.last)
			}
			edited := 0
			for _, m := range p.Messages {
				if m.Date.IsZero() || m.Views == nil || *m.Views < 1000 || !m.Rounded || m.Reactions == nil || *m.Reactions == 0 {
					t.Errorf("message %d is incomplete: %+v", m.ID, m)
				}
				if m.Text == "" && len(m.Media) == 0 {
					t.Errorf("message %d has neither text nor media", m.ID)
				}
				for _, notice := range []string{"not supported", "VIEW IN TELEGRAM", "Please open Telegram"} {
					if strings.Contains(m.Text, notice) {
						t.Errorf("message %d: text holds the notice %q", m.ID, notice)
					}
				}
				if slices.Contains(m.Media, MediaUnsupported) {
					t.Errorf("message %d: taken for one that the preview cannot show", m.ID)
				}
				if m.Edited {
					edited++
				}
			}
			if edited != tt.edited {
				t.Errorf("%d edited messages, want %d", edited, tt.edited)
			}
		})
	}
}

func TestSavedMessageInDetail(t *testing.T) {
	p := parseFile(t, filepath.Join(cases.Corpora(t, "telegram-pages"), "sherlock-channel_feed.html"))
	m := p.Messages[0]
	if want := time.Date(2026, 5, 20, 15, 38, 10, 0, time.UTC); !m.Date.Equal(want) {
		t.Errorf("date %s, want %s", m.Date, want)
	}
	if *m.Views != 8_670_000 || *m.Reactions != 2490+23400+7760+5990+419+112 || m.Author != "Pavel Durov" {
		t.Errorf("views %d, reactions %d, author %q", *m.Views, *m.Reactions, m.Author)
	}
	if !slices.Equal(m.Media, []string{MediaVideo}) {
		t.Errorf("media %v", m.Media)
	}
	if !strings.HasPrefix(m.Text, "🤖 Your Telegram inbox can now run itself.\n\nAssign a bot") {
		t.Errorf("text begins %q", m.Text[:60])
	}
	if !strings.HasSuffix(m.Text, "⚙️ Start building (https://core.telegram.org/bots/features#secretary-bots)!") {
		t.Errorf("text ends without its hidden link: %q", m.Text)
	}
}

func TestSavedLandingPages(t *testing.T) {
	dir := cases.Corpora(t, "telegram-pages")
	for file, want := range map[string]pageKind{
		"sherlock-tme_channel.html": pageChannel,
		"sherlock-tme_group.html":   pageGroup,
		"sherlock-tme_user.html":    pagePerson,
		"sherlock-tme_bot.html":     pagePerson,
		"sherlock-tme_free.html":    pageVacant,
	} {
		if p := parseFile(t, filepath.Join(dir, file)); p.Kind != want {
			t.Errorf("%s: kind %d, want %d", file, p.Kind, want)
		}
	}
}

func TestSyntheticBlocks(t *testing.T) {
	p := parseFile(t, filepath.Join("testdata", "blocks.html"))
	if p.Broken != 1 {
		t.Errorf("%d broken blocks, want the one without an id", p.Broken)
	}
	byID := map[int]Message{}
	for _, m := range p.Messages {
		byID[m.ID] = m
	}
	album := byID[10]
	if !slices.Equal(album.Members, []int{10, 11, 12}) || !slices.Equal(album.Media, []string{MediaPhoto, MediaPhoto, MediaVideo}) {
		t.Errorf("album: members %v, media %v", album.Members, album.Media)
	}
	if album.Text != "Три снимка\nиз порта" {
		t.Errorf("album: text %q (its caption stands in a copy of itself)", album.Text)
	}
	for id, want := range map[int]string{
		13: "Ответ по существу.",
		14: "Переслано целиком.",
		15: "Чужие слова.",
		16: "Когда открывать порт?\n- Весной\n- Летом",
		18: "",
		19: "",
		20: "#порт @durov https://пример.рф/путь сайт (https://example.org/a?b=1&c=2)\nцитата\nкод",
	} {
		if got := byID[id].Text; got != want {
			t.Errorf("message %d: text %q, want %q", id, got, want)
		}
	}
	if got := byID[14].Forward; got != "https://t.me/other_channel/123" {
		t.Errorf("forward: %q", got)
	}
	if got := byID[15].Forward; got != "Somebody Hidden" {
		t.Errorf("hidden forward: %q", got)
	}
	if !byID[17].Service || byID[16].Service {
		t.Errorf("service messages are not told apart")
	}
	if m := byID[18]; !slices.Equal(m.Media, []string{MediaPhoto}) || m.Views != nil || m.Reactions != nil {
		t.Errorf("picture without caption: %+v", m)
	}
	if m := byID[19]; !slices.Equal(m.Media, []string{MediaUnsupported}) {
		t.Errorf("what previews do not show: media %v", m.Media)
	}
	if !slices.Equal(byID[21].Media, []string{MediaAudio}) || !slices.Equal(byID[22].Media, []string{MediaVoice}) {
		t.Errorf("audio %v, voice %v", byID[21].Media, byID[22].Media)
	}
}

func TestParseCount(t *testing.T) {
	for in, want := range map[string]int64{"512": 512, "1.2K": 1200, "826K": 826_000, "8.67M": 8_670_000, "1.1B": 1_100_000_000, "4 138": 4138} {
		if n, _ := parseCount(in); n == nil || *n != want {
			t.Errorf("parseCount(%q) = %v, want %d", in, n, want)
		}
	}
	for _, in := range []string{"", "K", "-3", "many", "1e300M", "1e3", "NaN", "Inf", "0x10", "1.2.3", ".", "٣"} {
		if n, _ := parseCount(in); n != nil {
			t.Errorf("parseCount(%q) = %d, want nothing", in, *n)
		}
	}
}

func FuzzParsePage(f *testing.F) {
	b, err := os.ReadFile(filepath.Join("testdata", "blocks.html"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte("<section class=tgme_channel_history><div class=tgme_widget_message data-post=a/1 data-view=e30>"))
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := parsePage(body)
		if err != nil {
			return
		}
		for i, m := range p.Messages {
			if m.ID <= 0 || i > 0 && m.ID < p.Messages[i-1].ID || m.last() < m.ID {
				t.Fatalf("message %d of %d: ids %v after %d", i, len(p.Messages), m.ids(), p.Messages[max(i-1, 0)].ID)
			}
		}
	})
}

func parseFile(t *testing.T, file string) page {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p, err := parsePage(b)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
