package crawl

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"golang.org/x/net/html/charset"

	"vesti.nixg.ru/ledger"
)

// opml is a document of OPML 2.0, <http://opml.org/spec2.opml>.
type opml struct {
	XMLName xml.Name  `xml:"opml"`
	Version string    `xml:"version,attr"`
	Title   string    `xml:"head>title"`
	Body    []outline `xml:"body>outline"`
}

type outline struct {
	Type     string    `xml:"type,attr,omitempty"`
	Text     string    `xml:"text,attr"`
	Title    string    `xml:"title,attr,omitempty"`
	XMLURL   string    `xml:"xmlUrl,attr,omitempty"`
	HTMLURL  string    `xml:"htmlUrl,attr,omitempty"`
	URL      string    `xml:"url,attr,omitempty"`
	Language string    `xml:"language,attr,omitempty"`
	Category string    `xml:"category,attr,omitempty"`
	Children []outline `xml:"outline"`
}

// Import says what an OPML file's subscriptions become.
type Import struct {
	Existing   []Source           // neither their slugs nor their addresses are taken again
	Directions []ledger.Direction // the configured set; a folder with such a name gives its feeds that direction
	Direction  ledger.Direction   // of the others
	Priority   ledger.Priority
}

// Imported is what became of an OPML file's subscriptions.
type Imported struct {
	Sources   []Source
	Skipped   []Skipped
	Defaulted []Defaulted // in the order of the file
}

// Defaulted is a folder whose name is no direction, so that its sources were
// given that of the import.
type Defaulted struct {
	Folder    string           `json:"folder"` // with those around it, "Reading / Sport"; "" for sources in no folder
	Direction ledger.Direction `json:"direction"`
	Sources   int              `json:"sources"`
}

// Skipped is an outline that became no source.
type Skipped struct {
	Title string `json:"title"`
	URL   string `json:"url"`
	Why   string `json:"why"`
}

// ImportOPML reads the subscriptions of an OPML file, folders within folders
// too, as sources with slugs made from their titles. What cannot become one is
// returned with the reason. The error matches ledger.ErrInvalid for a file that
// is no OPML.
func ImportOPML(r io.Reader, im Import) (Imported, error) {
	var doc opml
	d := xml.NewDecoder(r)
	d.Strict = false
	d.Entity = xml.HTMLEntity
	d.CharsetReader = charset.NewReaderLabel
	if err := d.Decode(&doc); err != nil {
		return Imported{}, fmt.Errorf("%w: no OPML: %w", ledger.ErrInvalid, err)
	}
	if len(im.Directions) == 0 {
		im.Directions = ledger.DefaultDirections()
	}
	imp := &importer{Import: im, slugs: map[ledger.Slug]bool{}, addresses: map[string]bool{}, out: Imported{Skipped: []Skipped{}, Defaulted: []Defaulted{}}}
	for _, s := range im.Existing {
		imp.slugs[s.Slug], imp.addresses[s.address()] = true, true
	}
	imp.walk(doc.Body, "", "")
	return imp.out, nil
}

type importer struct {
	Import
	slugs     map[ledger.Slug]bool
	addresses map[string]bool
	out       Imported
}

// walk takes the outlines of a folder, with the direction that it or one around
// it is named like.
func (imp *importer) walk(list []outline, folder string, direction ledger.Direction) {
	for _, o := range list {
		inner := direction
		for _, name := range append(strings.FieldsFunc(o.Category, func(r rune) bool { return r == ',' || r == '/' }), o.Text, o.Title) {
			if d := ledger.Direction(strings.ToLower(strings.TrimSpace(name))); slices.Contains(imp.Directions, d) {
				inner = d
			}
		}
		if len(o.Children) == 0 || o.XMLURL != "" {
			imp.take(o, folder, inner)
		}
		if len(o.Children) > 0 {
			imp.walk(o.Children, strings.TrimPrefix(folder+" / "+o.name(), " / "), inner)
		}
	}
}

// name is an outline's title on one line.
func (o outline) name() string { return strings.Join(strings.Fields(firstOf(o.Title, o.Text)), " ") }

func (imp *importer) take(o outline, folder string, named ledger.Direction) {
	title, direction := o.name(), cmp.Or(named, imp.Direction)
	src := Source{
		Name: title, URL: o.HTMLURL, FeedURL: strings.TrimSpace(o.XMLURL), Crawler: ledger.CrawlerRSS, Direction: direction,
		Lang: Language(o.Language), Priority: imp.Priority, Enabled: true, MaxItems: DefaultMaxItems, FullText: FullTextAuto,
		Backfill: DefaultBackfill,
	}
	skip := func(why string) {
		imp.out.Skipped = append(imp.out.Skipped, Skipped{Title: title, URL: firstOf(src.FeedURL, o.URL, o.HTMLURL), Why: why})
	}
	if src.FeedURL == "" {
		channel, err := ChannelName(firstOf(o.URL, o.HTMLURL))
		if err != nil || !strings.Contains(firstOf(o.URL, o.HTMLURL), "t.me/") {
			skip("it has no feed")
			return
		}
		src.Channel, src.Crawler, src.URL = channel, ledger.CrawlerTelegram, "https://t.me/"+channel
	} else if u, err := url.Parse(src.FeedURL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		skip("its address begins with neither http:// nor https://")
		return
	}
	if imp.addresses[src.address()] {
		skip("it is there already")
		return
	}
	if direction == "" {
		skip("it is in no folder that is named like a direction; give one to import it with")
		return
	}
	src.Slug = imp.slug(src)
	if src.Name == "" {
		src.Name = string(src.Slug)
	}
	imp.slugs[src.Slug], imp.addresses[src.address()] = true, true
	imp.out.Sources = append(imp.out.Sources, src)
	if named == "" {
		imp.defaulted(folder)
	}
}

