package feed

import "strings"

// vocabulary is a set of element names, as told apart by namespaces.
type vocabulary uint8

const (
	vocabCore vocabulary = iota // RSS, Atom and CDF: what has no prefix in practice
	vocabAtom
	vocabDC
	vocabDCTerms
	vocabContent
	vocabITunes
	vocabMedia
	vocabXHTML
	vocabFeedBurner
	vocabRDF
	vocabOther
)

// prefixes are the ones under which parts are handed to gofeed, which knows
// vocabularies by these names.
var prefixes = [...]struct{ prefix, uri string }{
	vocabAtom:       {"atom", "http://www.w3.org/2005/Atom"},
	vocabDC:         {"dc", "http://purl.org/dc/elements/1.1/"},
	vocabDCTerms:    {"dcterms", "http://purl.org/dc/terms/"},
	vocabContent:    {"content", "http://purl.org/rss/1.0/modules/content/"},
	vocabITunes:     {"itunes", "http://www.itunes.com/dtds/podcast-1.0.dtd"},
	vocabMedia:      {"media", "http://search.yahoo.com/mrss/"},
	vocabFeedBurner: {"feedburner", "http://rssnamespace.org/feedburner/ext/1.0"},
}

// vocabularyOf returns the vocabulary of a namespace. Real feeds vary in case,
// closing slashes and versions.
func vocabularyOf(uri string) vocabulary {
	uri = strings.TrimRight(strings.ToLower(strings.TrimSpace(uri)), "/#")
	switch uri {
	case "", "http://backend.userland.com/rss", "http://backend.userland.com/rss2", "http://blogs.law.harvard.edu/tech/rss",
		"http://cyber.law.harvard.edu/rss", "http://purl.org/rss/1.0", "http://my.netscape.com/rdf/simple/0.9",
		"http://my.netscape.com/publish/formats/rss-0.9.dtd", "http://my.netscape.com/publish/formats/rss-0.91.dtd",
		"http://channel.netscape.com/rdf/simple/0.9", "http://purl.org/net/rss1.1", "http://purl.org/rss/1.0/modules/rss091",
		"http://example.com/newformat", "http://example.com/necho", "http://purl.org/echo",
		"uri/of/echo/namespace", "http://purl.org/pie":
		return vocabCore
	case "http://www.w3.org/2005/atom", "https://www.w3.org/2005/atom", "http://purl.org/atom/ns":
		return vocabAtom
	case "http://purl.org/dc/elements/1.1", "http://purl.org/dc/elements/1.0", "http://purl.org/metadata/dublin_core":
		return vocabDC
	case "http://purl.org/dc/terms":
		return vocabDCTerms
	case "http://purl.org/rss/1.0/modules/content":
		return vocabContent
	case "http://www.w3.org/1999/xhtml", "http://www.w3.org/1999/html":
		return vocabXHTML
	case "http://www.w3.org/1999/02/22-rdf-syntax-ns":
		return vocabRDF
	case "http://rssnamespace.org/feedburner/ext/1.0":
		return vocabFeedBurner
	}
	switch {
	case strings.Contains(uri, "podcast-1.0.dtd"):
		return vocabITunes
	case strings.HasPrefix(uri, "http://search.yahoo.com/mrss"), strings.HasPrefix(uri, "https://search.yahoo.com/mrss"),
		strings.HasPrefix(uri, "http://video.search.yahoo.com/mrss"), strings.HasPrefix(uri, "http://tools.search.yahoo.com/mrss"):
		return vocabMedia
	case strings.HasPrefix(uri, "http://purl.org/atom"):
		return vocabAtom
	default:
		return vocabOther
	}
}

