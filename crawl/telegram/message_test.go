package telegram

import (
	"slices"
	"strings"
	"testing"
)

func TestFold(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	got := fold([]Message{
		{ID: 1, Text: "до"},
		{ID: 2, Album: 7, Media: []string{MediaPhoto}, Views: n(900), Reactions: n(5)},
		{ID: 3, Album: 7, Media: []string{MediaVideo}, Text: "подпись", Views: n(1000), Author: "Вахта"},
		{ID: 4, Album: 7, Media: []string{MediaPhoto}, Text: "подпись", Views: n(950), Edited: true},
		{ID: 5, Album: 7, Media: []string{MediaPhoto}, Text: "другая", Reactions: n(2), Forward: "https://t.me/other/1"},
		{ID: 6, Album: 8, Text: "сама по себе"},
		{ID: 7, Text: "после"},
	})
	if len(got) != 4 {
		t.Fatalf("%d messages, want 4", len(got))
	}
	a := got[1]
	if a.ID != 2 || !slices.Equal(a.Members, []int{2, 3, 4, 5}) || len(a.Media) != 4 {
		t.Errorf("album %d of %v with %v", a.ID, a.Members, a.Media)
	}
	if a.Text != "подпись\n\nдругая" {
		t.Errorf("text %q, want each caption once, in order", a.Text)
	}
	if *a.Views != 1000 || *a.Reactions != 5 {
		t.Errorf("%d views, %d reactions: want the largest of each, not the sum", *a.Views, *a.Reactions)
	}
	if a.Author != "Вахта" || !a.Edited || a.Forward != "https://t.me/other/1" {
		t.Errorf("album %+v", a)
	}
	if got[2].ID != 6 || !slices.Equal(got[2].ids(), []int{6}) || got[3].Text != "после" {
		t.Errorf("after the album: %+v", got[2:])
	}
}

func TestFirstLine(t *testing.T) {
	long := strings.Repeat("слово ", 40)
	for in, want := range map[string]string{
		"": "", "\n \nВторая\nтретья": "Вторая", "🚢": "🚢",
		long:                     strings.TrimRight(string([]rune(long)[:119]), " ") + "…",
		strings.Repeat("я", 300): strings.Repeat("я", titleLimit) + "…",
	} {
		if got := firstLine(in); got != want {
			t.Errorf("firstLine(%q) = %q, want %q", in, got, want)
		}
	}
}