// defaulted counts a source of a folder that names no direction.
func (imp *importer) defaulted(folder string) {
	i := slices.IndexFunc(imp.out.Defaulted, func(d Defaulted) bool { return d.Folder == folder })
	if i < 0 {
		i = len(imp.out.Defaulted)
		imp.out.Defaulted = append(imp.out.Defaulted, Defaulted{Folder: folder, Direction: imp.Direction})
	}
	imp.out.Defaulted[i].Sources++
}

func firstOf(list ...string) string {
	for _, s := range list {
		if strings.TrimSpace(s) != "" {
			return s
		}
	}
	return ""
}

// slug makes a free one of the title, else of the channel or the host.
func (imp *importer) slug(src Source) ledger.Slug {
	base := slugOf(src.Name)
	if len(base) < 2 {
		base = slugOf(src.Channel)
	}
	if u, err := url.Parse(src.FeedURL); err == nil && len(base) < 2 {
		base = slugOf(strings.TrimPrefix(u.Hostname(), "www."))
	}
	if base == "" {
		base = "feed"
	}
	slug := ledger.Slug(base)
	for n := 2; imp.slugs[slug]; n++ {
		slug = ledger.Slug(fmt.Sprintf("%s-%d", base, n))
	}
	return slug
}

// slugOf writes s with a slug's letters, Cyrillic ones by sound.
func slugOf(s string) string {
	const most = 40
	var b strings.Builder
	for _, r := range strings.ToLower(s) {
		switch latin, cyrillic := latinOf(r); {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		case cyrillic:
			b.WriteString(latin)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() >= most {
			break
		}
	}
	return strings.Trim(b.String(), "-")
}

func latinOf(r rune) (string, bool) {
	const first = 'а'
	letters := [...]string{
		"a", "b", "v", "g", "d", "e", "zh", "z", "i", "y", "k", "l", "m", "n", "o", "p", "r", "s", "t", "u", "f", "kh", "ts", "ch",
		"sh", "shch", "", "y", "", "e", "yu", "ya",
	}
	if r == 'ё' {
		return "e", true
	}
	if i := int(r - first); i >= 0 && i < len(letters) {
		return letters[i], true
	}
	return "", false
}

// ExportOPML writes the sources as OPML, a folder for each direction. Channels
// are links, since they have no feed.
func ExportOPML(w io.Writer, title string, sources []Source) error {
	folders := map[ledger.Direction][]outline{}
	for _, s := range sources {
		o := outline{Type: "rss", Text: s.Name, Title: s.Name, XMLURL: s.FeedURL, HTMLURL: s.URL, Language: s.Lang}
		if s.Crawler == ledger.CrawlerTelegram {
			o.Type, o.HTMLURL, o.URL = "link", "", s.address()
		}
		folders[s.Direction] = append(folders[s.Direction], o)
	}
	doc := opml{Version: "2.0", Title: title}
	for _, d := range slices.Sorted(maps.Keys(folders)) {
		doc.Body = append(doc.Body, outline{Text: string(d), Children: folders[d]})
	}
	b, err := xml.MarshalIndent(doc, "", "  ")
	if err == nil {
		_, err = w.Write(append(append([]byte(xml.Header), b...), '\n'))
	}
	if err != nil {
		return fmt.Errorf("write OPML: %w", err)
	}
	return nil
}

// sourceYAML is a source as sources.yaml has it; what is as by default is left
// out.
type sourceYAML struct {
	Slug      string `yaml:"slug"`
	Name      string `yaml:"name"`
	URL       string `yaml:"url,omitempty"`
	FeedURL   string `yaml:"feed_url,omitempty"`
	Channel   string `yaml:"channel,omitempty"`
	Crawler   string `yaml:"crawler"`
	Direction string `yaml:"direction"`
	Lang      string `yaml:"lang,omitempty"`
	Priority  string `yaml:"priority"`
}

// WriteSources writes imported sources as a list that can stand in, or be added
// to, the list of a sources.yaml.
func WriteSources(w io.Writer, sources []Source) error {
	list := make([]sourceYAML, len(sources))
	for i, s := range sources {
		list[i] = sourceYAML{
			string(s.Slug), s.Name, s.URL, s.FeedURL, s.Channel, string(s.Crawler), string(s.Direction), s.Lang, s.Priority.String(),
		}
	}
	b, err := yaml.MarshalWithOptions(list, yaml.IndentSequence(true))
	if err == nil {
		_, err = w.Write(b)
	}
	if err != nil {
		return fmt.Errorf("write sources: %w", err)
	}
	return nil
}
