package llm

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"vesti.nixg.ru/classify/words"
	"vesti.nixg.ru/ledger"
)

const (
	maxReason = 160 // characters
	// maxObjects is how many objects are looked at for the answer.
	maxObjects = 50
	// leakLength is how many characters of the instructions an answer may repeat.
	leakLength = 40
	// slack is by how much a summary may exceed its limit before it is refused:
	// not every server keeps to a schema's lengths.
	slack = 2
)

// reply is an answer that was checked.
type reply struct {
	direction ledger.Direction // "" for none
	relevance float64          // 0 to 1
	interest  float64
	summary   string
	reason    string
}

// check is what an answer is checked against.
type check struct {
	allowed    []ledger.Direction
	item       *ledger.Item
	nonce      string
	system     string
	maxSummary int
}

// parse checks an answer: that it ended by itself, is the object asked for, and
// says nothing that it may not. What fails is a failure, never a low score.
func (c check) parse(a answer) (reply, error) {
	content := spoken(a.content)
	switch {
	case a.clipped:
		return reply{}, tooLong{&Error{cause: ledger.CauseTooLarge, final: true, text: "the server clipped the prompt: the instructions were lost"}}
	case content == "" && a.thinking:
		return reply{}, fail(ledger.CauseEmptyReply, "the model thought and said nothing (%s): set think to off", a.reason)
	case content == "" && a.reason == "length":
		return reply{}, fail(ledger.CauseEmptyReply, "nothing but white space or thoughts until the limit")
	case content == "":
		return reply{}, fail(ledger.CauseEmptyReply, "an empty answer (%s)", a.reason)
	case !a.done:
		return reply{}, fail(ledger.CauseTruncated, "the server gave up in the middle of the answer")
	case a.reason == "length":
		return reply{}, fail(ledger.CauseTruncated, "the answer was cut at its limit")
	case a.reason != "" && a.reason != "stop":
		return reply{}, fail(ledger.CauseBadReply, "the answer ended with %q", a.reason)
	}
	object, err := objectIn(content)
	if err != nil {
		return reply{}, err
	}
	var raw struct {
		Direction *string      `json:"direction"`
		Relevance *json.Number `json:"relevance"`
		Interest  *json.Number `json:"interest"`
		Summary   *string      `json:"summary"`
		Reason    string       `json:"reason"`
	}
	if err := json.Unmarshal([]byte(object), &raw); err != nil {
		return reply{}, &Error{cause: ledger.CauseBadReply, text: "the answer does not fit the schema", err: err}
	}
	if raw.Direction == nil || raw.Relevance == nil || raw.Interest == nil || raw.Summary == nil {
		return reply{}, fail(ledger.CauseBadReply, "the answer lacks direction, relevance, interest or summary")
	}
	var r reply
	if r.direction, err = c.direction(*raw.Direction); err != nil {
		return reply{}, err
	}
	if r.relevance, err = score("relevance", *raw.Relevance); err != nil {
		return reply{}, err
	}
	if r.interest, err = score("interest", *raw.Interest); err != nil {
		return reply{}, err
	}
	if r.summary, err = c.summary(*raw.Summary); err != nil {
		return reply{}, err
	}
	if reason := plain(raw.Reason); !c.leaks(reason) {
		r.reason = firstRunes(reason, maxReason)
	}
	return r, nil
}

// spoken is an answer without the thoughts before it.
func spoken(content string) string {
	content = strings.TrimSpace(content)
	if strings.HasPrefix(content, "{") {
		return content // a tag in there is part of a text
	}
	for _, tag := range []string{"think", "thinking", "thought"} {
		begin, end := "<"+tag+">", "</"+tag+">"
		if i := strings.Index(content, end); i >= 0 {
			content = strings.TrimSpace(content[i+len(end):])
		} else if strings.HasPrefix(content, begin) {
			return "" // thoughts without an end
		}
	}
	return content
}

// objectIn cuts the JSON object out of an answer that may have prose or a code
// fence around it, or other objects before it: the first one that has a
// direction, else the first.
func objectIn(content string) (string, error) {
	first, cut := "", false
	rest := content
	for range maxObjects {
		i := strings.IndexByte(rest, '{')
		if i < 0 {
			break
		}
		rest = rest[i:]
		var object json.RawMessage
		err := json.NewDecoder(strings.NewReader(rest)).Decode(&object)
		if err == nil {
			var has struct{ Direction json.RawMessage }
			if json.Unmarshal(object, &has) == nil && has.Direction != nil {
				return string(object), nil
			}
			first = cmp.Or(first, string(object))
		} else if _, broken := errors.AsType[*json.SyntaxError](err); !broken {
			cut = true // the answer ends within it
		}
		rest = rest[1:]
	}
	switch {
	case first != "":
		return first, nil
	case cut:
		return "", fail(ledger.CauseTruncated, "the answer breaks off within its object")
	default:
		return "", fail(ledger.CauseBadReply, "no JSON object in the answer")
	}
}

