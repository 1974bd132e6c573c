package decode

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"

	"vesti.nixg.ru/ledger/ledgertest/cases"
)

const russian = `<rss><channel><title>Новости науки и техники</title><item><title>Ёлка убрана с площади</title>` +
	`<description>Рабочие разобрали главную ёлку города в понедельник утром.</description></item></channel></rss>`

func TestText(t *testing.T) {
	prolog := func(enc string) string { return `<?xml version="1.0" encoding="` + enc + `"?>` }
	page := func(enc string) string { return `<html><head><meta charset="` + enc + `">` }
	le := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)
	be := unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	for name, c := range map[string]struct {
		prolog      string
		enc         encoding.Encoding // nil for UTF-8
		contentType string
		text        string // default russian
		want        string // encoding
	}{
		"declared":                               {prolog: prolog("windows-1251"), enc: charmap.Windows1251, want: "windows-1251"},
		"declared in capitals and quotes":        {prolog: `<?xml version='1.0' encoding='KOI8-R' ?>`, enc: charmap.KOI8R, want: "koi8-r"},
		"by the header":                          {enc: charmap.Windows1251, contentType: "text/xml; charset=windows-1251", want: "windows-1251"},
		"by a broken header":                     {enc: charmap.Windows1251, contentType: "text/xml; foo; charset=cp1251", want: "windows-1251"},
		"twice":                                  {prolog: prolog("koi8-r"), enc: charmap.KOI8R, contentType: "text/xml; charset=koi8-r", want: "koi8-r"},
		"declared windows-1251, is UTF-8":        {prolog: prolog("windows-1251"), contentType: "text/xml; charset=windows-1251", want: "utf-8"},
		"declared UTF-8, is windows-1251":        {prolog: prolog("utf-8"), enc: charmap.Windows1251, contentType: "text/xml; charset=utf-8", want: "windows-1251"},
		"declared UTF-8, is koi8-r":              {prolog: prolog("utf-8"), enc: charmap.KOI8R, want: "koi8-r"},
		"declared windows-1251, is koi8-r":       {prolog: prolog("windows-1251"), enc: charmap.KOI8R, want: "koi8-r"},
		"not declared, windows-1251":             {enc: charmap.Windows1251, want: "windows-1251"},
		"not declared, iso-8859-5":               {enc: charmap.ISO8859_5, want: "iso-8859-5"},
		"not declared, ibm866":                   {enc: charmap.CodePage866, want: "ibm866"},
		"a server's default against the prolog":  {prolog: prolog("windows-1251"), enc: charmap.Windows1251, contentType: "text/xml; charset=ISO-8859-1", want: "windows-1251"},
		"unknown name":                           {prolog: prolog("x-nonsense"), enc: charmap.Windows1251, want: "windows-1251"},
		"utf-16 with a mark":                     {prolog: prolog("utf-16"), enc: le, want: "utf-16le"},
		"utf-16 without a mark":                  {prolog: prolog("utf-16"), enc: be, want: "utf-16be"},
		"utf-32 with a mark":                     {enc: utf32.UTF32(utf32.BigEndian, utf32.UseBOM), want: "utf-32be"},
		"utf-32 without a mark":                  {enc: utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM), want: "utf-32le"},
		"declared utf-16, is UTF-8":              {prolog: prolog("utf-16"), contentType: "text/xml; charset=utf-16", want: "utf-8"},
		"declared utf-16, is windows-1251":       {prolog: prolog("utf-16"), enc: charmap.Windows1251, want: "windows-1251"},
		"western":                                {enc: charmap.Windows1252, text: "<rss><title>Café à Genève, naïve façade</title></rss>", want: "windows-1252"},
		"declared western":                       {prolog: prolog("iso-8859-1"), enc: charmap.Windows1252, text: "<rss><title>Café “à” Genève</title></rss>", want: "windows-1252"},
		"korean":                                 {prolog: prolog("euc-kr"), enc: korean.EUCKR, text: "<rss><title>한글</title></rss>", want: "euc-kr"},
		"japanese":                               {prolog: prolog("Shift_JIS"), enc: japanese.ShiftJIS, text: "<rss><title>日本語のニュース</title></rss>", want: "shift_jis"},
		"japanese of seven bits":                 {prolog: prolog("iso-2022-jp"), enc: japanese.ISO2022JP, text: "<rss><title>日本語</title></rss>", want: "iso-2022-jp"},
		"a page by its meta, against the header": {prolog: page("windows-1251"), enc: charmap.Windows1251, contentType: "text/html; charset=utf-8", want: "windows-1251"},
		"a page that says the wrong":             {prolog: page("utf-8"), enc: charmap.Windows1251, contentType: "text/html", want: "windows-1251"},
		"a page's meta behind much else":         {prolog: "<script>" + strings.Repeat("x;", 2000) + "</script>" + page("koi8-r"), enc: charmap.KOI8R, want: "koi8-r"},
		"a page of XHTML":                        {prolog: `<?xml version="1.0"?>` + page("iso-8859-5"), enc: charmap.ISO8859_5, want: "iso-8859-5"},
		"a broken byte in UTF-8":                 {prolog: prolog("windows-1251"), text: russian + "\xff", want: "utf-8"},
		"ASCII, whatever is declared":            {prolog: prolog("big5"), text: "<rss><title>plain</title></rss>", want: "utf-8"},
	} {
		t.Run(name, func(t *testing.T) {
			want := c.text
			if want == "" {
				want = russian
				if c.want == "ibm866" {
					want = strings.NewReplacer("Ё", "Е", "ё", "е").Replace(russian)
				}
			}
			want = c.prolog + want
			body := []byte(want)
			if c.enc != nil {
				var err error
				if body, err = c.enc.NewEncoder().Bytes(body); err != nil {
					t.Fatal(err)
				}
			}
			got, enc := Text(body, c.contentType, 1<<20)
			if want = strings.ToValidUTF8(want, "\uFFFD"); got != want || enc != c.want {
				t.Errorf("%s %q, want %s %q", enc, got, c.want, want)
			}
		})
	}
}

