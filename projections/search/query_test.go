package search_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/ledgertest"
	"vesti.nixg.ru/projections/posts"
	"vesti.nixg.ru/projections/search"
)

// newsroom has a few posts of several sources, languages and days.
func newsroom(t testing.TB) *desk {
	t.Helper()
	d := open(t)
	day := func(n int) time.Time { return time.Date(2026, 5, n, 12, 0, 0, 0, time.UTC) }
	d.add(t,
		doc{ID: "kernel", Source: "lwn", Lang: "en", Title: "Linux 7.0 released", Text: "The kernel has a new scheduler. Rust drivers arrived.", Published: day(1)},
		doc{ID: "ядро", Source: "opennet", Lang: "ru", Title: "Вышло ядро Linux 7.0", Text: "Новый планировщик и драйверы на Rust. Ядро собрали.", Published: day(2)},
		doc{ID: "llm", Source: "habr", Lang: "ru", Title: "Нейросеть GPT-5 вышла", Text: "Компания OpenAI представила модель. Она пишет на C++ и Rust.", Published: day(3)},
		doc{ID: "game", Source: "habr", Lang: "ru", Title: "Игра про нейросети", Text: "Студия выпустила игру, в которой ядро планеты остывает.", Published: day(4)},
		doc{ID: "wi-fi", Source: "lwn", Lang: "en", Title: "Wi-Fi 8", Text: "A draft of the wireless standard, see https://example.org/wi-fi/8 for more.", Published: day(5)},
	)
	return d
}

func TestQueries(t *testing.T) {
	d := newsroom(t)
	for _, c := range []struct {
		query string
		want  []string
	}{
		{"rust", []string{"kernel", "llm", "ядро"}},
		{"rust ядро", []string{"ядро"}},
		{"Rust AND kernel", []string{"kernel"}},
		{"kernel OR игра", []string{"game", "kernel"}},
		{"kernel ИЛИ игра | wi-fi", []string{"game", "kernel", "wi-fi"}},
		{"rust kernel OR ядро", []string{"kernel", "ядро"}}, // OR binds what stands beside it
		{"rust (kernel OR openai)", []string{"kernel", "llm"}},
		{"(rust kernel) OR игра", []string{"game", "kernel"}},
		{"rust -ядро", []string{"kernel", "llm"}},
		{"rust NOT ядро", []string{"kernel", "llm"}},
		{"rust −ядро", []string{"kernel", "llm"}},
		{"-rust", []string{"game", "wi-fi"}},
		{"-rust -игра", []string{"wi-fi"}},
		{"rust -(kernel OR openai)", []string{"ядро"}},
		{`"new scheduler"`, []string{"kernel"}},
		{`"scheduler new"`, nil},
		{`«новый планировщик»`, []string{"ядро"}},
		{`„новые планировщики“`, []string{"ядро"}},
		{`rust -"new scheduler"`, []string{"llm", "ядро"}},
		{`"released the kernel"`, nil}, // a phrase does not reach from the title into the text
		{"title:нейросеть", []string{"game", "llm"}},
		{"title:ядро", []string{"ядро"}},
		{`title:"ядро linux"`, []string{"ядро"}},
		{"title:нейро*", []string{"game", "llm"}},
		{"заголовок:игра", []string{"game"}},
		{"-title:нейросеть ядро", []string{"ядро"}},
		{"source:habr", []string{"game", "llm"}},
		{"source:habr source:lwn", []string{"game", "kernel", "llm", "wi-fi"}},
		{"source:habr OR source:lwn", []string{"game", "kernel", "llm", "wi-fi"}},
		{"-source:habr rust", []string{"kernel", "ядро"}},
		{"lang:en rust", []string{"kernel"}},
		{"-lang:ru", []string{"kernel", "wi-fi"}},
		{"rust after:2026-05-02", []string{"llm", "ядро"}},
		{"rust before:2026-05-02", []string{"kernel"}},
		{"after:02.05.2026 before:2026-05-04", []string{"llm", "ядро"}},
		{"rust status:pending", []string{"kernel", "llm", "ядро"}},
		{"rust status:parked", nil},
		{"rust -status:pending", nil},
		{"direction:linux", nil},
		{"direction:none rust lang:en", []string{"kernel"}},
		{"нейро*", []string{"game", "llm"}},
		{"НЕЙРОСЕТЯМИ*", []string{"game", "llm"}},
		{"н*", []string{"game", "llm", "ядро"}},
		{"не* -игра", []string{"llm"}},
		{"GPT5", []string{"llm"}},
		{"gpt-*", []string{"llm"}},
		{"c++", []string{"llm"}},
		{"https://example.org/wi-fi/8", []string{"wi-fi"}},
		{"rust:kernel", nil},
		{"ядро планеты остывает совсем", []string{"game", "ядро"}}, // nothing has all four: any
		{"", []string{"game", "kernel", "llm", "wi-fi", "ядро"}},
		{"*", []string{"game", "kernel", "llm", "wi-fi", "ядро"}},
		{`""`, []string{"game", "kernel", "llm", "wi-fi", "ядро"}},
		{"🔥", nil},
		{"---", nil},
		{"OR", []string{"game", "kernel", "llm", "wi-fi", "ядро"}},
		{"rust OR", []string{"kernel", "llm", "ядро"}},
		{"OR rust", []string{"kernel", "llm", "ядро"}},
		{"NOT", []string{"game", "kernel", "llm", "wi-fi", "ядро"}},
		{"(rust", []string{"kernel", "llm", "ядро"}},
		{"rust)", []string{"kernel", "llm", "ядро"}},
		{"rust) (kernel", []string{"kernel"}},
		{`"rust`, []string{"kernel", "llm", "ядро"}},
		{`rust"`, []string{"kernel", "llm", "ядро"}},
		{"--rust", []string{"kernel", "llm", "ядро"}},
		{"after:позавчера rust", []string{"kernel", "llm", "ядро"}},
		{"title:", nil},
		{"+rust", []string{"kernel", "llm", "ядро"}},
		{"/rust/", []string{"kernel", "llm", "ядро"}},
		{"rust~2", nil},
		{"rust^2", nil},
	} {
		t.Run(c.query, func(t *testing.T) {
			got := d.find(t, c.query)
			slices.Sort(got)
			want := slices.Clone(c.want)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%q finds %v, want %v", c.query, got, want)
			}
		})
	}
}

