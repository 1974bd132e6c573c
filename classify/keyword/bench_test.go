package keyword_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"vesti.nixg.ru/classify/keyword"
	"vesti.nixg.ru/ledger"
)

// news is prose as posts have it: mostly words of no rule, some of a few.
const news = `Вышел стабильный релиз ядра Linux 6.12, в который вошли исправления для планировщика и новые драйверы видеокарт.
Разработчики сообщают, что обновление уже доступно в репозиториях основных дистрибутивов, а пользователям рекомендуют перейти на него как можно скорее.
According to the maintainers, the release closes a serious vulnerability in the networking stack that had been present for almost nine years.
Компания отметила, что в следующем квартале выпустит новую линейку процессоров, рассчитанных на работу с нейросетями на ноутбуках.
Meanwhile the European Commission said it would look into the deal, adding that the talks with the manufacturers are still going on.
По словам очевидцев, вечером на площади собралось несколько сотен человек, однако никаких происшествий полиция не зафиксировала.
A spokesman told reporters that nobody had expected the weather to turn so quickly, and that the boats were on their way home by then.
`

func sixKilobytes() string {
	return ledger.CutText(strings.Repeat(news, 8), 6<<10)
}

// twoThousand is a rule set of 2,000 keywords in Russian and English, phrases
// among them, made up from syllables so that they begin like real words.
func twoThousand(tb testing.TB) *keyword.Rules {
	tb.Helper()
	rnd := rand.New(rand.NewPCG(1, 2))
	ru := strings.Fields("про ком раз пере гра стан под от вы на по за об при без лин мир тор ков сте бра пол мен тел рас рек дер вод")
	en := strings.Fields("pro com re un dis con inter trans over sub form ter ment ion ling gra str net soft ware play ed mar ket pol it ic")
	word := func() string {
		s := ru
		if rnd.IntN(2) == 0 {
			s = en
		}
		return s[rnd.IntN(len(s))] + s[rnd.IntN(len(s))] + s[rnd.IntN(len(s))]
	}
	var b strings.Builder
	b.WriteString("version: 1\ndirections:\n")
	for d := range 10 {
		fmt.Fprintf(&b, "  d%d:\n    - rule: r%d\n      keywords: [ядро, release, процессор, европейская комиссия, %s", d, d, word())
		for range 195 {
			fmt.Fprintf(&b, ", %s", word())
			if rnd.IntN(4) == 0 {
				fmt.Fprintf(&b, " %s", word())
			}
		}
		b.WriteString("]\n")
	}
	r, err := keyword.Parse("bench", []byte(b.String()), nil)
	if err != nil {
		tb.Fatal(err)
	}
	if _, n := r.Size(); n < 1950 || n > 2050 {
		tb.Fatalf("%d keywords", n)
	}
	return r
}

func BenchmarkJudge(b *testing.B) {
	starter, err := keyword.ParseStarter(ledger.DefaultDirections())
	if err != nil {
		b.Fatal(err)
	}
	item := &ledger.Item{Title: "Linux 6.12", Text: sixKilobytes()}
	for _, bb := range []struct {
		name  string
		rules *keyword.Rules
	}{{"2000 keywords", twoThousand(b)}, {"starter", starter}} {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(item.Text)))
			b.ReportAllocs()
			bb.rules.Judge(item)
			before := cpuTime()
			for b.Loop() {
				bb.rules.Judge(item)
			}
			b.ReportMetric(float64(cpuTime()-before)/float64(b.N)/1000, "cpu_µs/op")
		})
	}
}

// TestJudgeAllocations: what a judgement allocates does not grow with the rules.
func TestJudgeAllocations(t *testing.T) {
	item := &ledger.Item{Text: sixKilobytes()}
	rules := twoThousand(t)
	rules.Judge(item)
	runtime.GC()
	if n := testing.AllocsPerRun(50, func() { rules.Judge(item) }); n > 40 { // under the race detector a pool drops what it holds
		t.Errorf("%v allocations for a text of 6 KB and 2,000 keywords", n)
	}
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
