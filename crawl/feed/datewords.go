package feed

import (
	"strings"
	"time"
)

// normalDate lowers s, makes each white space a blank and takes comments in
// brackets out, such as JavaScript's and Java's names of the zone. It returns
// the last of them.
func normalDate(s string) (date, comment string) {
	for _, pair := range []string{"()", "[]"} {
		if i := strings.IndexByte(s, pair[0]); i > 0 {
			if j := strings.IndexByte(s[i:], pair[1]); j >= 0 {
				s, comment = s[:i]+" "+s[i+j+1:], s[i+1:i+j]
			}
		}
	}
	if len(s) > 200 {
		return "", ""
	}
	return lowerLine(s), lowerLine(comment)
}

func lowerLine(s string) string {
	return strings.Join(strings.Fields(sameSigns.Replace(strings.ToLower(s))), " ")
}

// sameSigns makes one of signs that mean the same: hyphens, apostrophes, and
// the words of East Asian clocks.
var sameSigns = strings.NewReplacer(
	"–", "-", "—", "-", "−", "-", "‑", "-", "’", "'",
	"時", ":", "时", ":", "點", ":", "点", ":", "分", ":", "秒", " ", "시 ", ":", "시", ":", "분 ", ":", "분", ":", "초", " ",
)

// word reads a word of a date: a month, a weekday, a zone, a half of the day or
// one that means nothing. An unknown word makes the whole no date, except where
// a weekday stands: no date is better than a wrong one. rest is what follows.
func (r *dateReader) word(w, rest string, first bool) bool {
	if half := meridiem(w + rest); half != "" && r.hasTime {
		r.half = half
		return true
	}
	w = strings.TrimRight(w, "./")
	if first && weekdays[w] && strings.HasPrefix(rest, ",") {
		return true // French "mar," is no March
	}
	if m := months[w]; m != 0 {
		if r.month != 0 {
			return false
		}
		r.month = m
		return true
	}
	switch w {
	case "오전", "上午":
		r.half = "am"
		return true
	case "오후", "下午":
		r.half = "pm"
		return true
	}
	if weekdays[w] || fillers[w] {
		return true
	}
	if r.zoneName(w) {
		return true
	}
	// An unknown word before everything else, or followed by a comma, is a
	// weekday in a language that is not known here.
	return first && len(r.numbers) == 0 && (strings.HasPrefix(rest, ",") || strings.HasPrefix(rest, " "))
}

// meridiem reads "am", "p.m." and the like at the start of s.
func meridiem(s string) string {
	for _, half := range []string{"am", "pm", "a.m", "p.m"} {
		if after, ok := strings.CutPrefix(s, half); ok && (after == "" || !isLetter(after[0]) && after[0] < 0x80) {
			return half[:1] + "m"
		}
	}
	return ""
}

// zoneName takes w as a zone: an abbreviation, or a name of the zone database.
// An abbreviation that is not known, after a time, means UTC, as RFC 5322 has
// it. The first zone wins, but UTC is open to an offset from it.
func (r *dateReader) zoneName(w string) bool {
	if h, ok := zones[w]; ok {
		if !r.hasZone {
			r.zone, r.hasZone = time.UTC, true
			if h != 0 {
				r.zone = time.FixedZone(strings.ToUpper(w), int(h*3600))
			}
		}
		return true
	}
	name := w
	switch w {
	case "et":
		name = "America/New_York"
	case "ct":
		name = "America/Chicago"
	case "mt":
		name = "America/Denver"
	case "pt":
		name = "America/Los_Angeles"
	}
	if strings.Contains(name, "/") {
		loc, err := time.LoadLocation(titleCase(titleCase(name, "/"), "_"))
		if err == nil && !r.hasZone {
			r.zone, r.hasZone = loc, true
		}
		return err == nil
	}
	if !r.hasTime || r.hasZone || len(w) > 5 || !isASCII(w) {
		return r.hasTime && r.hasZone && len(w) <= 5 && isASCII(w)
	}
	r.zone, r.hasZone = time.UTC, true
	return true
}

