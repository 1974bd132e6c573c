package feed

import (
	"strings"

	"github.com/mmcdole/gofeed/atom"
)

func (m *mapper) fromAtom(f *atom.Feed) *Document {
	x := extensions(f.Extensions)
	links := atomLinks(f.Links)
	doc := &Document{
		Title:       firstText(f.Title, x.text("dc", "title")).Line(),
		Description: firstText(f.Subtitle, x.text("dc", "description"), x.text("itunes", "summary")).Plain(),
		ID:          strings.TrimSpace(f.ID),
		Author:      authors(firstList(persons(f.Authors), x.texts("dc", "creator"), []string{x.text("itunes", "author")})),
		Language:    x.text("dc", "language"),
		Link:        m.firstWeb(bestLink(links)),
	}
	doc.Updated, doc.UpdatedRaw = m.date(f.Updated, x.text("dcterms", "modified"), x.text("dc", "date"), x.text("dcterms", "issued"), x.text("dcterms", "created"))
	self := ""
	for _, l := range links {
		if l.rel == "self" {
			self = m.firstWeb(l.href)
		}
	}
	doc.Entries = make([]Entry, 0, len(f.Entries))
	for _, en := range f.Entries {
		e := m.fromEntry(en, self)
		if e.Author == "" {
			e.Author = doc.Author // RFC 4287, 4.1.2
		}
		doc.Entries = append(doc.Entries, e)
	}
	return doc
}

func (m *mapper) fromEntry(en *atom.Entry, self string) Entry {
	x := extensions(en.Extensions)
	content := ""
	if en.Content != nil {
		content = en.Content.Value
	}
	e := Entry{
		Title:   firstText(en.Title, x.text("dc", "title"), x.text("media", "title"), x.text("itunes", "title")).Line(),
		Content: firstText(content, x.text("content", "encoded")),
		Summary: firstText(en.Summary, x.text("dc", "description"), x.text("media", "description"), x.text("itunes", "summary"), x.text("itunes", "subtitle")),
		Author:  authors(firstList(persons(en.Authors), x.texts("dc", "creator"), []string{x.text("itunes", "author")}, []string{x.text("media", "credit")})),
	}
	e.Published, e.PublishedRaw = m.date(en.Published, x.text("dcterms", "issued"), x.text("dc", "date"), x.text("dcterms", "created"), en.Updated, x.text("dcterms", "modified"))
	if e.GUID = strings.TrimSpace(en.ID); isPlaceholder(e.GUID) {
		e.GUID = ""
	}
	for _, c := range en.Categories {
		e.Categories = append(e.Categories, newText(c.Term).Line())
	}
	links := atomLinks(en.Links)
	media := x.media()
	for _, l := range links {
		if l.rel == "enclosure" {
			media = append(media, enclosure{l.href, l.typ})
		}
	}
	m.attach(&e, media)
	candidates := []string{x.text("feedburner", "origLink"), bestLink(links)}
	if isWeb(e.GUID) {
		candidates = append(candidates, e.GUID)
	}
	for _, c := range candidates {
		if u := m.firstWeb(c); u != "" && u != self {
			e.Link = u
			break
		}
	}
	return e
}

// persons returns the names of Atom's persons, or their addresses.
func persons(all []*atom.Person) []string {
	var names []string
	for _, p := range all {
		names = append(names, firstNonEmpty(strings.TrimSpace(p.Name), strings.TrimSpace(p.Email)))
	}
	return names
}

// link is an Atom link.
type link struct{ href, rel, typ string }

func atomLinks(all []*atom.Link) []link {
	links := make([]link, 0, len(all))
	for _, l := range all {
		links = append(links, link{href: l.Href, rel: l.Rel, typ: l.Type})
	}
	return links
}

// bestLink returns the address of what the links belong to, as a page to read:
// an alternate in HTML, else one of no named type, else of any.
func bestLink(links []link) string {
	best, rank := "", 0
	for _, l := range links {
		if l.rel != "" && l.rel != "alternate" && l.rel != "http://www.iana.org/assignments/relation/alternate" {
			continue
		}
		r := 1
		switch {
		case strings.HasPrefix(l.typ, "text/html"), strings.HasPrefix(l.typ, "application/xhtml"):
			r = 3
		case l.typ == "":
			r = 2
		}
		if r > rank {
			best, rank = l.href, r
		}
	}
	return best
}