// wellKnown returns the vocabulary that a prefix means where the document does
// not declare it.
func wellKnown(prefix string) vocabulary {
	switch strings.ToLower(prefix) {
	case "rss", "rss09", "rss10":
		return vocabCore
	case "atom", "atom10", "atom03", "a10":
		return vocabAtom
	case "dc":
		return vocabDC
	case "dcterms", "dct":
		return vocabDCTerms
	case "content":
		return vocabContent
	case "itunes":
		return vocabITunes
	case "media", "mrss":
		return vocabMedia
	case "xhtml":
		return vocabXHTML
	case "feedburner":
		return vocabFeedBurner
	case "rdf":
		return vocabRDF
	default:
		return vocabOther
	}
}

// handling is what becomes of an element.
type handling uint8

const (
	dropped   handling = iota // with all it holds
	container                 // its children count as its parent's
	itemStart
	textField  // text or markup
	plainField // text
	urlField   // a URL as text
	atomLink   // a URL in an attribute
	person
	guidField
	categoryField
	attrField // nothing but attributes
)

// rule says how an element is handled and under which name it goes to gofeed
// in an RSS and in an Atom document; "" where it has no place there.
type rule struct {
	handling  handling
	rss, atom string
	many      bool // several count; else the first that holds something
}

// most is how many elements of the rule's name count in an entry.
func (r rule) most() int {
	if r.many {
		return maxOfAName
	}
	return 1
}

type element struct {
	vocab vocabulary
	local string // lower-case
}

// feedRules are the elements of the feed itself, itemRules those of an entry.
// Elements that stand in neither are dropped. vocabAtom stands for the Atom
// elements in both kinds of document: in an Atom document they have no prefix,
// and core names that Atom has too are looked up as Atom's.
var feedRules = map[element]rule{
	{vocabCore, "channel"}:       {handling: container},
	{vocabCore, "items"}:         {handling: dropped},
	{vocabCore, "item"}:          {handling: itemStart},
	{vocabCore, "entry"}:         {handling: itemStart},
	{vocabAtom, "entry"}:         {handling: itemStart},
	{vocabCore, "title"}:         {handling: textField, rss: "title"},
	{vocabAtom, "title"}:         {handling: textField, rss: "atom:title", atom: "title"},
	{vocabDC, "title"}:           {handling: textField, rss: "dc:title", atom: "dc:title"},
	{vocabCore, "link"}:          {handling: urlField, rss: "link"},
	{vocabCore, "a"}:             {handling: atomLink, rss: "atom:link"},
	{vocabAtom, "link"}:          {handling: atomLink, rss: "atom:link", atom: "link", many: true},
	{vocabCore, "description"}:   {handling: textField, rss: "description", atom: "subtitle"},
	{vocabCore, "abstract"}:      {handling: textField, rss: "description"},
	{vocabDC, "description"}:     {handling: textField, rss: "dc:description", atom: "dc:description"},
	{vocabAtom, "subtitle"}:      {handling: textField, rss: "atom:subtitle", atom: "subtitle"},
	{vocabAtom, "tagline"}:       {handling: textField, rss: "atom:subtitle", atom: "subtitle"},
	{vocabCore, "tagline"}:       {handling: textField, rss: "atom:subtitle"},
	{vocabITunes, "summary"}:     {handling: textField, rss: "itunes:summary", atom: "itunes:summary"},
	{vocabITunes, "subtitle"}:    {handling: textField, rss: "itunes:subtitle", atom: "itunes:subtitle"},
	{vocabCore, "language"}:      {handling: plainField, rss: "language"},
	{vocabDC, "language"}:        {handling: plainField, rss: "dc:language", atom: "dc:language"},
	{vocabAtom, "id"}:            {handling: plainField, rss: "atom:id", atom: "id"},
	{vocabCore, "id"}:            {handling: plainField, rss: "atom:id"},
	{vocabCore, "pubdate"}:       {handling: plainField, rss: "pubDate"},
	{vocabCore, "lastbuilddate"}: {handling: plainField, rss: "lastBuildDate"},
	{vocabAtom, "updated"}:       {handling: plainField, rss: "atom:updated", atom: "updated"},
	{vocabAtom, "modified"}:      {handling: plainField, rss: "atom:updated", atom: "updated"},
	{vocabAtom, "published"}:     {handling: plainField, rss: "dcterms:issued", atom: "dcterms:issued"},
	{vocabAtom, "issued"}:        {handling: plainField, rss: "dcterms:issued", atom: "dcterms:issued"},
	{vocabDC, "date"}:            {handling: plainField, rss: "dc:date", atom: "dc:date"},
	{vocabDCTerms, "modified"}:   {handling: plainField, rss: "dcterms:modified", atom: "dcterms:modified"},
	{vocabDCTerms, "issued"}:     {handling: plainField, rss: "dcterms:issued", atom: "dcterms:issued"},
	{vocabDCTerms, "created"}:    {handling: plainField, rss: "dcterms:created", atom: "dcterms:created"},
	{vocabCore, "managingeditor"}: {
		handling: person, rss: "managingEditor",
	},
	{vocabCore, "webmaster"}: {handling: person, rss: "webMaster"},
	{vocabCore, "author"}:    {handling: person, rss: "atom:author"},
	{vocabAtom, "author"}:    {handling: person, rss: "atom:author", atom: "author", many: true},
	{vocabDC, "creator"}:     {handling: person, rss: "dc:creator", atom: "dc:creator", many: true},
	{vocabDC, "author"}:      {handling: person, rss: "dc:creator", atom: "dc:creator", many: true},
	{vocabITunes, "author"}:  {handling: person, rss: "itunes:author", atom: "itunes:author"},
	{vocabITunes, "owner"}:   {handling: person, rss: "itunes:owner", atom: "itunes:owner"},
}

