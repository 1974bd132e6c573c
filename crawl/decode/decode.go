// Package decode makes text of what servers send as feeds and pages, in
// whatever encoding it is and whatever they say that it is in.
//
// All functions are pure and safe for concurrent use.
package decode

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"mime"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// Text returns body as valid UTF-8 and the name of the encoding it was in.
// contentType is the HTTP header, "" for none. In this order it believes a byte
// order mark; the pattern of zero bytes of UTF-16 and UTF-32; the bytes
// themselves where they are UTF-8, whatever was declared, since text in another
// encoding is not UTF-8 by chance; the HTTP charset and the document's own
// declaration where the bytes agree with them; a guess by the letters. What
// cannot be decoded becomes U+FFFD. A gzip stream, even one in another, is
// unpacked first, up to limit bytes.
func Text(body []byte, contentType string, limit int64) (text, name string) {
	body = gunzip(gunzip(body, limit), limit)
	if enc, name, skip := byMark(body); enc != nil {
		return decodeWith(enc, body[skip:]), name
	} else if skip > 0 {
		return strings.ToValidUTF8(string(body[skip:]), "\uFFFD"), name
	}
	if enc, name := byZeros(body); enc != nil {
		return decodeWith(enc, body), name
	}
	declared := declarations(body, contentType)
	if stateful(declared, body) {
		return decodeWith(declared[0].enc, body), declared[0].name
	}
	if isUTF8(body, declared) {
		return string(body), utf8Name
	}
	d := choose(body, declared)
	if d.name == utf8Name {
		return strings.ToValidUTF8(string(body), "\uFFFD"), utf8Name
	}
	return decodeWith(d.enc, body), d.name
}

const utf8Name = "utf-8"

// declared is an encoding that somebody named.
type declared struct {
	enc  encoding.Encoding
	name string
}

func decodeWith(enc encoding.Encoding, body []byte) string {
	out, err := enc.NewDecoder().Bytes(body)
	if err != nil {
		// Decoders replace what they cannot read; an error would be a defect of
		// theirs. Keep what was decoded.
		out = append(out, "\uFFFD"...)
	}
	return strings.ToValidUTF8(string(out), "\uFFFD")
}

// gunzip unpacks a body that is a gzip file, which some servers send without
// saying so. A stream that is cut gives what came before the cut.
func gunzip(body []byte, limit int64) []byte {
	if len(body) < 10 || body[0] != 0x1F || body[1] != 0x8B || body[2] != 8 {
		return body
	}
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return body
	}
	out, err := io.ReadAll(io.LimitReader(r, limit))
	if err != nil && len(out) == 0 {
		return body
	}
	return out
}

// byMark looks for a byte order mark. For UTF-8 enc is nil and skip 3.
func byMark(b []byte) (enc encoding.Encoding, name string, skip int) {
	switch {
	case bytes.HasPrefix(b, []byte{0xEF, 0xBB, 0xBF}):
		if !looksUTF8(b[3:]) {
			// An editor's mark before bytes of another encoding.
			return nil, "", 0
		}
		return nil, utf8Name, 3
	case bytes.HasPrefix(b, []byte{0x00, 0x00, 0xFE, 0xFF}):
		return utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM), "utf-32be", 4
	case bytes.HasPrefix(b, []byte{0xFF, 0xFE, 0x00, 0x00}):
		return utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM), "utf-32le", 4
	case bytes.HasPrefix(b, []byte{0xFE, 0xFF}):
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), "utf-16be", 2
	case bytes.HasPrefix(b, []byte{0xFF, 0xFE}):
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), "utf-16le", 2
	default:
		return nil, "", 0
	}
}

// byZeros recognises UTF-16 and UTF-32 without a mark by the zero bytes around
// the first character, which is "<", "{" or white space, and EBCDIC by its "<?xm".
func byZeros(b []byte) (encoding.Encoding, string) {
	if len(b) < 4 {
		return nil, ""
	}
	switch z := [4]bool{b[0] == 0, b[1] == 0, b[2] == 0, b[3] == 0}; z {
	case [4]bool{true, true, true, false}:
		return utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM), "utf-32be"
	case [4]bool{false, true, true, true}:
		return utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM), "utf-32le"
	case [4]bool{true, false, true, false}:
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), "utf-16be"
	case [4]bool{false, true, false, true}:
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), "utf-16le"
	}
	if binary.BigEndian.Uint32(b) == 0x4C6FA794 {
		return charmap.CodePage037, "ibm037"
	}
	return nil, ""
}

