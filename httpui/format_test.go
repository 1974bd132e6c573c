package httpui

import (
	"reflect"
	"testing"
	"time"

	"vesti.nixg.ru/httpui/i18n"
	"vesti.nixg.ru/projections/search"
)

func TestSafeLink(t *testing.T) {
	for raw, want := range map[string]string{
		"https://example.org/a?b=c&d#e":          "https://example.org/a?b=c&d#e",
		" http://example.org ":                   "http://example.org",
		`https://n.example.org/"><img src=1>`:    "https://n.example.org/%22%3E%3Cimg%20src=1%3E",
		"https://пример.рф/путь":                 "https://xn--e1afmkfd.xn--p1ai/%D0%BF%D1%83%D1%82%D1%8C",
		"https://user:secret@example.org/":       "https://example.org/",
		"javascript:alert(1)":                    "",
		"JaVaScRiPt:alert(1)":                    "",
		"data:text/html,x":                       "",
		"//example.org/":                         "",
		"/posts/1":                               "",
		"https:///path":                          "",
		"https:example.org":                      "",
		"ftp://example.org/":                     "",
		"http://[::1":                            "",
		"":                                       "",
		"https://example.org/\x00":               "",
		"java\nscript:alert(1)":                  "",
		"vbscript:https://example.org/":          "",
		"https://example.org:99999999999/a b%zz": "",
	} {
		if got := safeLink(raw); got != want {
			t.Errorf("safeLink(%q) = %q, want %q", raw, got, want)
		}
	}
}

func TestTimesAsPeopleSayThem(t *testing.T) {
	words, err := i18n.Load()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 2, 6, 0, 0, 0, time.UTC)
	f := formats{now: func() time.Time { return now }, location: time.FixedZone("MSK", 3*3600)}
	en, ru := words.Match("en", ""), words.Match("ru", "")
	for _, tt := range []struct {
		ago    time.Duration
		en, ru string
	}{
		{0, "just now", "только что"},
		{59 * time.Second, "just now", "только что"},
		{21 * time.Minute, "21 min ago", "21 мин назад"},
		{23*time.Hour + 59*time.Minute, "23 h ago", "23 ч назад"},
		{24 * time.Hour, "1 day ago", "1 день назад"},
		{5 * 24 * time.Hour, "5 days ago", "5 дней назад"},
		{8 * 24 * time.Hour, "22 Feb", "22 фев"},
		{200 * 24 * time.Hour, "14 Aug 2025", "14 авг 2025"},
		{-30 * time.Second, "in a moment", "вот-вот"},
		{-3 * time.Hour, "in 3 h", "через 3 ч"},
		{-2 * 24 * time.Hour, "in 2 days", "через 2 дня"},
	} {
		for lang, want := range map[*i18n.Language]string{en: tt.en, ru: tt.ru} {
			if got, err := f.ago(lang, now.Add(-tt.ago)); err != nil || got != want {
				t.Errorf("%s ago in %s: %q, %v; want %q", tt.ago, lang.Tag, got, err, want)
			}
		}
	}
	if got, err := f.when(ru, now); err != nil || got != "2 мар 2026, 09:00" {
		t.Errorf("when: %q, %v", got, err)
	}
	for d, want := range map[time.Duration]string{
		90 * time.Microsecond: "90 µs", 420 * time.Millisecond: "420 ms", 1840 * time.Millisecond: "1.8 s", 125 * time.Second: "2 min 5 s",
	} {
		if got, err := took(en, d); err != nil || got != want {
			t.Errorf("took(%s) = %q, %v; want %q", d, got, err, want)
		}
	}
}

func TestTheTitleIsNotSaidTwice(t *testing.T) {
	type s = search.Segment
	const title = "A title that is long enough"
	for _, tt := range []struct {
		title     string
		in, wants []search.Segment
	}{
		{title, []s{{Text: title + " Text"}}, []s{{Text: "Text"}}},
		{title, []s{{Text: "Text, " + title}}, []s{{Text: "Text, " + title}}},
		{title, []s{{Text: title}}, []s{{Text: title}}},
		{title, []s{{Text: title + ", and more"}}, []s{{Text: title + ", and more"}}},
		{title, []s{{Text: title + " is out"}}, []s{{Text: title + " is out"}}},
		{"Kernel", []s{{Text: "Kernel Developers meet"}}, []s{{Text: "Kernel Developers meet"}}},
		{title, []s{{Text: title[:9]}, {Text: title[9:], Mark: true}, {Text: "\n"}, {Text: "Text", Mark: true}}, []s{{Text: "Text", Mark: true}}},
		{"", []s{{Text: "Text"}}, []s{{Text: "Text"}}},
		{title, nil, nil},
	} {
		if got := untitled([]s{{Text: tt.title}}, tt.in); !reflect.DeepEqual(got, tt.wants) {
			t.Errorf("%q over %v: %v, want %v", tt.title, tt.in, got, tt.wants)
		}
	}
	if got := paragraphs("Title", "Title\n\nText\n\n\n\nMore\nlines\n"); !reflect.DeepEqual(got, []string{"Text", "More\nlines"}) {
		t.Errorf("paragraphs %q", got)
	}
	if got := paragraphs("Title", "Title"); !reflect.DeepEqual(got, []string{"Title"}) {
		t.Errorf("paragraphs of a title alone %q", got)
	}
}