var itemRules = map[element]rule{
	{vocabCore, "title"}:          {handling: textField, rss: "title"},
	{vocabAtom, "title"}:          {handling: textField, rss: "atom:title", atom: "title"},
	{vocabDC, "title"}:            {handling: textField, rss: "dc:title", atom: "dc:title"},
	{vocabITunes, "title"}:        {handling: textField, rss: "itunes:title", atom: "itunes:title"},
	{vocabMedia, "title"}:         {handling: textField, rss: "media:title", atom: "media:title"},
	{vocabCore, "link"}:           {handling: urlField, rss: "link", many: true},
	{vocabCore, "url"}:            {handling: urlField, rss: "link", many: true},
	{vocabCore, "a"}:              {handling: atomLink, rss: "atom:link"},
	{vocabAtom, "link"}:           {handling: atomLink, rss: "atom:link", atom: "link", many: true},
	{vocabFeedBurner, "origlink"}: {handling: urlField, rss: "feedburner:origLink", atom: "feedburner:origLink"},
	{vocabCore, "guid"}:           {handling: guidField, rss: "guid"},
	{vocabCore, "id"}:             {handling: plainField, rss: "atom:id"},
	{vocabAtom, "id"}:             {handling: plainField, rss: "atom:id", atom: "id"},
	{vocabCore, "description"}:    {handling: textField, rss: "description"},
	{vocabCore, "abstract"}:       {handling: textField, rss: "description"},
	{vocabCore, "summary"}:        {handling: textField, rss: "atom:summary"},
	{vocabAtom, "summary"}:        {handling: textField, rss: "atom:summary", atom: "summary"},
	{vocabDC, "description"}:      {handling: textField, rss: "dc:description", atom: "dc:description"},
	{vocabDCTerms, "abstract"}:    {handling: textField, rss: "dc:description", atom: "dc:description"},
	{vocabITunes, "summary"}:      {handling: textField, rss: "itunes:summary", atom: "itunes:summary"},
	{vocabITunes, "subtitle"}:     {handling: textField, rss: "itunes:subtitle", atom: "itunes:subtitle"},
	{vocabMedia, "description"}:   {handling: textField, rss: "media:description", atom: "media:description"},
	{vocabContent, "encoded"}:     {handling: textField, rss: "content:encoded", atom: "content:encoded"},
	{vocabCore, "encoded"}:        {handling: textField, rss: "content:encoded"},
	{vocabCore, "content"}:        {handling: textField, rss: "content:encoded"},
	{vocabCore, "body"}:           {handling: textField, rss: "content:encoded"},
	{vocabCore, "fullitem"}:       {handling: textField, rss: "content:encoded"},
	{vocabCore, "full-text"}:      {handling: textField, rss: "content:encoded"},
	{vocabCore, "fulltext"}:       {handling: textField, rss: "content:encoded"},
	{vocabOther, "full-text"}:     {handling: textField, rss: "content:encoded"}, // yandex:, mailru:, rambler:
	{vocabOther, "fulltext"}:      {handling: textField, rss: "content:encoded"},
	{vocabXHTML, "body"}:          {handling: textField, rss: "content:encoded", atom: "content:encoded"},
	{vocabXHTML, "div"}:           {handling: textField, rss: "content:encoded"},
	{vocabAtom, "content"}:        {handling: textField, rss: "content:encoded", atom: "content"},
	{vocabCore, "pubdate"}:        {handling: plainField, rss: "pubDate"},
	{vocabCore, "date"}:           {handling: plainField, rss: "dc:date"},
	{vocabCore, "published"}:      {handling: plainField, rss: "dcterms:issued"},
	{vocabCore, "issued"}:         {handling: plainField, rss: "dcterms:issued"},
	{vocabCore, "updated"}:        {handling: plainField, rss: "atom:updated"},
	{vocabCore, "modified"}:       {handling: plainField, rss: "atom:updated"},
	{vocabCore, "lastbuilddate"}:  {handling: plainField, rss: "atom:updated"},
	{vocabAtom, "published"}:      {handling: plainField, rss: "dcterms:issued", atom: "published"},
	{vocabAtom, "issued"}:         {handling: plainField, rss: "dcterms:issued", atom: "published"},
	{vocabAtom, "created"}:        {handling: plainField, rss: "dcterms:created", atom: "dcterms:created"},
	{vocabAtom, "updated"}:        {handling: plainField, rss: "atom:updated", atom: "updated"},
	{vocabAtom, "modified"}:       {handling: plainField, rss: "atom:updated", atom: "updated"},
	{vocabCore, "created"}:        {handling: plainField, rss: "dcterms:created"},
	{vocabDC, "date"}:             {handling: plainField, rss: "dc:date", atom: "dc:date"},
	{vocabDCTerms, "issued"}:      {handling: plainField, rss: "dcterms:issued", atom: "dcterms:issued"},
	{vocabDCTerms, "created"}:     {handling: plainField, rss: "dcterms:created", atom: "dcterms:created"},
	{vocabDCTerms, "modified"}:    {handling: plainField, rss: "dcterms:modified", atom: "dcterms:modified"},
	{vocabCore, "author"}:         {handling: person, rss: "author"},
	{vocabCore, "managingeditor"}: {handling: person, rss: "atom:author"},
	{vocabAtom, "author"}:         {handling: person, rss: "atom:author", atom: "author", many: true},
	{vocabDC, "creator"}:          {handling: person, rss: "dc:creator", atom: "dc:creator", many: true},
	{vocabDC, "author"}:           {handling: person, rss: "dc:creator", atom: "dc:creator", many: true},
	{vocabITunes, "author"}:       {handling: person, rss: "itunes:author", atom: "itunes:author"},
	{vocabMedia, "credit"}:        {handling: person, rss: "media:credit", atom: "media:credit"},
	{vocabCore, "category"}:       {handling: categoryField, rss: "category", many: true},
	{vocabAtom, "category"}:       {handling: categoryField, rss: "category", atom: "category", many: true},
	{vocabDC, "subject"}:          {handling: categoryField, rss: "category", atom: "category", many: true},
	{vocabMedia, "category"}:      {handling: categoryField, rss: "category", atom: "category", many: true},
	{vocabCore, "enclosure"}:      {handling: attrField, rss: "enclosure", many: true},
	{vocabMedia, "group"}:         {handling: container},
	{vocabMedia, "content"}:       {handling: container, rss: "media:content", atom: "media:content", many: true},
}
