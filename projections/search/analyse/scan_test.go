package analyse

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// rendered writes a text's chains as part@position|part@position=joined.
func rendered(text string) string {
	s := NewStemmer()
	var out []string
	Scan(text, func(c *Chain) {
		var parts []string
		for i := range c.Parts {
			parts = append(parts, fmt.Sprintf("%s@%d", s.Part(&c.Parts[i]), c.Parts[i].Position))
		}
		chain := strings.Join(parts, "|")
		if c.Joined != "" {
			chain += "=" + s.Joined(c)
		}
		out = append(out, chain)
	})
	return strings.Join(out, " ")
}

func TestScan(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", ""},
		{"signs only", " — … 🔥 * ", ""},
		{"case", "OpenAI", "openai@1"},
		{"Russian case", "МОСКВА", "москв@1"},
		{"ё is е", "Ёлка ёлка елка", "елк@1 елк@2 елк@3"},
		{"decomposed й", "чаи\u0306", "ча@1"},
		{"decomposed ё", "е\u0308лка", "елк@1"},
		{"stress mark", "за\u0301мок", "замк@1"},
		{"soft hyphen", "ней\u00ADросеть", "нейросет@1"},
		{"zero width", "ней\u200Bро\uFEFFсеть", "нейросет@1"},
		{"full width", "ＧＰＴ", "gpt@1"},
		{"accents", "café Zürich", "cafe@1 zurich@2"},
		{"ligature", "ﬁle", "file@1"},
		{"look-alikes in a Russian word", "Cбер", "сбер@1"},
		{"look-alikes in an English word", "Аpple", "appl@1"},
		{"truly mixed", "VPNщик", "vpnщик@1"},
		{"possessive", "Apple's apple’s", "appl@1 appl@2"},
		{"contraction", "don't", "dont@1"},
		{"hyphen of Latin words", "wi-fi", "wi@1|fi@2=wifi"},
		{"hyphen of Russian words", "интернет-магазины", "интернет@1|магазин@2"},
		{"hyphen and digits", "GPT-4", "gpt@1|4@2=gpt4"},
		{"number", "1,5", "1@1|5@2=1.5"},
		{"number with a point", "1.5", "1@1|5@2=1.5"},
		{"around the clock", "24/7", "24@1|7@2=24/7"},
		{"identifier", "CVE-2026-1234", "cve@1|2026@2|1234@3=cve20261234"},
		{"mixed chain", "Wi-Fi-сеть", "wi@1|fi@2|сет@3"},
		{"C++", "C++ c++17 С++", "c++@1 c++@2 17@3 c++@4"},
		{"C#", "C#, F#.", "c#@1 f#@2"},
		{"C alone", "C", "c@1"},
		{"hashtag", "#ии #AI", "ии@1 ai@2"},
		{".NET", ".NET ASP.NET .network", ".net@1 asp@2|net@3=aspnet network@4"},
		{"media type", "application/pdf", "applic@1|pdf@2=applicationpdf"},
		{"address", "https://example.org/a/b/c/d", "https@1 exampl@2|org@3|a@4|b@5|c@6|d@7"},
		{"mail address", "a@b.io", "a@1 b@2|io@3=bio"},
		{"ideographs", "日本 語", "日@1|本@2 語@3"},
		{"fleeting vowels", "рынок рынка день дня конец концов сборок сборка", "рынк@1 рынк@2 ден@3 ден@4 конц@5 конц@6 сборк@7 сборк@8"},
		{"a hard adjective is not a cruel one", "жестокий жёсткий", "жесток@1 жестк@2"},
		{"surnames and towns", "Лавров Лаврова Лавровым Киев Киеве Саратов Саратова", "лавр@1 лавр@2 лавр@3 киев@4 киев@5 сарат@6 сарат@7"},
		{"ов within a word", "голов голова Львов Львова", "голова@1 голова@2 львов@3 львов@4"},
		{"й before a fleeting vowel", "копеек копейка", "копейк@1 копейк@2"},
		{"short adjectives", "доступен доступный", "доступн@1 доступн@2"},
		{"verbs of many stems", "вышел вышла выйдет", "выйт@1 выйт@2 выйт@3"},
		{"words that only sound alike", "police policy international internal", "police@1 policy@2 international@3 internal@4"},
		{"Latin words with Russian endings", "GitHub'а GitHubом iPhone’ов", "github@1 github@2 iphon@3"},
		{"suppletion", "люди человека", "человк@1 человк@2"},
		{"gap", "a" + Gap + "b", "a@1 b@102"},
		{"broken bytes", "a\xffb", "a@1 b@2"},
		{"accent at the start", "\u0301a", "a@1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := rendered(c.text); got != c.want {
				t.Errorf("%q\n got %s\nwant %s", c.text, got, c.want)
			}
		})
	}
}

func TestLongWordsAreCut(t *testing.T) {
	long := strings.Repeat("ж", 1000)
	Scan(long, func(c *Chain) {
		if n := utf8.RuneCountInString(c.Parts[0].Text); n != maxPart {
			t.Errorf("got %d runes, want %d", n, maxPart)
		}
		if c.Parts[0].End != len(long) {
			t.Errorf("the part ends at %d, want %d", c.Parts[0].End, len(long))
		}
	})
}

// FuzzScan holds what everything else relies on: parts lie in the text, in
// order, and positions only grow.
func FuzzScan(f *testing.F) {
	for _, s := range []string{"GPT-4 и 1,5", "е\u0308лка \x1e .NET c++", "a\u0301\u0301b", "日本", "\xff\xc0x", "ab'cd-'e"} {
		f.Add(s)
	}
	stemmer := NewStemmer()
	f.Fuzz(func(t *testing.T, text string) {
		at, position := 0, 0
		Scan(text, func(c *Chain) {
			if len(c.Parts) == 0 {
				t.Fatal("chain without parts")
			}
			for i := range c.Parts {
				p := &c.Parts[i]
				if p.Start < at || p.End <= p.Start || p.End > len(text) || p.Position <= position {
					t.Fatalf("part %+v after byte %d, position %d of %q", *p, at, position, text)
				}
				at, position = p.End, p.Position
				if term := stemmer.Part(p); term == "" || !utf8.ValidString(term) {
					t.Fatalf("part %+v of %q has the term %q", *p, text, term)
				}
			}
		})
	})
}
