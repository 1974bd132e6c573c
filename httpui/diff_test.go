package httpui

import (
	"fmt"
	"strings"
	"testing"
)

func TestChangesAddUp(t *testing.T) {
	long := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "w%d ", i)
		}
		return b.String()
	}
	d := newDiffer()
	for _, tt := range []struct{ before, after string }{
		{"", "new"},
		{"gone", ""},
		{"one two three", "one 2 three four"},
		{"Ядро вышло в воскресенье.", "Ядро вышло в понедельник, в полдень."},
		{"a\n\nb\u200b🦀", "a\nb\u200b🦀!"},
		{"broken \xff bytes", "broken bytes"},
		{long(14_000), long(14_100)[300:]},
	} {
		var before, after strings.Builder
		for _, c := range d.changes(tt.before, tt.after) {
			if c.Kind != "ins" {
				before.WriteString(c.Text)
			}
			if c.Kind != "del" {
				after.WriteString(c.Text)
			}
		}
		if before.String() != tt.before || after.String() != tt.after {
			t.Errorf("%.40q to %.40q: the pieces make %.40q and %.40q", tt.before, tt.after, before.String(), after.String())
		}
	}
	if c := d.changes("same", "same"); c != nil {
		t.Errorf("equal texts differ by %v", c)
	}
}

func TestMoreWordsThanLieBelowTheSurrogates(t *testing.T) {
	words := make([]string, 60_000)
	for i := range words {
		words[i] = fmt.Sprintf("%d ", i)
	}
	w := wordRunes{index: map[string]rune{}}
	if got := w.text(string(w.runes(words))); got != strings.Join(words, "") {
		t.Error("60,000 words do not come back")
	}
}
