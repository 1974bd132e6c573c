package feed

import (
	"bytes"
	stdjson "encoding/json"
	"strings"

	"github.com/mmcdole/gofeed/json"

	"vesti.nixg.ru/crawl/plain"
)

// parseJSON reads a JSON Feed. What gofeed refuses is repaired and tried once
// more.
func (m *mapper) parseJSON(text string) (*Document, error) {
	text, left := boundJSON(text)
	f, err := (&json.Parser{}).Parse(strings.NewReader(text))
	cut := false
	if err != nil {
		var fixed string
		fixed, cut = repairJSON(text)
		fixed, more := boundJSON(fixed)
		left += more
		if fixed, err = coerceJSON(fixed); err != nil {
			return nil, notOrBroken(text, err)
		}
		if f, err = (&json.Parser{}).Parse(strings.NewReader(fixed)); err != nil {
			return nil, &BrokenError{Err: err}
		}
	}
	if !strings.Contains(f.Version, "jsonfeed.org") && len(f.Items) == 0 {
		return nil, notFeed(text)
	}
	doc := m.fromJSON(f)
	doc.Cut, doc.Truncated = cut, cut || left > 0
	doc.Listed = len(doc.Entries) + left
	return doc, nil
}

// boundJSON gives a document the limits that repair gives to one of XML.
func boundJSON(s string) (bounded string, left int) {
	if strings.Count(s, ",") < min(maxEntries, maxOfAName) {
		return s, 0
	}
	s, left = thinJSON(s)
	return shortenLists(s), left
}

// shortenLists leaves only the first elements in the lists of an item: authors,
// tags, attachments.
func shortenLists(s string) string {
	const depthOfLists = 4 // {"items":[{"tags":[
	var b strings.Builder
	depth, elements, copied := 0, 0, 0
	inString, inList := false, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth == depthOfLists {
				inList, elements = c == '[', 1
			}
		case c == ',' && depth == depthOfLists && inList:
			if elements++; elements == maxOfAName+1 {
				b.WriteString(s[copied:i])
				copied = len(s)
			}
		case c == '}' || c == ']':
			if depth == depthOfLists && inList && elements > maxOfAName {
				copied = i
			}
			depth--
		}
	}
	if b.Len() == 0 {
		return s
	}
	b.WriteString(s[copied:])
	return b.String()
}

// thinJSON leaves the middle out of a list of more than maxEntries items, before
// anything is made of them: the newest stand at one of its ends. It looks at
// lists that stand in the outermost object. left is how many items it left out.
func thinJSON(s string) (thin string, left int) {
	var b strings.Builder
	var commas []int // of the list that is open
	depth, copied, inString, inList := 0, 0, false, false
	const half = maxEntries / 2
	thinOut := func() {
		if more := len(commas) + 1 - maxEntries; inList && more > 0 {
			b.WriteString(s[copied : commas[half-1]+1])
			copied = commas[half-1+more] + 1
			left += more
		}
		commas, inList = commas[:0], false
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth == 2 {
				inList = c == '['
			}
		case c == ',' && depth == 2 && inList:
			commas = append(commas, i)
		case c == '}' || c == ']':
			if depth--; depth == 1 {
				thinOut()
			}
		}
	}
	thinOut()
	if left == 0 {
		return s, 0
	}
	b.WriteString(s[copied:])
	return b.String(), left
}

// notOrBroken tells JSON that cannot be read but means to be a feed from what
// is none.
func notOrBroken(text string, err error) error {
	if strings.Contains(text[:min(len(text), 4096)], "jsonfeed.org/version") {
		return &BrokenError{Err: err}
	}
	return notFeed(text)
}

func (m *mapper) fromJSON(f *json.Feed) *Document {
	doc := &Document{
		Format:      "json",
		Title:       plain.Line(f.Title),
		Description: plain.FromText(f.Description),
		Link:        m.firstWeb(f.HomePageURL),
		Author:      jsonAuthors(f.Authors, f.Author),
		Language:    f.Language,
		Entries:     make([]Entry, 0, len(f.Items)),
	}
	for _, it := range f.Items {
		if it == nil {
			continue
		}
		e := Entry{
			GUID:     strings.TrimSpace(it.ID),
			Title:    plain.Line(it.Title),
			Author:   jsonAuthors(it.Authors, it.Author),
			Summary:  Text{Value: strings.TrimSpace(it.Summary), kind: kindPlain},
			Language: it.Language,
		}
		if isPlaceholder(e.GUID) {
			e.GUID = ""
		}
		if e.Author == "" {
			e.Author = doc.Author
		}
		if strings.TrimSpace(it.ContentHTML) != "" {
			e.Content = Text{Value: it.ContentHTML, kind: kindHTML}
		} else {
			e.Content = Text{Value: strings.TrimSpace(it.ContentText), kind: kindPlain}
		}
		e.Published, e.PublishedRaw = m.date(it.DatePublished, it.DateModified)
		for _, t := range it.Tags {
			e.Categories = append(e.Categories, plain.Line(t))
		}
		media := []enclosure{{it.Image, "image"}}
		if it.Attachments != nil {
			for _, a := range *it.Attachments {
				media = append(media, enclosure{a.URL, a.MimeType})
			}
		}
		m.attach(&e, media)
		links := []string{it.URL, it.ExternalURL}
		if isWeb(e.GUID) {
			links = append(links, e.GUID)
		}
		if link := m.firstWeb(links...); link != "" {
			e.Link = link
		}
		doc.Entries = append(doc.Entries, e)
	}
	return doc
}

