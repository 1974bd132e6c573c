package analyse

import (
	"strings"
	"unicode/utf8"
)

// Prefix is what the start of a word can be the start of, among terms.
type Prefix struct {
	Starts []string // of terms
	Terms  []string // whole terms: of irregular forms that begin so
}

// Prefix returns where to look for the words that begin with a part. Terms are
// stems, which may be shorter than what was typed (разработчика finds
// разработчик) and may have lost a vowel of it (рынок is рынк).
func (s *Stemmer) Prefix(p *Part) Prefix {
	stem := s.Part(p)
	starts := []string{p.Text}
	switch {
	case p.Text == stem:
	case strings.HasPrefix(p.Text, stem):
		starts = []string{stem}
	default:
		starts = append(starts, stem)
	}
	if p.script == cyrillic {
		starts = append(starts, fleetingStarts(p.Text)...)
	}
	out := Prefix{Starts: starts}
	forms := englishForms
	if p.script == cyrillic {
		forms = russianForms
	}
	for form := range forms {
		if term := s.stem(p.script, form); strings.HasPrefix(form, p.Text) && !hasAnyPrefix(term, starts) {
			out.Terms = append(out.Terms, term)
		}
	}
	return out
}

func hasAnyPrefix(term string, starts []string) bool {
	for _, s := range starts {
		if strings.HasPrefix(term, s) {
			return true
		}
	}
	return false
}

// fleetingStarts are the starts of stems that dropFleeting made from words that
// begin with text, where text ends in the vowel: рыно may become рынок, which is
// рынк.
func fleetingStarts(text string) []string {
	vowel, size := utf8.DecodeLastRuneInString(text)
	base := text[:len(text)-size]
	if utf8.RuneCountInString(base) < 2 {
		return nil
	}
	switch vowel {
	case 'о':
		return []string{base + "к"}
	case 'е':
		return []string{base + "к", base + "ц"}
	default:
		return nil
	}
}
