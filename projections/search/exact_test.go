package search_test

import (
	"fmt"
	"testing"

	"vesti.nixg.ru/projections/search"
)

// TestTypedFormFirst: of posts that are as good by their words, those with the
// words as they were typed come first, though others are newer.
func TestTypedFormFirst(t *testing.T) {
	d := open(t)
	d.add(t,
		doc{ID: "Смирнов", Text: "Глава комитета Смирнов ответил на вопросы о бюджете города."},
		doc{ID: "Смирнова", Text: "Ответ Смирнова на вопросы о бюджете города уже есть."},
		doc{ID: "Смирнову", Text: "Задали Смирнову вопросы о бюджете нашего города вчера."},
		doc{ID: "Смирновым", Text: "Беседа со Смирновым, вопросы о бюджете города, итоги."},
		doc{ID: "new", Text: "A new scheduler for the kernel of the system arrived."},
		doc{ID: "news", Text: "The news of the kernel and of the system arrived."},
		doc{ID: "title", Title: "Кузнецов", Text: "О назначении: Кузнецова это банк."},
		doc{ID: "text", Title: "Кузнецову", Text: "О назначении: Кузнецов это банк."},
	)
	for _, c := range []struct{ query, want string }{
		{"Смирнов", "Смирнов"},
		{"смирнова", "Смирнова"},
		{"СМИРНОВУ", "Смирнову"},
		{`"вопросы о бюджете" Смирновым`, "Смирновым"},
		{"new", "new"},
		{"news", "news"},
		{"title:Кузнецов", "title"},
		{"title:Кузнецову", "text"},
		{"Смирнов -Кузнецов", "Смирнов"},
	} {
		if got := d.find(t, c.query); len(got) == 0 || got[0] != c.want {
			t.Errorf("%s: %v, want %s first", c.query, got, c.want)
		}
	}
}

// TestTypedFormAcrossPages: however a list is cut into pages, each hit is on one
// of them, and in the same order.
func TestTypedFormAcrossPages(t *testing.T) {
	d := open(t)
	var docs []doc
	for i := range 150 {
		form := "выборам"
		if i%7 == 0 {
			form = "выборы"
		}
		docs = append(docs, doc{ID: fmt.Sprint(i), Text: fmt.Sprintf("К новости номер %d относятся %s в городе.", i, form)})
	}
	d.add(t, docs...)
	whole := d.find(t, "выборы")
	var paged []string
	for offset := 0; offset < len(whole); offset += 40 {
		r, err := d.search.Search(t.Context(), search.Request{Query: "выборы", Limit: 40, Offset: offset})
		if err != nil {
			t.Fatal(err)
		}
		paged = append(paged, d.named(r)...)
	}
	if len(whole) != len(docs) || fmt.Sprint(paged) != fmt.Sprint(whole) {
		t.Errorf("pages: %v\nwhole: %v", paged, whole)
	}
	if whole[0] != "147" || whole[1] != "140" {
		t.Errorf("the first are %v", whole[:3])
	}
}
