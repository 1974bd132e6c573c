package feed

import (
	"net/url"
	"path"
	"slices"
	"strings"

	ext "github.com/mmcdole/gofeed/extensions"
	"github.com/mmcdole/gofeed/rss"
)

func (m *mapper) fromRSS(f *rss.Feed) *Document {
	x := extensions(f.Extensions)
	doc := &Document{
		Title:       firstText(f.Title, x.text("atom", "title"), x.text("dc", "title")).Line(),
		Description: firstText(f.Description, x.text("dc", "description"), x.text("atom", "subtitle"), x.text("itunes", "summary"), x.text("itunes", "subtitle")).Plain(),
		ID:          strings.TrimSpace(x.text("atom", "id")),
		Author:      authors(firstList([]string{f.ManagingEditor}, x.texts("atom", "author"), x.texts("dc", "creator"), []string{x.text("itunes", "author")}, []string{f.WebMaster})),
		Language:    strings.TrimSpace(firstNonEmpty(f.Language, x.text("dc", "language"))),
	}
	doc.Updated, doc.UpdatedRaw = m.date(f.LastBuildDate, x.text("atom", "updated"), x.text("dcterms", "modified"), f.PubDate, x.text("dc", "date"), x.text("dcterms", "issued"), x.text("dcterms", "created"))
	doc.Link = m.firstWeb(f.Link, bestLink(x.links()))
	items := *m
	items.base = itemBase(m.base, doc.Link)
	doc.Entries = make([]Entry, 0, len(f.Items))
	for _, it := range f.Items {
		doc.Entries = append(doc.Entries, items.fromItem(it))
	}
	return doc
}

// itemBase is what relative links of RSS items are relative to, which the
// format leaves open: the site where it is another host than the feed's, as
// with feeds served from elsewhere, else the feed.
func itemBase(feed *url.URL, link string) *url.URL {
	site, err := url.Parse(link)
	if err != nil || site.Host == "" || feed != nil && strings.EqualFold(feed.Host, site.Host) {
		return feed
	}
	return site
}

func (m *mapper) fromItem(it *rss.Item) Entry {
	x := extensions(it.Extensions)
	e := Entry{
		Title:      firstText(it.Title, x.text("atom", "title"), x.text("dc", "title"), x.text("itunes", "title"), x.text("media", "title")).Line(),
		Content:    firstText(it.Content),
		Summary:    firstText(it.Description, x.text("atom", "summary"), x.text("dc", "description"), x.text("itunes", "summary"), x.text("media", "description"), x.text("itunes", "subtitle")),
		Author:     authors(firstList([]string{it.Author}, x.texts("dc", "creator"), x.texts("atom", "author"), []string{x.text("itunes", "author")}, []string{x.text("media", "credit")})),
		Categories: rssCategories(it),
	}
	e.Published, e.PublishedRaw = m.date(it.PubDate, x.text("dcterms", "issued"), x.text("dc", "date"), x.text("dcterms", "created"), x.text("atom", "updated"), x.text("dcterms", "modified"))
	media := x.media()
	for _, enc := range it.Enclosures {
		media = append(media, enclosure{enc.URL, enc.Type})
	}
	m.attach(&e, media)
	permalink := ""
	if it.GUID != nil {
		if e.GUID = strings.TrimSpace(it.GUID.Value); isPlaceholder(e.GUID) {
			e.GUID = ""
		}
		says := strings.TrimSpace(it.GUID.IsPermalink)
		if isWeb(e.GUID) && !strings.EqualFold(says, "false") || strings.HasPrefix(e.GUID, "/") && strings.EqualFold(says, "true") {
			permalink = e.GUID
		}
	}
	if id := strings.TrimSpace(x.text("atom", "id")); e.GUID == "" && !isPlaceholder(id) {
		e.GUID = id
	}
	links := append([]string{x.text("feedburner", "origLink")}, it.Links...)
	links = append(links, bestLink(x.links()), permalink)
	if link := m.firstWeb(links...); link != "" {
		e.Link = link
	}
	return e
}

func rssCategories(it *rss.Item) []string {
	var all []string
	for _, c := range it.Categories {
		if term := newText(c.Value).Line(); term != "" {
			all = append(all, term)
		}
	}
	return all
}

// firstWeb returns the first of the links that is a web address.
func (m *mapper) firstWeb(links ...string) string {
	for _, l := range links {
		if l == "" {
			continue
		}
		if u := webURL(m.base, l); u != "" {
			return u
		}
	}
	return ""
}

// enclosure is a file that belongs to an entry.
type enclosure struct {
	url string
	typ string // of MIME, or a medium: "image"
}

func (c enclosure) isImage() bool {
	ext := strings.ToLower(path.Ext(strings.TrimRight(c.url, "/")))
	return strings.HasPrefix(strings.ToLower(c.typ), "image") ||
		slices.Contains([]string{".jpg", ".jpeg", ".png", ".gif", ".webp", ".svg", ".avif"}, ext)
}

const maxMedia = 16

// attach gives the entry its enclosures, each once. The first that is no
// picture is the entry's link, for want of another.
func (m *mapper) attach(e *Entry, enclosures []enclosure) {
	for _, c := range enclosures {
		if len(e.Media) == maxMedia {
			return
		}
		u := m.firstWeb(c.url)
		if u == "" || slices.Contains(e.Media, u) {
			continue
		}
		e.Media = append(e.Media, u)
		if e.Link == "" && !c.isImage() {
			e.Link = u
		}
	}
}

func isWeb(s string) bool {
	lower := strings.ToLower(s[:min(len(s), 8)])
	return strings.HasPrefix(lower, "http://") || strings.HasPrefix(lower, "https://")
}

// extensions are the elements of other vocabularies, by prefix and name.
type extensions ext.Extensions

func (x extensions) text(prefix, name string) string {
	if all := x[prefix][name]; len(all) > 0 {
		return all[0].Value
	}
	return ""
}

func (x extensions) texts(prefix, name string) []string {
	var all []string
	for _, e := range x[prefix][name] {
		all = append(all, e.Value)
	}
	return all
}

func (x extensions) media() []enclosure {
	var all []enclosure
	for _, c := range x["media"]["content"] {
		all = append(all, enclosure{c.Attrs["url"], firstNonEmpty(c.Attrs["type"], c.Attrs["medium"])})
	}
	return all
}

func (x extensions) links() []link {
	var all []link
	for _, e := range x["atom"]["link"] {
		all = append(all, link{href: e.Attrs["href"], rel: e.Attrs["rel"], typ: e.Attrs["type"]})
	}
	return all
}

// firstList returns the first of the lists that holds something.
func firstList(lists ...[]string) []string {
	for _, l := range lists {
		for _, s := range l {
			if s != "" {
				return l
			}
		}
	}
	return nil
}

func firstNonEmpty(all ...string) string {
	for _, s := range all {
		if s != "" {
			return s
		}
	}
	return ""
}
