package classify_test

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"vesti.nixg.ru/classify"
	"vesti.nixg.ru/classify/keyword"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
	"vesti.nixg.ru/ledger/ledgertest"
)

const oldRules = `version: 1
directions:
  linux:
    - rule: linux
      weight: 5
      keywords: [linux, ядро]
  games:
    - rule: games
      weight: 5
      keywords: [игра]
  tech:
    - rule: tech
      weight: 5
      keywords: [смартфон]
`

// newRules move posts on Wine from linux to games and score smartphones lower.
var newRules = strings.NewReplacer(
	"keywords: [игра]", "keywords: [игра]\n    - rule: wine\n      weight: 9\n      keywords: [wine]",
	"weight: 5\n      keywords: [смартфон]", "weight: 4\n      keywords: [смартфон]").Replace(oldRules)

func ruleSet(t testing.TB, text string) *keyword.Rules {
	t.Helper()
	r, err := keyword.Parse("test", []byte(text), []ledger.Direction{"linux", "games", "tech"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// past fills a ledger with n posts, judged by the old rules.
func past(t testing.TB, n int) *badgerlog.Log {
	t.Helper()
	return pastOf(t, n, "")
}

// pastOf is past with more text in each post.
func pastOf(t testing.TB, n int, more string) *badgerlog.Log {
	t.Helper()
	l := ledgertest.Open(t)
	texts := []string{
		"Вышло ядро Linux %d, с ним работает много новых устройств",
		"Linux: вышел Wine %d, прослойка для чужих программ",
		"Игра номер %d вышла в свет, студия рада и зовёт играть",
		"Смартфон модели %d показан на выставке, продажи скоро",
		"Новость %d ни о чём из того, что знают правила",
	}
	items := make([]ledger.Item, 0, 1000)
	for i := range n {
		items = append(items, ledger.Item{
			Source: "s", Key: ledger.NewItemKey("s", strconv.Itoa(i)), Lane: ledger.LaneP1, Direction: "tech",
			Title: fmt.Sprintf("Заголовок %d", i), Text: fmt.Sprintf(texts[i%len(texts)], i) + more,
		})
		if len(items) == cap(items) || i == n-1 {
			if _, err := l.Append(t.Context(), items); err != nil {
				t.Fatal(err)
			}
			items = items[:0]
		}
	}
	k := keyword.New(ruleSet(t, oldRules))
	p := pool(t, classify.Options{Queue: l, Decider: classify.NewCascade(classify.CascadeOptions{Keyword: k})})
	if s, err := p.Drain(t.Context(), 0, 8, nil); err != nil || s.Classified != n {
		t.Fatalf("%+v, %v", s, err)
	}
	return l
}

func reclassify(t testing.TB, l *badgerlog.Log, o classify.ReclassifyOptions) classify.Diff {
	t.Helper()
	if o.Keyword == nil {
		o.Keyword = ruleSet(t, newRules)
	}
	d, err := classify.Reclassify(t.Context(), l, l, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// plain is a diff as its JSON has it, without what differs between a dry run
// and the one that writes.
func plain(t testing.TB, d classify.Diff) map[string]any {
	t.Helper()
	b, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	m := make(map[string]any)
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"dry_run", "written", "samples"} {
		delete(m, k)
	}
	return m
}

// TestReclassify: the dry run shows what changes and writes nothing; applied, it
// is that; applied again, nothing.
func TestReclassify(t *testing.T) {
	l := past(t, 1000)
	before := l.Head()
	dry := reclassify(t, l, classify.ReclassifyOptions{DryRun: true})
	if l.Head() != before {
		t.Fatalf("the dry run wrote events: head %d, before %d", l.Head(), before)
	}
	if dry.Judged != 1000 || dry.Moved != 200 || dry.Changed != 400 || dry.Written != 0 {
		t.Errorf("dry run: %+v", dry)
	}
	want := []classify.DirectionDiff{{Direction: "games", Gained: 200}, {Direction: "linux", Lost: 200}, {Direction: "tech", Rescored: 200}}
	if !reflect.DeepEqual(dry.Directions, want) {
		t.Errorf("directions %+v, want %+v", dry.Directions, want)
	}
	if len(dry.Samples) != 20 || dry.Samples[0].From != "linux" || dry.Samples[0].To != "games" || !strings.Contains(dry.Samples[0].Because, "wine") {
		t.Errorf("samples %+v", dry.Samples)
	}
	if dry.Relevance.Down != 200 || dry.Relevance.Mean == 0 {
		t.Errorf("relevance %+v", dry.Relevance)
	}

	applied := reclassify(t, l, classify.ReclassifyOptions{})
	if a, d := plain(t, applied), plain(t, dry); !reflect.DeepEqual(a, d) {
		t.Errorf("applied %v\nshown %v", a, d)
	}
	if applied.Written != 400 {
		t.Errorf("written %d", applied.Written)
	}
	replays := 0
	for _, e := range readAll(t, l, before) {
		p, ok := e.Payload.(ledger.PostClassified)
		if !ok || !p.Replay || p.RuleSet != dry.RuleSet {
			t.Errorf("wrote %+v", e)
		}
		replays++
	}
	if replays != 400 {
		t.Errorf("%d replays", replays)
	}
	again := reclassify(t, l, classify.ReclassifyOptions{})
	if again.Changed != 0 || again.Written != 0 || len(again.Samples) != 0 {
		t.Errorf("again: %+v", again)
	}
	for i, want := range []ledger.Direction{"linux", "games", "games", "tech", "tech"} {
		if st := state(t, l, ledger.PostNum(i+1)); st.Direction != want || st.Status != ledger.StatusClassified {
			t.Errorf("post %d: %+v, want %s", i+1, st, want)
		}
	}
	var text strings.Builder
	if err := dry.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"1000 posts judged", "would change", "nothing was written", "games", "200", "samples"} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("the text lacks %q:\n%s", part, &text)
		}
	}
}

func readAll(t testing.TB, l *badgerlog.Log, after ledger.Seq) (all []ledger.Event) {
	t.Helper()
	for {
		events, err := l.Read(t.Context(), after, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if len(events) == 0 {
			return all
		}
		all = append(all, events...)
		after = events[len(events)-1].Seq
	}
}

// TestReclassifyLeavesAlone: what an editor has decided, what is in the queue,
// what was not asked for.
func TestReclassifyLeavesAlone(t *testing.T) {
	l := past(t, 10)
	ctx := t.Context()
	wine, revised := ledger.PostNum(2), ledger.PostNum(1)
	if _, err := l.Record(ctx, ledger.NewEvent(ledger.ActorEditor, wine, "", ledger.PostReviewed{Verdict: ledger.VerdictPicked})); err != nil {
		t.Fatal(err)
	}
	p, err := l.Post(ctx, revised)
	if err != nil {
		t.Fatal(err)
	}
	item := p.Item
	item.Text = "Теперь здесь игра и wine, а о том, что было раньше, ни слова"
	if _, err := l.Append(ctx, []ledger.Item{item}); err != nil {
		t.Fatal(err)
	}
	d := reclassify(t, l, classify.ReclassifyOptions{})
	if d.Reviewed != 1 || d.Pending != 1 || d.Judged != 8 || d.Moved != 1 {
		t.Errorf("%+v", d)
	}
	if st := state(t, l, wine); st.Direction != "linux" {
		t.Errorf("the editor's post: %+v", st)
	}
	if n := count(t, l, ledger.TypePostClassified); n[revised] != 1 {
		t.Errorf("the post in the queue was judged: %v", n)
	}
	if d := reclassify(t, l, classify.ReclassifyOptions{Keyword: ruleSet(t, oldRules), Direction: "linux"}); d.Judged != 1 {
		t.Errorf("posts of linux: %+v", d)
	}
	if d := reclassify(t, l, classify.ReclassifyOptions{Keyword: ruleSet(t, oldRules), Since: time.Now().Add(time.Hour)}); d.Judged != 0 || d.Changed != 0 {
		t.Errorf("posts of tomorrow: %+v", d)
	}
}

// TestReclassifyJudgesTheNewest: the newest text with the newest title.
func TestReclassifyJudgesTheNewest(t *testing.T) {
	l := past(t, 5)
	ctx := t.Context()
	p, err := l.Post(ctx, 5)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []func(*ledger.Item){
		func(i *ledger.Item) {
			i.Text = "Новая игра для всех, кто любит играть, и ещё немного текста"
		},
		func(i *ledger.Item) { i.Title = "Wine и ещё раз wine" },
	} {
		change(&p.Item)
		if _, err := l.Append(ctx, []ledger.Item{p.Item}); err != nil {
			t.Fatal(err)
		}
	}
	k := keyword.New(ruleSet(t, oldRules))
	if s, err := pool(t, classify.Options{Queue: l, Decider: classify.NewCascade(classify.CascadeOptions{Keyword: k})}).Drain(ctx, 0, 1, nil); err != nil || s.Classified != 1 {
		t.Fatalf("%+v, %v", s, err)
	}
	if d := reclassify(t, l, classify.ReclassifyOptions{Keyword: ruleSet(t, oldRules)}); d.Judged != 5 || d.Changed != 0 {
		t.Errorf("the rules in force change %+v", d)
	}
}

// BenchmarkReclassify replays rules over history, of short posts and of such as
// long as a channel's or a feed's are. VESTI_BENCH_POSTS changes their number.
func BenchmarkReclassify(b *testing.B) {
	posts := 20_000
	if n, err := strconv.Atoi(os.Getenv("VESTI_BENCH_POSTS")); err == nil {
		posts = n
	}
	starter, err := keyword.ParseStarter(ledger.DefaultDirections())
	if err != nil {
		b.Fatal(err)
	}
	for _, more := range []int{0, 1000} {
		l := pastOf(b, posts, ledger.CutText(prose, more))
		for name, r := range map[string]*keyword.Rules{"starter": starter, "small": ruleSet(b, newRules)} {
			b.Run(fmt.Sprintf("%s rules, %d bytes", name, 90+more), func(b *testing.B) {
				before := cpuTime()
				for b.Loop() {
					if d := reclassify(b, l, classify.ReclassifyOptions{Keyword: r, DryRun: true}); d.Judged != posts {
						b.Fatalf("%+v", d)
					}
				}
				all := float64(posts) * float64(b.N)
				b.ReportMetric(all/b.Elapsed().Seconds(), "posts/s")
				b.ReportMetric(all/(cpuTime()-before).Seconds(), "posts/cpu_s")
			})
		}
	}
}

// cpuTime is what tells on a machine that has other things to do.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// prose is what posts are longer by: words of many rules and of none.
const prose = ` Разработчики сообщают, что обновление уже доступно в репозиториях основных дистрибутивов, а пользователям
рекомендуют перейти на него как можно скорее. Компания отметила, что в следующем квартале выпустит новую линейку процессоров,
рассчитанных на работу с нейросетями на ноутбуках. A spokesman told reporters that nobody had expected the release so soon, and
that the talks with the manufacturers are still going on. По словам очевидцев, вечером на площади собралось несколько сотен человек,
однако никаких происшествий полиция не зафиксировала. The release closes a serious vulnerability in the networking stack that had
been present for almost nine years.`