// zoneIn reads a zone that stands in brackets by itself: "(МСК)", "(GMT+3)".
func (r *dateReader) zoneIn(comment string) {
	name := strings.TrimRight(comment, "+-:0123456789")
	if _, known := zones[name]; !known && name != "" || comment == "" {
		return
	}
	if name != "" {
		r.zoneName(name)
	}
	if offset := comment[len(name):]; offset != "" {
		r.offset(offset)
	}
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

func titleCase(s, sep string) string {
	parts := strings.Split(s, sep)
	for i, p := range parts {
		if p != "" {
			parts[i] = strings.ToUpper(p[:1]) + p[1:]
		}
	}
	return strings.Join(parts, sep)
}

// fillers are words that carry nothing in a date.
var fillers = wordSet("at of р о the de do da den dne um uhr o'clock on à às alle kl klo kello ore h hs hrs г год года году в во час ч 년 월 일 年 月 日")

// weekdays are ignored: they add nothing, and many are wrong.
var weekdays = wordSet(`mon monday tue tues tuesday wed weds wednesday thu thur thurs thursday fri friday sat saturday sun sunday
пн пон понедельник вт вто вторник ср сре среда среду чт чет четверг пт пят пятница пятницу сб суб суббота субботу вс вск воскресенье
нд понеділок вівторок середа четвер п'ятниця субота неділя аўторак
mo di mi do fr sa so montag dienstag mittwoch donnerstag freitag samstag sonntag
lun lundi mar mardi mer mercredi jeu jeudi ven vendredi sam samedi dim dimanche
lunes martes miércoles mié jueves jue viernes vie sábado sáb domingo dom
seg segunda ter terça qua quarta qui quinta sex sexta`)

// months are the names of months, in full and cut, as they decline in dates.
var months = monthNames(
	`jan january янв январь января януари јануар січ січня студз студзень студзеня januar jän januari ianuarie ian jaanuar janv janvier ene enero gen gennaio janeiro sty stycznia led ledna
ιαν ιανουαρίου január tammi tammikuuta ocak oca`,
	`feb february фев февр февраль февраля февруари фебруар лют лютий лютого лютага februar februari februarie veebruar févr fév février febrero febbraio fev fevereiro lutego únor února
φεβ φεβρουαρίου február helmi helmikuuta şubat şub`,
	`mar march мар март марта бер березень березня сак сакавік сакавіка märz mär mrz marts martie märts mars marzo março marca břez března maart mrt
μάρ μαρ μαρτίου március márc maalis maaliskuuta mart`,
	`apr april апр апрель апреля кві квіт квітень квітня крас красавік красавіка avr avril abr abril aprilie aprill aprile kwi kwietnia dub dubna
απρ απριλίου április ápr huhti huhtikuuta nisan nis`,
	`may май мая тра трав мај травень травня травеня mai mayo maggio mag maio maja kvě května mei
μάι μαι μαΐου május máj touko toukokuuta mayıs maj`,
	`jun june июн июнь июня юни јун чер черв червень червня чэрв чэрвень чэрвеня juni iunie iun juuni juin junio giugno giu junho cze czerwca čer června
ιούν ιουν ιουνίου június jún kesä kesäkuuta haziran haz`,
	`jul july июл июль июля юли јул лип липень липня ліп ліпень ліпеня juli iulie iul juuli juil juillet julio luglio lug julho lip lipca čec července
ιούλ ιουλ ιουλίου július júl heinä heinäkuuta temmuz tem`,
	`aug august agustus agu авг август августа сер серп серпень серпня жнів жні жнівень жніўня août aout agosto ago sie sierpnia srp srpna augustus
αύγ αυγ αυγούστου augusztus elo elokuuta ağustos ağu`,
	`sep sept september сен сент сентябрь сентября септември септембар вер верес вересень вересня верас верасень верасня septembre septembrie septiembre settembre set setembro wrz września zář září
σεπ σεπτ σεπτεμβρίου szeptember szept syys syyskuuta eylül eyl`,
	`oct october окт октябрь октября октомври октобар жов жовт жовтень жовтня кас кастр кастрычнік кастрычніка okt oktober octombrie oktoober octobre octubre ottobre ott outubro out paź października říj října
οκτ οκτωβρίου október loka lokakuuta ekim eki`,
	`nov november ноя нояб ноябрь ноября ноември новембар лис лист листопад листопада ліст лістапад лістапада novembre noiembrie noviembre novembro listopada
νοέ νοε νοεμβρίου marras marraskuuta kasım kas`,
	`dec december дек декабрь декабря декември децембар гру груд грудень грудня снеж снежань снежня dez dezember des desember decembrie detsember déc décembre dic diciembre dicembre dezembro gru grudnia pro prosince
δεκ δεκεμβρίου joulu joulukuuta aralık ara`,
)

func monthNames(lists ...string) map[string]time.Month {
	m := map[string]time.Month{}
	for i, list := range lists {
		for w := range strings.FieldsSeq(list) {
			m[w] = time.Month(i + 1)
		}
	}
	return m
}

func wordSet(list string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		m[w] = true
	}
	return m
}

// zones are the abbreviations of zones seen in feeds, in hours east of UTC.
// Where one has several meanings it is that of the most feeds.
var zones = map[string]float64{
	"z": 0, "ut": 0, "utc": 0, "gmt": 0, "wet": 0, "zulu": 0, "egst": 0,
	"bst": 1, "cet": 1, "mez": 1, "met": 1, "west": 1, "wat": 1,
	"cest": 2, "mest": 2, "mesz": 2, "eet": 2, "cat": 2, "sast": 2, "wast": 2,
	"eest": 3, "msk": 3, "мск": 3, "eat": 3, "trt": 3, "idt": 3, "fet": 3, "irst": 3.5,
	"msd": 4, "samt": 4, "gst": 4, "azt": 4, "amt": 4, "get": 4, "mut": 4, "ret": 4, "sct": 4, "aft": 4.5, "irdt": 4.5,
	"yekt": 5, "pkt": 5, "uzt": 5, "tjt": 5, "tmt": 5, "orat": 5, "aqtt": 5, "mvt": 5, "ist": 5.5, "slst": 5.5, "npt": 5.75,
	"omst": 6, "almt": 6, "yekst": 6, "kgt": 6, "btt": 6, "mmt": 6.5, "krat": 7, "novt": 7, "ict": 7, "wib": 7, "hovt": 7,
	"irkt": 8, "krast": 8, "hkt": 8, "sgt": 8, "awst": 8, "myt": 8, "pht": 8, "wita": 8, "ulat": 8, "chot": 8,
	"yakt": 9, "jst": 9, "kst": 9, "wit": 9, "acst": 9.5, "vlat": 10, "aest": 10, "chst": 10, "acdt": 10.5,
	"magt": 11, "sakt": 11, "sret": 11, "aedt": 11, "pett": 12, "anat": 12, "nzst": 12, "fjt": 12, "nzdt": 13,
	"cvt": -1, "azot": -1, "brst": -2, "nst": -3.5, "ndt": -2.5, "ast": -4, "adt": -3, "brt": -3, "art": -3, "uyt": -3, "clst": -3,
	"clt": -4, "bot": -4, "vet": -4, "pyt": -4, "cot": -5, "pet": -5,
	"est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7,
	"akst": -9, "akdt": -8, "hst": -10, "hast": -10, "hadt": -9, "sst": -11,
}
