package page

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"vesti.nixg.ru/crawl/plain"
)

// Extraction keeps some lines between and after paragraphs that lead away from
// the article: links to others, invitations to subscribe. They change from day
// to day and from reader to reader, so that without them an article is more
// often the same text again.

const (
	maxLinkLine  = 600 // bytes of a block that may be nothing but links
	linkShare    = 0.7 // of a block's text in links, from which on it is one
	maxPhrase    = 120 // characters of a line that may be an invitation
	minParagraph = 3   // lines that are kept in any case
)

// linkLines collects the texts of the page's blocks that are links in the main.
func linkLines(doc *html.Node) map[string]bool {
	lines := map[string]bool{}
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && isBlock(n.DataAtom) {
			if text, share := linked(n); share >= linkShare {
				lines[plain.Line(text)] = true
			}
		}
	}
	return lines
}

func isBlock(a atom.Atom) bool {
	switch a {
	case atom.P, atom.Div, atom.Li, atom.Dd, atom.Tr, atom.Section, atom.Aside,
		atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		return true
	default:
		return false
	}
}

// linked returns a block's text and the share of it that is in links; "" and 0
// for one that is too long to matter.
func linked(block *html.Node) (text string, share float64) {
	var b strings.Builder
	all, inLinks := 0, 0
	for n := range block.Descendants() {
		if n.Type != html.TextNode {
			continue
		}
		length := len(strings.TrimSpace(n.Data))
		b.WriteString(n.Data)
		if all += length; all > maxLinkLine {
			return "", 0
		}
		for up := n.Parent; up != nil && up != block; up = up.Parent {
			if up.DataAtom == atom.A {
				inLinks += length
				break
			}
		}
	}
	if all == 0 {
		return "", 0
	}
	return b.String(), float64(inLinks) / float64(all)
}

// withoutBoilerplate drops the lines of text that lead away from the article,
// unless hardly anything else is in it.
func withoutBoilerplate(text string, links map[string]bool) string {
	var b strings.Builder
	b.Grow(len(text))
	kept, gap := 0, false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			gap = true
			continue
		}
		if links[line] || isInvitation(line) {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
			if gap {
				b.WriteByte('\n')
			}
		}
		b.WriteString(line)
		gap = false
		kept++
	}
	if kept < minParagraph && b.Len() < len(text)/2 {
		return text
	}
	return b.String()
}

// isInvitation reports whether a line invites to read something else, to
// subscribe, to share or to comment, in the languages that vesti reads most.
func isInvitation(line string) bool {
	if utf8.RuneCountInString(line) > maxPhrase {
		return false
	}
	line = strings.TrimLeft(strings.ToLower(line), "→►▶•*-–—>»[( ")
	for _, p := range invitations {
		if strings.HasPrefix(line, p) {
			return true
		}
	}
	return false
}

var invitations = []string{
	"читайте также", "читайте ещё", "читайте еще", "читать также", "читайте по теме", "читайте подробнее", "смотрите также",
	"материалы по теме", "по теме:", "ещё по теме", "еще по теме", "другие новости", "подписывайтесь на", "подпишитесь на",
	"подписаться на", "следите за нашими", "поделиться в", "поделитесь", "оставить комментарий", "загрузка комментариев", "на правах рекламы",
	"read more:", "read also", "read next", "also read", "related articles", "related stories", "related posts", "related content",
	"related:", "see also:", "more on this", "more from", "more stories", "you may also like", "you might also like",
	"recommended for you", "sign up for", "sign up to", "subscribe to", "subscribe now", "follow us on", "share this", "leave a comment",
	"view comments", "no comments", "advertisement", "never miss", "be part of the conversation", "share your thoughts",
	"mehr zum thema", "weitere themen", "weitere artikel", "lesen sie auch", "lies auch", "auch lesen", "auch interessant",
	"das könnte sie auch", "das könnte dich auch", "ähnliche artikel", "ähnliche beiträge", "empfohlene beiträge", "jetzt abonnieren",
	"lire aussi", "à lire aussi", "lea también", "te puede interesar", "leggi anche", "leia também", "czytaj też", "czytaj także", "zobacz też",
}
