package decode

import (
	"github.com/gogs/chardet"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
)

// choose settles the encoding of a body that is not valid UTF-8.
func choose(body []byte, all []declared) declared {
	utf8Declared := len(all) == 0
	var other []declared
	for _, d := range all {
		if d.name == utf8Name {
			utf8Declared = true
		} else {
			other = append(other, d)
		}
	}
	if (utf8Declared || !multibyte(all[0].name)) && looksUTF8(body) {
		return declared{name: utf8Name}
	}
	h := histogramOf(body)
	switch {
	case len(other) == 0:
		return detect(body, h)
	case len(other) == 2 && other[0].name == "windows-1252":
		// A server's default before what the document says of itself.
		other = other[1:]
	}
	return h.confirm(other[0])
}

// histogram counts the bytes above ASCII, and how they stand together: in
// Cyrillic text whole words are made of them, in Western text single letters.
type histogram struct {
	count [256]int
	high  int
	runs  int
}

func histogramOf(body []byte) *histogram {
	h := &histogram{}
	inRun := false
	for _, c := range body {
		if c < 0x80 {
			inRun = false
			continue
		}
		h.count[c]++
		h.high++
		if !inRun {
			h.runs++
		}
		inRun = true
	}
	return h
}

// cyrillic are the single-byte encodings that a Russian text may be in.
func cyrillic() []declared {
	return []declared{
		{enc: charmap.Windows1251, name: "windows-1251"},
		{enc: charmap.KOI8R, name: "koi8-r"},
		{enc: charmap.ISO8859_5, name: "iso-8859-5"},
		{enc: charmap.CodePage866, name: "ibm866"},
	}
}

// guess names the encoding of a body that declares none that fits.
func (h *histogram) guess() declared {
	if h.runs > 0 && h.high >= 3*h.runs {
		best, score := declared{}, 0.0
		for _, d := range cyrillic() {
			if s := h.russian(d.enc); s > score {
				best, score = d, s
			}
		}
		if score >= 0.5 {
			return best
		}
	}
	return declared{enc: charmap.Windows1252, name: "windows-1252"}
}

// detect names the encoding of a body that declares none, by the statistics of
// many languages. They are not asked for Russian, which they often mistake.
func detect(body []byte, h *histogram) declared {
	d := h.guess()
	if d.name != "windows-1252" {
		return d
	}
	all, err := chardet.NewHtmlDetector().DetectAll(body)
	if err != nil || all[0].Confidence < 30 {
		return d
	}
	// Equals come in any order. The same bytes have to give the same text each time.
	best := declared{}
	for _, r := range all {
		if r.Confidence < all[0].Confidence {
			break
		}
		enc, name := lookup(r.Charset)
		if name == d.name {
			return d
		}
		if enc != nil && name != utf8Name && (best.enc == nil || name < best.name) {
			best = declared{enc: enc, name: name}
		}
	}
	if best.enc == nil {
		return d
	}
	return best
}

// confirm returns d, or the Cyrillic encoding that is meant where d, itself
// Cyrillic, makes no words of the text and another does.
func (h *histogram) confirm(d declared) declared {
	own := -1.0
	for _, c := range cyrillic() {
		if c.name == d.name {
			own = h.russian(c.enc)
		}
	}
	if own < 0 || own > 0.4 {
		return d
	}
	if g := h.guess(); g.name != "windows-1252" && h.russian(g.enc) > own+0.3 {
		return g
	}
	return d
}

// russian is the share, 0 to 1, of bytes that are one of the ten most frequent
// small letters of Russian in enc. In running text it is about two thirds; read
// in a wrong encoding the letters are capitals or rare ones.
func (h *histogram) russian(enc encoding.Encoding) float64 {
	cm, ok := enc.(*charmap.Charmap)
	if !ok || h.high == 0 {
		return 0
	}
	n := 0
	for c := 0x80; c < 0x100; c++ {
		if h.count[c] == 0 {
			continue
		}
		switch cm.DecodeByte(byte(c)) {
		case 'о', 'е', 'а', 'и', 'н', 'т', 'с', 'р', 'в', 'л':
			n += h.count[c]
		}
	}
	return float64(n) / float64(h.high)
}