func TestNotes(t *testing.T) {
	d := newsroom(t)
	for query, want := range map[string]search.NoteReason{
		"after:никогда rust":           search.NoteBadDate,
		"status:wrong rust":            search.NoteBadValue,
		"direction:nosuch rust":        search.NoteBadValue,
		"-source:nosuch rust":          search.NoteBadValue,
		"direction:Games source:quiet": "", // configured, though no post has them
		"direction:none source:LWN":    "",
		"🔥":                            search.NoteNothing,
		strings.Repeat("слово ", 1000): search.NoteTooLong,
		manyWords(100):                 search.NoteTooMany,
		"ядро планеты остывает совсем":    search.NoteRelaxed,
		"rust (((((((((((((deep)))))))))": "",
	} {
		r, err := d.search.Search(t.Context(), search.Request{Query: query})
		if err != nil {
			t.Fatal(err)
		}
		has := slices.ContainsFunc(r.Notes, func(n search.Note) bool { return n.Reason == want })
		if want != "" && !has || want == "" && len(r.Notes) > 0 {
			t.Errorf("%.40q: notes %v, want %q", query, r.Notes, want)
		}
	}
}

func manyWords(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "w%d ", i)
	}
	return b.String()
}

func TestFilterSortAndFacets(t *testing.T) {
	d := newsroom(t)
	d.classify(t, map[string]ledger.Classification{
		"kernel": {Direction: "linux", Interest: 0.2},
		"ядро":   {Direction: "linux", Interest: 0.9},
		"llm":    {Direction: "llm", Interest: 0.5},
	})
	for _, c := range []struct {
		name string
		r    search.Request
		want []string
	}{
		{"newest first", search.Request{Sort: posts.ByDate}, []string{"wi-fi", "game", "llm", "ядро", "kernel"}},
		{"text, newest first", search.Request{Query: "rust", Sort: posts.ByDate}, []string{"llm", "ядро", "kernel"}},
		{"most interesting first", search.Request{Query: "rust", Sort: posts.ByInterest}, []string{"ядро", "llm", "kernel"}},
		{"without text", search.Request{Sort: posts.ByInterest}, []string{"ядро", "llm", "kernel", "wi-fi", "game"}},
		{"best match first", search.Request{Query: "нейросети"}, []string{"game", "llm"}},
		{"page", search.Request{Sort: posts.ByDate, Limit: 2, Offset: 1}, []string{"game", "llm"}},
		{"past the end", search.Request{Offset: 100}, []string{}},
		{"direction", search.Request{Query: "rust", Sort: posts.ByDate, Filter: posts.Filter{Directions: []ledger.Direction{"linux"}}}, []string{"ядро", "kernel"}},
		{"direction twice", search.Request{Query: "direction:llm", Filter: posts.Filter{Directions: []ledger.Direction{"linux"}}}, []string{}},
		{"source", search.Request{Query: "rust", Filter: posts.Filter{Sources: []ledger.Slug{"habr"}}}, []string{"llm"}},
		{"status", search.Request{Filter: posts.Filter{Statuses: []ledger.Status{ledger.StatusPending}}}, []string{"wi-fi", "game"}},
		{"since and until", search.Request{Filter: posts.Filter{
			Since: time.Date(2026, 5, 2, 0, 0, 0, 0, time.UTC), Until: time.Date(2026, 5, 3, 12, 0, 0, 0, time.UTC),
		}}, []string{"ядро"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := d.search.Search(t.Context(), c.r)
			if err != nil {
				t.Fatal(err)
			}
			if got := d.named(r); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
	r, err := d.search.Search(t.Context(), search.Request{
		Query: "rust", Facets: true, Filter: posts.Filter{Directions: []ledger.Direction{"linux"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Total != 2 {
		t.Errorf("total %d, want 2", r.Total)
	}
	wantDirections := []posts.Count{{Value: "linux", Count: 2}, {Value: "llm", Count: 1}} // the field's own filter aside
	wantLangs := []posts.Count{{Value: "en", Count: 1}, {Value: "ru", Count: 1}}
	if !slices.Equal(r.Facets.Directions, wantDirections) || !slices.Equal(r.Facets.Langs, wantLangs) {
		t.Errorf("facets %+v", r.Facets)
	}
}

func TestExcerpts(t *testing.T) {
	d := open(t)
	filler := strings.Repeat("Вода мокрая, песок сухой. ", 40)
	d.add(t, doc{ID: "a", Title: "Ядро <b>Linux</b>", Text: filler + "Здесь говорят, что вышло новое ядро, и\nэто GPT-4. " + filler})
	for query, want := range map[string]string{
		"ядра":                    "[ядро]",
		`"новые ядра"`:            "[новое] [ядро]",
		"яд* gpt4":                "[ядро], и это [GPT]-[4].",
		"title:linux":             "Вода мокрая, песок сухой.",
		"":                        "Вода мокрая, песок сухой.",
		"ядро -снег":              "новое [ядро], и это",
		"\"ядро и это gpt\" OR х": "[ядро], [и] [это] [GPT]-4.",
	} {
		r, err := d.search.Search(t.Context(), search.Request{Query: query})
		if err != nil || len(r.Hits) != 1 {
			t.Fatalf("%q: %v, %d hits", query, err, len(r.Hits))
		}
		var b strings.Builder
		for _, s := range r.Hits[0].Snippet {
			if s.Mark {
				fmt.Fprintf(&b, "[%s]", s.Text)
			} else {
				b.WriteString(s.Text)
			}
		}
		if got := b.String(); !strings.Contains(got, want) || len([]rune(got)) > 300 {
			t.Errorf("%q: excerpt %q, want %q in it", query, got, want)
		}
	}
	r, err := d.search.Search(t.Context(), search.Request{Query: "linux"})
	if err != nil {
		t.Fatal(err)
	}
	want := []search.Segment{{Text: "Ядро <b>"}, {Text: "Linux", Mark: true}, {Text: "</b>"}}
	if !slices.Equal(r.Hits[0].Heading, want) {
		t.Errorf("heading %v, want %v", r.Hits[0].Heading, want)
	}
}

func TestRevisionsRemovalAndSecondCarriers(t *testing.T) {
	d := open(t)
	d.add(t, doc{ID: "a", Source: "s1", Title: "Первый заголовок", Text: "Первоначальный текст про жирафа и его долгую шею."})
	d.add(t, doc{ID: "b", Source: "s1", Text: "Другой текст про бегемота, который живёт в реке."})
	num := d.nums["a"]
	d.add(t, doc{ID: "a", Source: "s1", Title: "Второй заголовок", Text: "Исправленный текст про страуса и его долгие ноги."})
	for query, want := range map[string]int{"жираф": 0, "страус": 1, "title:первый": 0, "title:второй": 1} {
		if got := len(d.find(t, query)); got != want {
			t.Errorf("after the revision %q finds %d posts, want %d", query, got, want)
		}
	}
	d.add(t, doc{ID: "a", Source: "s1", Title: "Третий заголовок", Text: "Исправленный текст про страуса и его долгие ноги."})
	if got := d.find(t, "страус title:третий"); len(got) != 1 {
		t.Errorf("after a new title: %v", got)
	}
	d.add(t, doc{ID: "z", Source: "s2", Text: "Исправленный текст про страуса и его долгие ноги."})
	if got := d.find(t, "страус source:s2"); len(got) != 1 {
		t.Errorf("by its second carrier: %v", got)
	}
	gone := ledger.NewEvent(ledger.ActorCrawler, num, "s1", ledger.PostRemoved{Key: "k", Cause: "404"})
	if _, err := d.log.Record(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	d.settle(t)
	if got := d.find(t, "страус"); len(got) != 0 {
		t.Errorf("after its removal: %v", got)
	}
	if got := d.find(t, ""); len(got) != 1 {
		t.Errorf("listed after its removal: %v", got)
	}
}

// TestHostileQueries: nothing that can be typed is an error, and nothing takes
// long.
func TestHostileQueries(t *testing.T) {
	d := newsroom(t)
	long := strings.Repeat("ю", 10_000)
	queries := []string{
		long, long + "*", strings.Repeat("a ", 20_000), strings.Repeat("(", 10_000), strings.Repeat(")", 10_000),
		strings.Repeat("-", 10_000) + "a", strings.Repeat("\"", 10_001), strings.Repeat("a OR ", 5000), strings.Repeat("x* ", 700),
		"\x00\x01\xff\xfe", "a\x00b", "\u202Eевил", "../../etc/passwd", "<script>alert(1)</script>", "' OR 1=1 --",
		"title:title:title:", "::::", "before:9999999999999d", "after:0000-00-00", "lang:" + long, "source:*", "*:*", "\\", "[a TO b]",
		"{a TO b}", "a && b || !c", "field:>5", "№ 5", "😀 OR 😀*", "日本*", "ⅷ", strings.Repeat("e\u0301", 500), "\u0301",
	}
	rng := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"rust", "ядро", "\"", "«", "»", "(", ")", "-", "*", "OR", "NOT", "title:", "source:", "after:", " ", " ", ":", "2026-05-01", "\x1e", "c++", "н*"}
	for range 500 {
		var b strings.Builder
		for range rng.IntN(20) {
			b.WriteString(pieces[rng.IntN(len(pieces))])
		}
		queries = append(queries, b.String())
	}
	for _, q := range queries {
		r, err := d.search.Search(t.Context(), search.Request{Query: q, Facets: true})
		if err != nil {
			t.Errorf("%.60q: %v", q, err)
		}
		if r.Took > 2*time.Second {
			t.Errorf("%.60q took %s", q, r.Took)
		}
	}
}

// classify settles the posts of the given ids as a worker does.
func (d *desk) classify(t *testing.T, decisions map[string]ledger.Classification) {
	t.Helper()
	var skipped []ledger.Claim
	for done := 0; done < len(decisions); {
		c, err := d.log.Claim(t.Context(), ledger.ClaimRequest{Worker: "w", NoWait: true})
		if err != nil {
			t.Fatal(err)
		}
		decision, wanted := decisions[d.ids[c.Post]]
		if !wanted {
			skipped = append(skipped, c)
			continue
		}
		p := ledgertest.Decision(decision.Direction)
		p.Interest = decision.Interest
		if err := d.log.Complete(t.Context(), c, p); err != nil {
			t.Fatal(err)
		}
		done++
	}
	for _, c := range skipped {
		if err := d.log.Release(t.Context(), c, ledger.PostReturned{Reason: ledger.ReturnShutdown, Lane: c.Lane}); err != nil {
			t.Fatal(err)
		}
	}
	d.settle(t)
}
