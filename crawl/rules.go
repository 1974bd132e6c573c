package crawl

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"vesti.nixg.ru/ledger"
)

// Rules are a source's keep and block rules, compiled. The zero value drops
// nothing. They are safe for concurrent use.
type Rules struct{ keep, block []rule }

// rule matches a title or a text. Before a rule's pattern may stand "title:" or
// "text:" to look at one of them only. A pattern is
//
//	word or words      as whole words, whatever the case, ё as е
//	begin*             words that begin so
//	/expression/       a regular expression of Go's regexp; /expression/i ignores case
type rule struct {
	raw         string
	title, text bool // where it looks
	words       string
	prefix      bool // the last word goes on
	expression  *regexp.Regexp
}

// CompileRules reads the rules of a source. The error matches
// ledger.ErrInvalid and names the rule.
func CompileRules(keep, block []string) (Rules, error) {
	var r Rules
	for _, list := range []struct {
		raw []string
		to  *[]rule
	}{{keep, &r.keep}, {block, &r.block}} {
		for _, raw := range list.raw {
			c, err := compileRule(raw)
			if err != nil {
				return Rules{}, err
			}
			*list.to = append(*list.to, c)
		}
	}
	return r, nil
}

// Rules compiles the source's rules. Sources that ParseSources returned have
// rules that compile.
func (s Source) Rules() (Rules, error) { return CompileRules(s.Keep, s.Block) }

// Empty reports whether r drops nothing, so that no text need be looked at.
func (r Rules) Empty() bool { return len(r.keep)+len(r.block) == 0 }

// Drops reports whether an entry is to be left out, and by which rule: "block "
// and the rule's own words, or "keep" where there are keep rules and none
// matched. Block rules win over keep rules.
func (r Rules) Drops(title, text string) (rule string, drops bool) {
	if r.Empty() {
		return "", false
	}
	f := folded{title: title, text: text}
	for i := range r.block {
		if r.block[i].matches(&f) {
			return "block " + r.block[i].raw, true
		}
	}
	for i := range r.keep {
		if r.keep[i].matches(&f) {
			return "", false
		}
	}
	if len(r.keep) > 0 {
		return "keep", true
	}
	return "", false
}

func compileRule(raw string) (rule, error) {
	fail := func(why string) (rule, error) {
		return rule{}, fmt.Errorf("%w: rule %q: %s", ledger.ErrInvalid, raw, why)
	}
	c := rule{raw: raw, title: true, text: true}
	pattern := strings.TrimSpace(raw)
	if p, ok := strings.CutPrefix(pattern, "title:"); ok {
		pattern, c.text = strings.TrimSpace(p), false
	} else if p, ok := strings.CutPrefix(pattern, "text:"); ok {
		pattern, c.title = strings.TrimSpace(p), false
	}
	if strings.HasPrefix(pattern, "/") {
		end := strings.LastIndexByte(pattern, '/')
		flags := pattern[end+1:]
		if end == 0 || flags != "" && flags != "i" {
			return fail("want /expression/ or /expression/i")
		}
		expression := pattern[1:end]
		if expression == "" {
			return fail("the expression is empty")
		}
		if flags == "i" {
			expression = "(?i)" + expression
		}
		var err error
		if c.expression, err = regexp.Compile(expression); err != nil {
			return fail(err.Error())
		}
		if c.expression.MatchString("") {
			return fail("the expression matches everything")
		}
		return c, nil
	}
	pattern, c.prefix = strings.CutSuffix(pattern, "*")
	c.words = foldWords(pattern)
	if strings.IndexFunc(c.words, isWord) < 0 {
		return fail("want a word")
	}
	return c, nil
}

// folded is an entry with its folded forms, made when first needed.
type folded struct {
	title, text           string
	foldTitle, foldText   string
	titleReady, textReady bool
}

func (f *folded) titleWords() string {
	if !f.titleReady {
		f.foldTitle, f.titleReady = foldWords(f.title), true
	}
	return f.foldTitle
}

func (f *folded) textWords() string {
	if !f.textReady {
		f.foldText, f.textReady = foldWords(f.text), true
	}
	return f.foldText
}

func (r *rule) matches(f *folded) bool {
	if r.expression != nil {
		return r.title && r.expression.MatchString(f.title) || r.text && r.expression.MatchString(f.text)
	}
	return r.title && r.in(f.titleWords()) || r.text && r.in(f.textWords())
}

// in reports whether the rule's words stand in s as whole words.
func (r *rule) in(s string) bool {
	for from := 0; ; {
		i := strings.Index(s[from:], r.words)
		if i < 0 {
			return false
		}
		start := from + i
		end := start + len(r.words)
		before, _ := utf8.DecodeLastRuneInString(s[:start])
		after, _ := utf8.DecodeRuneInString(s[end:])
		first, _ := utf8.DecodeRuneInString(r.words)
		last, _ := utf8.DecodeLastRuneInString(r.words)
		opens := !isWord(first) || start == 0 || !isWord(before)
		closes := r.prefix || !isWord(last) || end == len(s) || !isWord(after)
		if opens && closes {
			return true
		}
		_, size := utf8.DecodeRuneInString(s[start:])
		from = start + size
	}
}

// foldWords is s in the form that words are compared in: normalised, in lower
// case, with ё as е.
func foldWords(s string) string {
	return strings.ReplaceAll(strings.ToLower(ledger.Normalise(s)), "ё", "е")
}

func isWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) || r == '_'
}