func TestTextKeepsWhatItCan(t *testing.T) {
	body := []byte(russian)
	body = append(body[:len(body)-1:len(body)-1], 0xD0) // a cut character
	body = bytes.Replace(body, []byte("Рабочие"), []byte("Рабочие \xFF"), 1)
	got, enc := Text(body, "", 1<<20)
	if enc != "utf-8" || !strings.Contains(got, "Рабочие \uFFFD разобрали") || !utf8.ValidString(got) {
		t.Errorf("%s %q", enc, got)
	}
	if got, enc = Text([]byte("\xEF\xBB\xBF<rss/>"), "text/xml; charset=koi8-r", 1<<20); got != "<rss/>" || enc != "utf-8" {
		t.Errorf("a mark: %s %q", enc, got)
	}
}

func TestTextUnpacks(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(strings.Repeat(russian, 100))); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if got, _ := Text(b.Bytes(), "application/x-gzip", 1<<20); !strings.HasPrefix(got, russian) {
		t.Errorf("got %.80q", got)
	}
	var twice bytes.Buffer
	z.Reset(&twice)
	if _, err := z.Write(b.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if got, _ := Text(twice.Bytes(), "", 1<<20); !strings.HasPrefix(got, russian) {
		t.Errorf("packed twice: %.80q", got)
	}
	if got, _ := Text(b.Bytes(), "", 1000); len(got) > 1100 {
		t.Errorf("%d bytes unpacked, the limit is 1000", len(got))
	}
	if got, _ := Text(b.Bytes()[:b.Len()/2], "", 1<<20); !strings.HasPrefix(got, "<rss><channel>") {
		t.Errorf("a cut stream gives %.80q", got)
	}
}

// FuzzText: what comes out is valid, whatever goes in.
func FuzzText(f *testing.F) {
	for _, b := range cases.FeedSeeds(f) {
		f.Add(b, "text/xml")
	}
	f.Add([]byte(russian), "text/xml; charset=koi8-r")
	f.Add([]byte("\xFE\xFF\x00<"), "text/xml; charset=utf-16")
	f.Add([]byte("\x1F\x8B\x08\x00\x00\x00\x00\x00\x00\xFF"), "")
	f.Add([]byte("\x1B$B"), "text/xml; charset=iso-2022-jp")
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		text, name := Text(body, contentType, 1<<16)
		if !utf8.ValidString(text) {
			t.Fatalf("%s: invalid UTF-8: %q", name, text)
		}
		if name == "" {
			t.Fatal("no encoding named")
		}
	})
}