func (c check) direction(said string) (ledger.Direction, error) {
	said = strings.ToLower(strings.TrimFunc(said, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(".,:;!\"'`*«»“”", r) }))
	if said == none {
		return "", nil
	}
	i := slices.IndexFunc(c.allowed, func(d ledger.Direction) bool { return strings.ToLower(string(d)) == said })
	if i < 0 {
		return "", fail(ledger.CauseBadReply, "direction %q is not among %s", ledger.CutText(said, errorText), names(c.allowed))
	}
	return c.allowed[i], nil
}

// score reads 0 to 100. A number as large as 2e9208576 is no number.
func score(name string, n json.Number) (float64, error) {
	f, err := n.Float64()
	if err != nil || f < 0 || f > 100 {
		return 0, fail(ledger.CauseBadReply, "%s %s is not between 0 and 100", name, ledger.CutText(n.String(), errorText))
	}
	return f / 100, nil
}

func (c check) summary(said string) (string, error) {
	s := plain(said)
	n := utf8.RuneCountInString(s)
	switch {
	case strings.IndexFunc(s, unicode.IsLetter) < 0:
		return "", fail(ledger.CauseBadReply, "an empty summary")
	case n > slack*c.maxSummary:
		return "", fail(ledger.CauseBadReply, "a summary of %d characters, at most %d were asked for", n, c.maxSummary)
	case c.leaks(s):
		return "", fail(ledger.CauseBadReply, "the summary repeats the instructions")
	case strangeLink(s, c.item):
		return "", fail(ledger.CauseBadReply, "the summary has a link that the post has not")
	}
	if foreign(s, c.item.Title+"\n"+c.item.Text) {
		return "", fail(ledger.CauseBadReply, "the summary is in another language than the post")
	}
	if n > c.maxSummary {
		s = cmp.Or(words.Lead("", s, c.maxSummary), firstRunes(s, c.maxSummary))
	}
	return s, nil
}

// foreign reports whether a summary is in an alphabet that hardly a letter in
// five of the text is in.
func foreign(summary, text string) bool {
	cyrillic, latin := letters(summary)
	textCyrillic, textLatin := letters(text)
	all := textCyrillic + textLatin
	return cyrillic > latin && textCyrillic*5 < all || latin > cyrillic && textLatin*5 < all
}

// plain makes one line of printable characters without markup.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == '<', r == '>', r == utf8.RuneError, !unicode.IsPrint(r):
			return -1
		default:
			return r
		}
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// leaks reports whether an answer repeats what only the prompt knows.
func (c check) leaks(s string) bool {
	if c.nonce != "" && strings.Contains(s, c.nonce) {
		return true
	}
	lower, system := strings.ToLower(s), strings.ToLower(plain(c.system))
	for i := 0; i+leakLength <= len(lower); i++ {
		if strings.Contains(system, lower[i:i+leakLength]) {
			return true
		}
	}
	return false
}

// strangeLink reports whether s has an address or a handle that the post does
// not mention.
func strangeLink(s string, item *ledger.Item) bool {
	post := strings.ToLower(item.Text + " " + item.Title + " " + item.URL)
	for field := range strings.FieldsSeq(strings.ToLower(s)) {
		if name := addressee(strings.TrimLeft(field, "([«“\"'")); name != "" && !strings.Contains(post, name) {
			return true
		}
	}
	return false
}

// addressee is the host of an address, with or without its scheme, or a handle;
// "" for a word that is neither.
func addressee(field string) string {
	if strings.HasPrefix(field, "@") {
		return strings.TrimRightFunc(field, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	}
	_, rest, scheme := strings.Cut(field, "://")
	if !scheme {
		rest = field
	}
	host, _, path := strings.Cut(rest, "/")
	host, www := strings.CutPrefix(host, "www.")
	if i := strings.IndexAny(host, "?#:)]»\"',"); i >= 0 {
		host = host[:i]
	}
	top := host[strings.LastIndexByte(host, '.')+1:]
	named := path && len(top) > 1 && len(top) < len(host) && strings.IndexFunc(top, unicode.IsLetter) == 0
	if !scheme && !www && !named {
		return ""
	}
	return host
}
