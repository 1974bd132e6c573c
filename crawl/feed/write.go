package feed

import "strings"

// write adds an element with a text. An empty one is left out.
func (r *repairer) write(name, value string) {
	if value == "" {
		return
	}
	r.mark(name)
	r.writeChild(name, value)
}

// mark notes that an element of that name is there, and its vocabulary.
func (r *repairer) mark(name string) {
	r.seen[name]++
	prefix, _, ok := strings.Cut(name, ":")
	if !ok {
		return
	}
	for v, p := range prefixes {
		if p.prefix == prefix {
			r.used[v] = true
		}
	}
}

func (r *repairer) writeChild(name, value string) {
	if value == "" {
		return
	}
	r.body = append(r.body, '<')
	r.body = append(r.body, name...)
	r.body = append(r.body, "><![CDATA["...)
	for {
		before, after, found := strings.Cut(value, "]]>")
		r.body = append(r.body, before...)
		if !found {
			break
		}
		// The end of a CDATA section inside a text: part it over two sections.
		r.body = append(r.body, "]]]]><![CDATA[>"...)
		value = after
	}
	r.body = append(r.body, "]]></"...)
	r.body = append(r.body, name...)
	r.body = append(r.body, '>')
}

// openTag begins an empty element with attributes; closeTag ends it.
func (r *repairer) openTag(name string) {
	r.mark(name)
	r.body = append(r.body, '<')
	r.body = append(r.body, name...)
}

func (r *repairer) closeTag() { r.body = append(r.body, "/>"...) }

func (r *repairer) writeAttribute(name, value string) {
	if value == "" {
		return
	}
	r.body = append(r.body, ' ')
	r.body = append(r.body, name...)
	r.body = append(r.body, `="`...)
	r.body = append(r.body, attributeEscaper.Replace(value)...)
	r.body = append(r.body, '"')
}

var attributeEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

// writeAttributes adds an empty element with those attributes of the start tag
// just read that matter.
func (r *repairer) writeAttributes(name string) {
	r.openTag(name)
	attributes(r.s.attrs, func(a attribute) bool {
		switch local := strings.ToLower(a.name); local {
		case "url", "href":
			r.writeAttribute("url", r.url(r.entities.decode(a.value)))
		case "type", "medium", "length":
			r.writeAttribute(local, r.entities.decode(a.value))
		}
		return true
	})
	r.closeTag()
}

func (r *repairer) writeGUID(value, permanent string) {
	value = strings.TrimSpace(value)
	if value == "" || r.seen["guid"] > 0 || r.dialect == dialectAtom {
		return
	}
	r.seen["guid"]++
	if strings.EqualFold(strings.TrimSpace(permanent), "false") {
		r.body = append(r.body, `<guid isPermaLink="false"><![CDATA[`...)
	} else {
		r.body = append(r.body, "<guid><![CDATA["...)
	}
	r.body = append(r.body, strings.ReplaceAll(value, "]]>", "]]]]><![CDATA[>")...)
	r.body = append(r.body, "]]></guid>"...)
}

// link adds an Atom link. One without href has its address as text.
func (r *repairer) link(out, attrs, text string) {
	href, rel, typ := "", "", ""
	attributes(attrs, func(a attribute) bool {
		switch strings.ToLower(a.name) {
		case "href":
			href = r.entities.decode(a.value)
		case "rel":
			rel = strings.ToLower(strings.TrimSpace(a.value))
		case "type":
			typ = strings.ToLower(strings.TrimSpace(a.value))
		}
		return true
	})
	if strings.TrimSpace(href) == "" {
		href = text
	}
	if href = r.url(href); href == "" {
		return
	}
	r.openTag(out)
	r.writeAttribute("href", href)
	r.writeAttribute("rel", rel)
	r.writeAttribute("type", typ)
	r.closeTag()
}

func (r *repairer) category(out, attrs, text string) {
	term := strings.TrimSpace(text)
	if term == "" {
		term = r.attribute(attrs, "label")
	}
	if term == "" {
		term = r.attribute(attrs, "term")
	}
	if term == "" {
		return
	}
	if r.dialect == dialectRSS {
		r.write(out, term)
		return
	}
	r.openTag(out)
	r.writeAttribute("term", term)
	r.closeTag()
}

// url returns ref against the document's own base, where it names one.
func (r *repairer) url(ref string) string {
	return resolveURL(r.base(), ref)
}
