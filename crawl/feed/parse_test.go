package feed

import (
	"strings"
	"testing"
)

func mustParse(t *testing.T, doc string) *Document {
	t.Helper()
	d, err := Parse([]byte(doc), ParseOptions{URL: "https://feed.example.org/dir/feed.xml"})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestRepair: documents that are not what they should be, and what must be read
// of them: title, link and text of the entries, as "title|link|text".
func TestRepair(t *testing.T) {
	for name, c := range map[string]struct {
		doc  string
		want []string
		cut  bool
	}{
		"junk before the prolog": {"\n\nWarning: mysql_connect()\n<?xml version='1.0'?><rss><channel><item><title>a</title></item></channel></rss>", []string{"a||"}, false},
		"inside a page":          {"<html><body><rss><channel><item><title>a</title></item></channel></rss></body></html>", []string{"a||"}, false},
		"escaped inside a page": {"<html><body><pre>&lt;?xml version=\"1.0\"?&gt;&lt;rss&gt;&lt;channel&gt;&lt;item&gt;&lt;title&gt;a &amp;amp; b&lt;/title&gt;" +
			"&lt;/item&gt;&lt;/channel&gt;&lt;/rss&gt;</pre></body></html>", []string{"a & b||"}, false},
		"control characters":       {"<rss><item><title>a\x08b&#x1F;&#8;c\x00</title></item></rss>", []string{"abc||"}, false},
		"entities of HTML":         {"<rss><item><title>&laquo;a&raquo;&nbsp;&mdash; &nosuch; & b</title></item></rss>", []string{"«a» — &nosuch; & b||"}, false},
		"entities of its own":      {`<!DOCTYPE rss [<!ENTITY me "Ann &amp; Co">]><rss><item><title>&me;</title></item></rss>`, []string{"Ann & Co||"}, false},
		"undeclared prefixes":      {"<rss><item><title>a</title><content:encoded>long</content:encoded><foo:bar>x</foo:bar><dc:creator>y</dc:creator></item></rss>", []string{"a||long"}, false},
		"prefixes of its own":      {`<rss xmlns:c="http://purl.org/rss/1.0/modules/content/"><item><c:encoded>long</c:encoded></item></rss>`, []string{"||long"}, false},
		"prefixed root":            {`<a:feed xmlns:a="http://www.w3.org/2005/Atom"><a:entry><a:title>a</a:title><a:link href="/x"/></a:entry></a:feed>`, []string{"a|https://feed.example.org/x|"}, false},
		"Atom without a namespace": {`<feed><entry><title>a</title><content type="html">&lt;p&gt;b&lt;/p&gt;</content></entry></feed>`, []string{"a||b"}, false},
		"RSS in Atom's namespace":  {`<rss xmlns="http://www.w3.org/2005/Atom"><channel><item><title>a</title><link>http://x.org/1</link></item></channel></rss>`, []string{"a|http://x.org/1|"}, false},
		"elements in capitals":     {"<RSS><CHANNEL><ITEM><TITLE>a</TITLE><LINK>http://x.org/1</LINK></ITEM></CHANNEL></RSS>", []string{"a|http://x.org/1|"}, false},
		"no end of an item":        {"<rss><channel><item><title>a</title><item><title>b</title></channel></rss>", []string{"a||", "b||"}, false},
		"no end of a title":        {"<rss><channel><item><title>a</item><item><title>b</title></item></channel></rss>", []string{"a||", "b||"}, false},
		"no end of a link":         {"<rss><channel><item><link>http://x.org/1<title>a</title></item></channel></rss>", []string{"a|http://x.org/1|"}, false},
		"no end of a description":  {"<rss><channel><item><title>a</title><description>b<pubDate>x</pubDate></item><item><title>c</title></item></channel></rss>", []string{"a||b", "c||"}, false},
		"ends that end nothing":    {"<rss><channel></foo></item><item></b><title>a</title></item></rss>", []string{"a||"}, false},
		"a quote left open":        {`<rss><channel><item><enclosure url="http://x.org/1.mp3><title>a</title></item></channel></rss>`, []string{"a|http://x.org/1.mp3|"}, false},
		"naked markup":             {"<rss><item><description>1 &lt; 2 <b>bold</b><p>next</p></description></item></rss>", []string{"||1 < 2 bold\n\nnext"}, false},
		"CDATA in pieces":          {"<rss><item><title><![CDATA[a]]> and <![CDATA[b]]]]><![CDATA[>]]></title></item></rss>", []string{"a and b]]>||"}, false},
		"escaped CDATA":            {"<rss><item><description>&lt;![CDATA[a &lt;b&gt;bold&lt;/b&gt;]]&gt;</description></item></rss>", []string{"||a bold"}, false},
		"CDATA in CDATA":           {"<rss><item><title><![CDATA[<![CDATA[a]]>]]></title><description>b</description></item></rss>", []string{"a||b"}, false},
		"full text of aggregators": {"<rss><item><description>short</description><yandex:full-text>long</yandex:full-text></item></rss>", []string{"||long"}, false},
		"references, no tags":      {"<rss><item><description>a &amp;quot;b&amp;quot;\nc</description></item></rss>", []string{"||a \"b\"\nc"}, false},
		"an image's own fields":    {"<rss><channel><image><title>i</title><link>http://i.org</link></image><item><title>a</title><source><title>s</title></source></item></channel></rss>", []string{"a||"}, false},
		"media in groups":          {`<rss><item><media:group><media:content url="http://x.org/v.mp4"/><media:description>a &lt; b</media:description></media:group></item></rss>`, []string{"|http://x.org/v.mp4|a < b"}, false},
		"cut in a tag":             {"<rss><channel><item><title>a</title></item><item><tit", []string{"a||"}, true},
		"cut in CDATA":             {"<rss><channel><item><title>a</title></item><item><title><![CDATA[b", []string{"a||"}, true},
		"cut after an item":        {"<rss><channel><item><title>a</title></item>", []string{"a||"}, true},
		"cut Atom":                 {"<feed><entry><title>a</title></entry><entry><title>b</title>", []string{"a||"}, true},
		"CDF":                      {`<CHANNEL HREF="http://x.org/"><ITEM HREF="1" LASTMOD="2025-03-10T12:30Z"><TITLE>a</TITLE><ABSTRACT>b</ABSTRACT></ITEM></CHANNEL>`, []string{"a|http://x.org/1|b"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := mustParse(t, c.doc)
			var got []string
			for _, e := range d.Entries {
				text, _ := e.text()
				got = append(got, e.Title+"|"+e.Link+"|"+text)
			}
			if strings.Join(got, "\n") != strings.Join(c.want, "\n") || d.Truncated != c.cut {
				t.Errorf("%q, cut %v, want %q, cut %v", got, d.Truncated, c.want, c.cut)
			}
		})
	}
}

func TestAtomTexts(t *testing.T) {
	for name, c := range map[string]struct{ in, title, text string }{
		"text is literal":       {`<title type="text">&lt;b&gt; &amp;amp;</title>`, "<b> &amp;", ""},
		"no type is text":       {`<title>AT&amp;amp;T</title>`, "AT&amp;T", ""},
		"html":                  {`<title type="html">&lt;b&gt;a&lt;/b&gt; &amp;amp; b</title>`, "a & b", ""},
		"html in CDATA":         {`<title type="html"><![CDATA[<b>a</b> &amp; b]]></title>`, "a & b", ""},
		"xhtml":                 {`<title type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">a &lt; <b>b</b></div></title>`, "a < b", ""},
		"xhtml with prefixes":   {`<content type="xhtml" xmlns:h="http://www.w3.org/1999/xhtml"><h:div><h:p>a</h:p><h:p>b</h:p></h:div></content>`, "", "a\n\nb"},
		"plain content":         {`<content type="text">a &lt;b&gt;` + "\n" + `c</content>`, "", "a <b>\nc"},
		"base64":                {`<content type="text/html" mode="base64">PHA+YTwvcD4=</content>`, "", "a"},
		"a picture":             {`<content type="image/png">iVBORw0KGgo=</content><summary>s</summary>`, "", "s"},
		"escaped by Atom 0.3":   {`<content type="text/html" mode="escaped">&lt;p&gt;a&lt;/p&gt;</content>`, "", "a"},
		"summary, content only": {`<content src="http://x.org/1"/><summary type="html">s</summary>`, "", "s"},
	} {
		t.Run(name, func(t *testing.T) {
			d := mustParse(t, `<feed xmlns="http://www.w3.org/2005/Atom"><entry>`+c.in+`</entry></feed>`)
			text, _ := d.Entries[0].text()
			if d.Entries[0].Title != c.title || text != c.text {
				t.Errorf("%q %q, want %q %q", d.Entries[0].Title, text, c.title, c.text)
			}
		})
	}
}

func TestTitlesOfRSS(t *testing.T) {
	for in, want := range map[string]string{
		"AT&amp;T":                                    "AT&T",
		"AT&amp;amp;T":                                "AT&T",
		"a &amp;amp;lt; b":                            "a < b",
		"The &lt;canvas&gt; element":                  "The <canvas> element",
		"&lt;b&gt;Hot&lt;/b&gt; news":                 "Hot news",
		"<![CDATA[Tom &amp; <i>Jerry</i>]]>":          "Tom & Jerry",
		"<![CDATA[Q&A: 5 < 7 > 3]]>":                  "Q&A: 5 < 7 > 3",
		"a\n   b&#160;c":                              "a b c",
		"&#1053;&#1086;&#1074;&#1086;&#1077;":         "Новое",
		"How to write &amp;lt; in HTML":               "How to write < in HTML",
		"<![CDATA[&amp;quot;x&amp;quot; &#8212; y]]>": `"x" — y`,
		"a &#55357;&#56832; b &#xD83D;&#xDE00; c":     "a 😀 b 😀 c",
		"a &#55357; b &#56832;&#55357; c":             "a b c",
		"50% off &nbsp; now":                          "50% off now",
	} {
		d := mustParse(t, "<rss><channel><item><title>"+in+"</title></item></channel></rss>")
		if got := d.Entries[0].Title; got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

func TestLinks(t *testing.T) {
	for name, c := range map[string]struct{ doc, want string }{
		"permalink":                  {`<rss><item><guid>http://x.org/1</guid></item></rss>`, "http://x.org/1"},
		"no permalink":               {`<rss><item><guid isPermaLink="false">http://x.org/1</guid></item></rss>`, ""},
		"relative permalink":         {`<rss><item><guid isPermaLink="true">/1</guid></item></rss>`, "https://feed.example.org/1"},
		"backslashes":                {`<rss><item><link>https:\\x.org\a\1?q=\</link></item></rss>`, "https://x.org/a/1?q=%5C"},
		"slashes left out":           {`<rss><item><link>http:/x.org/1</link></item></rss>`, "http://x.org/1"},
		"two schemes":                {`<rss><item><link>http://https://x.org/1</link></item></rss>`, "https://x.org/1"},
		"escaped once too often":     {`<rss><item><link><![CDATA[http://x.org/?a=1&#038;b=2&amp;c=3]]></link></item></rss>`, "http://x.org/?a=1&b=2&c=3"},
		"host in its own script":     {`<rss><item><link>http://пример.example:8080/щи</link></item></rss>`, "http://xn--e1afmkfd.example:8080/%D1%89%D0%B8"},
		"guid is no address":         {`<rss><item><guid>17</guid></item></rss>`, ""},
		"link before guid":           {`<rss><item><guid>http://x.org/1</guid><link>http://x.org/2</link></item></rss>`, "http://x.org/2"},
		"relative to the feed":       {`<rss><channel><link>https://feed.example.org/</link><item><link>a/1</link></item></channel></rss>`, "https://feed.example.org/dir/a/1"},
		"relative to another site":   {`<rss><channel><link>https://site.example.org/news/</link><item><link>a/1</link></item></channel></rss>`, "https://site.example.org/news/a/1"},
		"relative to xml:base":       {`<rss xml:base="http://x.org/b/"><channel><item xml:base="c/"><link>d</link></item></channel></rss>`, "http://x.org/b/c/d"},
		"scheme left out":            {`<rss><item><link>//x.org/1</link></item></rss>`, "https://x.org/1"},
		"www only":                   {`<rss><item><link>www.x.org/1</link></item></rss>`, "https://www.x.org/1"},
		"javascript":                 {`<rss><item><link>javascript:alert(1)</link></item></rss>`, ""},
		"data":                       {`<rss><item><link>data:text/html,x</link></item></rss>`, ""},
		"placeholder":                {`<rss><item><link>about:blank</link><guid>null</guid></item></rss>`, ""},
		"blanks inside":              {"<rss><item><link>\u00a0http://x.org/a b?q=a b\n</link></item></rss>", "http://x.org/a%20b?q=a%20b"},
		"lone percent sign":          {`<rss><item><link>http://x.org/100%</link></item></rss>`, "http://x.org/100%25"},
		"parameters stay":            {`<rss><item><link>http://x.org/?utm_source=a&amp;ref=b#c</link></item></rss>`, "http://x.org/?utm_source=a&ref=b#c"},
		"a raw ampersand":            {`<rss><item><link>http://x.org/?a=1&copy=2&b=3</link></item></rss>`, "http://x.org/?a=1&copy=2&b=3"},
		"original behind feedburner": {`<rss><item><link>http://feedproxy.example/~r/1</link><feedburner:origLink>http://x.org/1</feedburner:origLink></item></rss>`, "http://x.org/1"},
		"atom:link in RSS":           {`<rss><item><atom:link rel="alternate" href="http://x.org/1"/></item></rss>`, "http://x.org/1"},
		"a picture is no link":       {`<rss><item><enclosure url="http://x.org/1.jpg" type="image/jpeg"/></item></rss>`, ""},
		"enclosure":                  {`<rss><item><enclosure url="http://x.org/1.mp3"/></item></rss>`, "http://x.org/1.mp3"},
		"Atom without href":          {`<feed><entry><link>http://x.org/1</link></entry></feed>`, "http://x.org/1"},
		"Atom id":                    {`<feed><entry><id>http://x.org/1</id></entry></feed>`, "http://x.org/1"},
		"Atom self":                  {`<feed><link rel="self" href="http://x.org/feed"/><entry><id>http://x.org/feed</id></entry></feed>`, ""},
		"Atom without a type first":  {`<feed><entry><link rel="alternate" type="application/pdf" href="http://x.org/1.pdf"/><link href="http://x.org/1"/></entry></feed>`, "http://x.org/1"},
	} {
		if got := mustParse(t, c.doc).Entries[0].Link; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestCanonicalURL(t *testing.T) {
	for in, want := range map[string]string{
		"HTTPS://Site.Example.org:443/A/b?utm_source=rss&id=7&UTM_medium=x#top": "https://site.example.org/A/b?id=7",
		"http://a.example.org":                                     "http://a.example.org/",
		"http://a.example.org:8080/?ref=rss":                       "http://a.example.org:8080/",
		"http://a.example.org/?b=2&fbclid=1&a=1&":                  "http://a.example.org/?b=2&a=1",
		"http://a.example.org/?gclid=1&yclid=2&_openstat=3&page=4": "http://a.example.org/?page=4",
		"http://a.example.org/#!/post/1":                           "http://a.example.org/#!/post/1",
		"http://a.example.org/#/post/1":                            "http://a.example.org/#/post/1",
		"http://a.example.org/?reference=1&preferred=2":            "http://a.example.org/?reference=1&preferred=2",
		"http://Пример.example:80/щи?q=борщ":                       "http://xn--e1afmkfd.example/%D1%89%D0%B8?q=%D0%B1%D0%BE%D1%80%D1%89",
		"http://пример.example:8080/":                              "http://xn--e1afmkfd.example:8080/",
		"http://xn--e1afmkfd.example/%D1%89%D0%B8":                 "http://xn--e1afmkfd.example/%D1%89%D0%B8",
		"http://%D0%BF%D1%80%D0%B8%D0%BC%D0%B5%D1%80.example/":     "http://xn--e1afmkfd.example/",
		"http://a%2Fb.example/":                                    "",
		"http://a.example.org.:80/%7euser/%d1%89?q=%2f%41":         "http://a.example.org/~user/%D1%89?q=%2FA",
		"http://a.example.org/b/./c/../d/..":                       "http://a.example.org/b/",
		"http://a.example.org/../a//b":                             "http://a.example.org/a//b",
		"http://a.example.org/?utm%5Fsource=x&id=1":                "http://a.example.org/?id=1",
		"http://a.example.org/?id=5?a?utm_source=rss&b=2":          "http://a.example.org/?id=5?a&b=2",
		"http://a.example.org/?at_medium=RSS&xtor=RSS-1&at=3":      "http://a.example.org/?at=3",
		"http://a.example.org/?gad_source=1&_ga=2&hsa_cam=3":       "http://a.example.org/",
		"http://a.example.org/?go=http%3A%2F%2Fb%3Futm_source=1":   "http://a.example.org/?go=http%3A%2F%2Fb%3Futm_source=1",
		"http://[2001:DB8:0:0::1]:8080/":                           "http://[2001:db8::1]:8080/",
		"http://u:p@a.example.org/":                                "http://u:p@a.example.org/",
		"http://[2606:4700::1111]:80/":                             "http://[2606:4700::1111]/",
		"http://a.example.org:80:80:/":                             "http://a.example.org/",
		"ftp://a.example.org/":                                     "",
		"N/A":                                                      "",
	} {
		if got := CanonicalURL(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestAuthors(t *testing.T) {
	for in, want := range map[string]string{
		"<author>ann@x.org (Ann Lee)</author>":                           "Ann Lee",
		"<author>Ann Lee (ann@x.org)</author>":                           "Ann Lee",
		"<author>Ann Lee &lt;ann@x.org&gt;</author>":                     "Ann Lee",
		"<author>ann@x.org</author>":                                     "ann@x.org",
		"<author><name>Ann</name><email>a@x.org</email></author>":        "Ann",
		"<dc:creator>Ann</dc:creator><dc:creator>Bob</dc:creator>":       "Ann, Bob",
		"<dc:creator>N/A</dc:creator>":                                   "",
		"<author></author><itunes:author>Desk</itunes:author>":           "Desk",
		"<author><![CDATA[<script>alert(1)</script>Ann]]></author>":      "Ann",
		"<dc:creator>Ann</dc:creator><author>ann@x.org (Other)</author>": "Other",
		"<author>Ann Lee (Desk)</author>":                                "Ann Lee (Desk)",
	} {
		d := mustParse(t, "<rss><channel><item>"+in+"</item></channel></rss>")
		if got := d.Entries[0].Author; got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

func TestJSONFeed(t *testing.T) {
	const head = `{"version":"https://jsonfeed.org/version/1.1","title":"T","authors":[{"name":"Ann"}],"items":[`
	for name, c := range map[string]struct {
		doc  string
		want string // guid|link|title|author|text
		cut  bool
	}{
		"text":            {head + `{"id":"1","url":"/1","title":"a","content_text":"x < y\nz"}]}`, "1|https://feed.example.org/1|a|Ann|x < y\nz", false},
		"number as id":    {head + `{"id":17,"content_html":"<p>x</p>"}]}`, "17|||Ann|x", false},
		"fields of types": {head + `{"id":"1","title":5,"tags":"t","author":"Bob","content_text":"x","attachments":{"url":"u"}}]}`, "1||5|Bob|x", false},
		"cut":             {head + `{"id":"1","content_text":"x"},{"id":"2","content_te`, "1|||Ann|x", true},
		"cut after items": {head + `{"id":"1","content_text":"x"}`, "1|||Ann|x", true},
		"bare controls":   {head + "{\"id\":\"1\",\"content_text\":\"x\ny\x01\"}]}", "1|||Ann|x\ny", false},
		"commas":          {head + `{"id":"1","content_text":"x",},]}`, "1|||Ann|x", false},
	} {
		t.Run(name, func(t *testing.T) {
			d := mustParse(t, c.doc)
			if len(d.Entries) != 1 {
				t.Fatalf("%d entries", len(d.Entries))
			}
			e := d.Entries[0]
			text, _ := e.text()
			if got := strings.Join([]string{e.GUID, e.Link, e.Title, e.Author, text}, "|"); got != c.want || d.Truncated != c.cut {
				t.Errorf("%q, cut %v, want %q", got, d.Truncated, c.want)
			}
		})
	}
}