func jsonAuthors(all []*json.Author, one *json.Author) string {
	var names []string
	for _, a := range append(all, one) {
		if a != nil {
			names = append(names, a.Name)
		}
	}
	return authors(names)
}

// repairJSON closes a document that was cut after the last whole item, and
// mends what strict readers refuse: bare control characters in strings, commas
// before a closing bracket.
func repairJSON(s string) (fixed string, cut bool) {
	out := make([]byte, 0, len(s)+8)
	var open []byte
	inString, escaped := false, false
	whole := 0 // length of out up to the last whole item
	for i := range len(s) {
		c := s[i]
		switch {
		case inString:
			switch {
			case escaped:
				escaped = false
			case c == '\\':
				escaped = true
			case c == '"':
				inString = false
			case c < ' ':
				out = append(out, controlEscape(c)...)
				continue
			}
		case c == '"':
			inString = true
		case c == '{' || c == '[':
			open = append(open, c+2) // the closing bracket stands two after
		case c == '}' || c == ']':
			if len(open) == 0 || open[len(open)-1] != c {
				continue
			}
			open = open[:len(open)-1]
			out = append(bytes.TrimSuffix(bytes.TrimRight(out, " \t\r\n"), []byte(",")), c)
			if string(open) == "}]" {
				whole = len(out)
			}
			if len(open) == 0 {
				return string(out), false
			}
			continue
		}
		out = append(out, c)
	}
	return string(out[:whole]) + "]}", true
}

// controlEscape is how a control character in a string is kept: line breaks and
// tabs are, others are not.
func controlEscape(c byte) string {
	switch c {
	case '\n':
		return `\n`
	case '\t':
		return `\t`
	default:
		return ""
	}
}

// coerceJSON makes the fields of a feed what the format wants them to be: one
// field of another type would fail the whole document.
func coerceJSON(s string) (string, error) {
	dec := stdjson.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	var f map[string]any
	if err := dec.Decode(&f); err != nil {
		return "", err
	}
	coerceFields(f)
	items, _ := f["items"].([]any)
	kept := make([]any, 0, len(items))
	for _, it := range items {
		if item, ok := it.(map[string]any); ok {
			coerceFields(item)
			kept = append(kept, item)
		}
	}
	f["items"] = kept
	out, err := stdjson.Marshal(f)
	return string(out), err
}

func coerceFields(o map[string]any) {
	for key, v := range o {
		switch key {
		case "items", "expired":
		case "author":
			o[key] = coerceAuthor(v)
		case "authors":
			list, ok := v.([]any)
			if !ok {
				list = []any{v}
			}
			for i := range list {
				list[i] = coerceAuthor(list[i])
			}
			o[key] = list
		case "tags":
			list, ok := v.([]any)
			if !ok {
				list = []any{v}
			}
			for i := range list {
				list[i] = coerceString(list[i])
			}
			o[key] = list
		case "attachments":
			o[key] = coerceAttachments(v)
		case "version", "title", "home_page_url", "feed_url", "description", "user_comment", "next_url", "icon", "favicon", "language",
			"id", "url", "external_url", "content_html", "content_text", "summary", "image", "banner_image", "date_published", "date_modified":
			o[key] = coerceString(v)
		default:
			delete(o, key)
		}
	}
}

func coerceString(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case stdjson.Number:
		return v.String()
	default:
		return ""
	}
}

func coerceAuthor(v any) any {
	switch v := v.(type) {
	case string:
		return map[string]any{"name": v}
	case map[string]any:
		return map[string]any{"name": coerceString(v["name"]), "url": coerceString(v["url"])}
	default:
		return nil
	}
}

func coerceAttachments(v any) any {
	list, ok := v.([]any)
	if !ok {
		return nil
	}
	var kept []any
	for _, a := range list {
		if o, ok := a.(map[string]any); ok {
			kept = append(kept, map[string]any{"url": coerceString(o["url"]), "mime_type": coerceString(o["mime_type"])})
		}
	}
	return kept
}