// declarations lists what the HTTP header and the document declare, in the
// order in which they are believed. Names that nobody knows, and UTF-16 and
// UTF-32 for bytes that plainly are neither, are left out.
func declarations(body []byte, contentType string) []declared {
	var all []declared
	add := func(label string) {
		if enc, name := lookup(label); enc != nil {
			all = append(all, declared{enc: enc, name: name})
		}
	}
	if contentType != "" {
		if _, params, err := mime.ParseMediaType(contentType); err == nil {
			add(params["charset"])
		} else if _, label, ok := strings.Cut(strings.ToLower(contentType), "charset="); ok {
			label, _, _ = strings.Cut(label, ";")
			add(strings.Trim(label, ` "'`))
		}
	}
	add(prologEncoding(body))
	return all
}

func lookup(label string) (encoding.Encoding, string) {
	label = strings.ToLower(strings.TrimSpace(label))
	switch label {
	case "":
		return nil, ""
	case "koi8r":
		label = "koi8-r"
	case "win-1251", "win1251", "windows1251", "cp-1251", "1251", "ansi-1251":
		label = "windows-1251"
	case "cp866", "ibm866", "dos-866":
		label = "ibm866"
	case "utf_8", "utf-8-sig", "utf8mb4", "utf-8n":
		label = utf8Name
	case "latin-1", "latin_1", "windows1252", "win-1252", "cp-1252":
		label = "windows-1252"
	case "cp932":
		label = "shift_jis"
	case "cp936":
		label = "gbk"
	case "cp949":
		label = "euc-kr"
	case "cp950":
		label = "big5"
	}
	enc, name := charset.Lookup(label)
	switch {
	case enc == nil || strings.HasPrefix(name, "utf-16") || name == "replacement" || name == "x-user-defined":
		return nil, ""
	default:
		return enc, name
	}
}

// maxProlog is how far into a document its own declaration is looked for, in
// bytes: pages have it behind scripts, where browsers find it too.
const maxProlog = 8 << 10

// prologEncoding is the encoding pseudo-attribute of an XML declaration, else
// the charset of an HTML page's meta element.
func prologEncoding(body []byte) string {
	head := strings.ToLower(string(body[:min(len(body), maxProlog)]))
	if i := strings.Index(head, "<?xml"); i >= 0 {
		decl, _, _ := strings.Cut(head[i:], "?>")
		if _, rest, ok := strings.Cut(decl, "encoding"); ok {
			rest = strings.TrimLeft(rest, " \t\r\n=")
			if rest != "" && (rest[0] == '"' || rest[0] == '\'') {
				label, _, _ := strings.Cut(rest[1:], rest[:1])
				return label
			}
		}
	}
	if i := strings.Index(head, "<meta"); i >= 0 {
		if _, rest, ok := strings.Cut(head[i:], "charset="); ok {
			rest = strings.TrimLeft(rest, `"' `)
			if end := strings.IndexAny(rest, `"' />;`); end >= 0 {
				return rest[:end]
			}
		}
	}
	return ""
}

// stateful reports whether the body is in an encoding of seven bits that was
// declared and whose escape sequences are there.
func stateful(all []declared, body []byte) bool {
	return len(all) > 0 && all[0].name == "iso-2022-jp" && bytes.Contains(body, []byte{0x1B, '$'})
}

// isUTF8 reports whether the body is UTF-8. Two bytes of an East Asian
// encoding can be valid UTF-8 by chance, so that a declaration of one is
// overruled only by several characters.
func isUTF8(body []byte, all []declared) bool {
	if !utf8.Valid(body) {
		return false
	}
	if len(all) == 0 || !multibyte(all[0].name) {
		return true
	}
	wide := 0
	for _, c := range body {
		if c >= 0xC2 {
			wide++
		}
	}
	if wide == 0 || wide >= 8 {
		return true
	}
	return strings.ContainsRune(decodeWith(all[0].enc, body), utf8.RuneError)
}

func multibyte(name string) bool {
	switch name {
	case "gbk", "gb18030", "big5", "euc-jp", "shift_jis", "euc-kr":
		return true
	default:
		return false
	}
}

// looksUTF8 reports whether b is UTF-8 with at most a few broken places: a cut
// character, a stray byte.
func looksUTF8(b []byte) bool {
	good, bad := 0, 0
	for len(b) > 0 {
		if b[0] < utf8.RuneSelf {
			b = b[1:]
			continue
		}
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size == 1 {
			bad++
		} else {
			good++
		}
		b = b[size:]
	}
	return bad == 0 || good > 4*bad
}
