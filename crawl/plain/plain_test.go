package plain_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"vesti.nixg.ru/crawl/plain"
)

func TestFromHTML(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"paragraphs":           {"<p>One</p><p>Two</p>", "One\n\nTwo"},
		"line breaks":          {"One<br>Two<br/><br/>Three", "One\nTwo\n\nThree"},
		"list":                 {"<ul><li>papers</li><li>letters</li></ul>end", "papers\nletters\n\nend"},
		"table":                {"<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>", "a b\nc"},
		"white space":          {"  a \n\t b&nbsp;c  ", "a b c"},
		"inline":               {"un<b>believ</b>able <i>x</i>", "unbelievable x"},
		"pre":                  {"<pre>if x {\n  y\n}</pre>", "if x {\ny\n}"},
		"script":               {"a<script>if (1 < 2) {}</script>b", "ab"},
		"empty script":         {"<p>a</p><script src='x'/><p>b</p>", "a\n\nb"},
		"empty iframe":         {`<iframe src="x"/><p>b</p>`, "b"},
		"svg":                  {"a<svg><title>T</title><text>X</text></svg>b", "ab"},
		"svg without end":      {"<p>a</p><svg><p>b</p>", "a\n\nb"},
		"video":                {"<video>Your browser cannot play it</video>text", "text"},
		"comment":              {"a<!-- c -->b", "ab"},
		"cdata":                {"<![CDATA[a <b>]]>", "a <b>"},
		"references":           {"&laquo;a&raquo; &amp; &#1078; &lt;b&gt;", "«a» & ж <b>"},
		"unknown reference":    {"&nosuch; & b", "&nosuch; & b"},
		"soft hyphen":          {"Gesamt&shy;konzept real-hyphen", "Gesamtkonzept real-hyphen"},
		"zero width and bidi":  {"a\u200bb\u202ec\u2066d\ufeff", "abcd"},
		"joiner in emoji":      {"👩\u200d💻", "👩\u200d💻"},
		"controls":             {"a\x00\x08b\u0085c", "ab c"},
		"attribute with >":     {`<a title="a > b">c</a>`, "c"},
		"less than":            {"a < b and c > d", "a < b and c > d"},
		"only an image":        {`<img src="x.png" alt="alt">`, ""},
		"emoji as images":      {`a<img class="emoji" alt="😀"/> <img class='wp-smiley' alt=":)">`, "a 😀 :)"},
		"invalid UTF-8":        {"a\xffb", "a\uFFFDb"},
		"nothing":              {"", ""},
		"no markup":            {"a\nb", "a b"},
		"deep nesting":         {strings.Repeat("<div>", 20000) + "x", "x"},
		"heading and blocks":   {"<h1>H</h1><div>a</div><div>b</div>", "H\n\na\nb"},
		"text after open head": {"<head><title>t</title><p>x</p>", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := plain.FromHTML(c.in); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestFromText(t *testing.T) {
	in := "  a < b \r\n<p>second</p>\n\n\n\nthird\u00adpart\u202e &amp; \t x\n"
	if got, want := plain.FromText(in), "a < b\n<p>second</p>\n\nthirdpart &amp; x"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestGuess(t *testing.T) {
	for in, want := range map[string]string{
		"a < b\nc":              "a < b\nc",
		"a &quot;b&quot;\nc":    "a \"b\"\nc",
		"a &lt;b&gt;\nc":        "a <b>\nc",
		"a <b>b</b>\nc &amp; d": "a b c & d",
	} {
		if got := plain.Guess(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestLine(t *testing.T) {
	if got, want := plain.Line(" a\n b\u2028c "), "a b c"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestDetection(t *testing.T) {
	for in, want := range map[string]struct{ tag, reference, marked bool }{
		"plain":                      {},
		"a < b and c > d":            {},
		"<3 hearts>":                 {},
		"AT&T; R&D;":                 {},
		"a &amp; b":                  {reference: true},
		"a &#1078; b":                {reference: true},
		"use the <b> tag":            {tag: true},
		"<b>bold</b>":                {tag: true, marked: true},
		"line<br>line":               {tag: true, marked: true},
		"<custom x='1'>y</custom>":   {tag: true},
		"std::vector<int> v":         {},
		"<!-- c -->":                 {tag: true},
		"price <a":                   {},
		"</p>":                       {tag: true, marked: true},
		"<NotATag>":                  {},
		"generic List<String> a</a ": {},
	} {
		if got := plain.HasTag(in); got != want.tag {
			t.Errorf("HasTag(%q) = %v", in, got)
		}
		if got := plain.HasReference(in); got != want.reference {
			t.Errorf("HasReference(%q) = %v", in, got)
		}
		if got := plain.IsMarkedUp(in); got != want.marked {
			t.Errorf("IsMarkedUp(%q) = %v", in, got)
		}
	}
}

// FuzzFromHTML: texts are valid, inert, trimmed, and stay what they are when
// they are cleaned as text once more.
func FuzzFromHTML(f *testing.F) {
	for _, s := range []string{
		"<p>a</p>", "<pre>a\n b</pre>", "a<br>b", "<svg><title>", "<script>x", "<![CDATA[x]]>", "&lt;p&gt;&#x202e;", "<table><td>a<td>b",
		"<!-- --><iframe/>", "a\u00a0\u200b\xff\x00", "<li>a<li>b", "<select><option>a", "</pre></pre><pre>", "<textarea><p>", "<plaintext>x",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, text := range []string{plain.FromHTML(s), plain.FromText(s), plain.Guess(s), plain.Line(s)} {
			if !utf8.ValidString(text) {
				t.Fatalf("invalid UTF-8: %q", text)
			}
			for _, r := range text {
				if !plain.Inert(r) {
					t.Fatalf("%U in %q", r, text)
				}
			}
			if again := plain.FromText(text); again != text {
				t.Fatalf("%q becomes %q", text, again)
			}
		}
		if l := plain.Line(s); strings.ContainsAny(l, "\n\r") {
			t.Fatalf("a line with a break: %q", l)
		}
	})
}
