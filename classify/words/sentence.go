package words

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sentences yields the sentences of a Russian or English text, trimmed, none
// empty. A line's end ends a sentence. A full stop after an abbreviation or an
// initial does not, nor one before a small letter.
func Sentences(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start := 0
		for i := 0; i < len(text); {
			r, size := utf8.DecodeRuneInString(text[i:])
			i += size
			switch r {
			case '\n', '\r', '\u2028', '\u2029':
			case '.', '!', '?', '…':
				i = closers(text, i)
				if !endsSentence(text, start, i, r) {
					continue
				}
			default:
				continue
			}
			if s := strings.TrimSpace(text[start:i]); s != "" && !yield(s) {
				return
			}
			start = i
		}
		if s := strings.TrimSpace(text[start:]); s != "" {
			yield(s)
		}
	}
}

// closers skips further stops and closing signs from i on.
func closers(text string, i int) int {
	for i < len(text) {
		r, size := utf8.DecodeRuneInString(text[i:])
		if !strings.ContainsRune(".!?…»”’\"')]", r) {
			break
		}
		i += size
	}
	return i
}

// endsSentence reports whether the stop r before i ends the sentence that began
// at start.
func endsSentence(text string, start, i int, r rune) bool {
	if i >= len(text) {
		return true
	}
	next, _ := utf8.DecodeRuneInString(text[i:])
	if !unicode.IsSpace(next) {
		return false
	}
	after := strings.TrimLeftFunc(text[i:], unicode.IsSpace)
	first, _ := utf8.DecodeRuneInString(strings.TrimLeft(after, "«“\"'(—–- "))
	if unicode.IsLower(first) {
		return false
	}
	return r != '.' || !abbreviated(text[start:i])
}

// abbreviated reports whether the full stop at the end of s belongs to its last
// word.
func abbreviated(s string) bool {
	s = strings.TrimRight(s, ".»”’\"')]")
	last := s[strings.LastIndexFunc(s, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("(«“\"", r) })+1:]
	if last == "" {
		return false
	}
	if r, size := utf8.DecodeRuneInString(last); size == len(last) && unicode.IsUpper(r) {
		return true // an initial
	}
	if strings.Contains(last, ".") && len(last) <= len("т.е") { // U.S, e.g, т.е
		return true
	}
	_, known := abbreviations[strings.ToLower(last)]
	return known
}

var abbreviations = setOf(`
mr mrs ms dr prof st jr sr vs etc inc ltd co corp no fig approx dept est gov sen rep gen col lt sgt capt vol
jan feb mar apr jun jul aug sep sept oct nov dec
г гг в вв ул д корп стр пр пер им тел руб коп тыс млн млрд трлн см мм км кг чел экз ред рис табл гл
т е п н э и др проф акад доц канд напр англ нем фр лат рус обл р-н пос св мин сек ч`)

func setOf(list string) map[string]struct{} {
	set := make(map[string]struct{})
	for w := range strings.FieldsSeq(list) {
		set[w] = struct{}{}
	}
	return set
}

// Lead returns the beginning of a text as a summary: whole sentences, up to
// three, that together have at most limit characters, without the title where
// the text repeats it and without lines that are only links or tags. A first
// sentence that is longer alone is cut between two words and ends with "…".
func Lead(title, text string, limit int) string {
	var lead strings.Builder
	length, count := 0, 0
	title = strings.TrimRight(strings.TrimSpace(title), ".!?…")
	for s := range Sentences(text) {
		if !tells(s) || strings.EqualFold(strings.TrimRight(s, ".!?…"), title) {
			continue
		}
		n := utf8.RuneCountInString(s)
		if count == 0 && n > limit {
			return cutWords(s, limit)
		}
		if length+n > limit || count == 3 {
			break
		}
		if count > 0 {
			lead.WriteByte(' ')
		}
		lead.WriteString(strings.Join(strings.Fields(s), " "))
		length += n + 1
		count++
	}
	if count == 0 {
		return cutWords(title, limit)
	}
	return lead.String()
}

// tells reports whether a sentence has a word that is no link and no tag.
func tells(s string) bool {
	for w := range strings.FieldsSeq(s) {
		if strings.HasPrefix(w, "#") || strings.HasPrefix(w, "@") || strings.Contains(w, "://") || strings.HasPrefix(w, "t.me/") {
			continue
		}
		if strings.IndexFunc(w, unicode.IsLetter) >= 0 {
			return true
		}
	}
	return false
}

// cutWords shortens s to limit characters, the "…" among them.
func cutWords(s string, limit int) string {
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	end, runes, space := 0, 0, 0
	for i, r := range s {
		if runes == limit-1 {
			end = i
			break
		}
		if unicode.IsSpace(r) {
			space = i
		}
		runes++
	}
	if space > end/2 {
		end = space
	}
	return strings.TrimRightFunc(s[:end], func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(",;:—–-", r) }) + "…"
}
