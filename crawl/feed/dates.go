package feed

import (
	"strconv"
	"strings"
	"time"
	"unicode"
)

// DateOrder says how a source writes numeric dates with the year last.
type DateOrder string

// The orders. With DateUnknown a date with dots or dashes is day-first, and one
// with slashes is read only where it can mean but one day.
const (
	DateUnknown DateOrder = ""
	DayFirst    DateOrder = "dmy"
	MonthFirst  DateOrder = "mdy"
)

// maxDate is the longest text that is looked at for a date, in bytes.
const maxDate = 1 << 10

// ParseDate reads a date as feeds write it and returns it in UTC, false where
// there is none: an empty or cut one, one with words it does not know, a day
// that does not exist, and the zero of some clock (1970, year 1), which stands
// for "no date". It takes the standards' forms and what is found in their
// place: names of months in Russian and in the languages around, in any case
// and length, twelve-hour clocks, zones by name or as "GMT+7", an offset given
// twice, the JavaScript form, Unix seconds. A time without a zone is in zone,
// nil for UTC.
func ParseDate(raw string, zone *time.Location, order DateOrder) (time.Time, bool) {
	if len(raw) > maxDate {
		return time.Time{}, false
	}
	if zone == nil {
		zone = time.UTC
	}
	t, ok := parseStandard(raw)
	if !ok {
		t, ok = parseWords(raw, zone, order)
	}
	if !ok || isZeroDate(t) {
		return time.Time{}, false
	}
	return t.UTC(), true
}

// isZeroDate reports whether t is the zero of a clock: within a day of 1970, so
// that a zone makes no difference, or the first years of others.
func isZeroDate(t time.Time) bool {
	s := t.Unix()
	return t.Year() <= 1900 || t.Year() > 9999 || s > -26*3600 && s < 26*3600
}

// parseStandard reads the two forms that nearly all feeds use.
func parseStandard(raw string) (time.Time, bool) {
	raw = strings.TrimSpace(raw)
	if len(raw) < 20 {
		return time.Time{}, false
	}
	layout := time.RFC3339
	if raw[3] == ',' {
		layout = "Mon, 2 Jan 2006 15:04:05 -0700"
		if strings.HasSuffix(raw, " GMT") {
			layout = "Mon, 2 Jan 2006 15:04:05 GMT"
		}
	}
	t, err := time.Parse(layout, raw)
	return t, err == nil
}

// dateReader reads a date of any form token by token.
type dateReader struct {
	order DateOrder

	numbers []number // of the date: day, month, year, in some order
	month   time.Month

	hour, min, sec, nsec int
	hasTime              bool
	half                 string // "am", "pm"

	zone    *time.Location
	hasZone bool
}

type number struct {
	value, digits int
	sep           byte // the character after it
}

func parseWords(raw string, zone *time.Location, order DateOrder) (time.Time, bool) {
	r := dateReader{order: order, zone: zone}
	s, comment := normalDate(raw)
	if t, ok := fromDigits(s, zone); ok {
		return t, true
	}
	for first := true; s != ""; first = false {
		n, ok := r.token(s, first)
		if !ok {
			return time.Time{}, false
		}
		s = s[n:]
	}
	if !r.hasZone {
		r.zoneIn(comment)
	}
	return r.result()
}

// fromDigits reads Unix seconds, with a fraction or without, or milliseconds,
// and dates without separators.
func fromDigits(s string, zone *time.Location) (time.Time, bool) {
	if whole, fraction, ok := strings.Cut(s, "."); ok && len(whole) == 10 && fraction != "" && countDigits(fraction) == len(fraction) {
		s = whole
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return time.Time{}, false
		}
	}
	layout := map[int]string{4: "2006", 6: "200601", 8: "20060102", 12: "200601021504", 14: "20060102150405"}[len(s)]
	if layout != "" {
		t, err := time.ParseInLocation(layout, s, zone)
		return t, err == nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err != nil:
		return time.Time{}, false
	case len(s) == 10 || len(s) == 9:
		return time.Unix(n, 0), true
	case len(s) == 13:
		return time.UnixMilli(n), true
	default:
		return time.Time{}, false
	}
}

// token reads the token that s begins with and returns its length.
func (r *dateReader) token(s string, first bool) (int, bool) {
	c := s[0]
	switch {
	case c >= '0' && c <= '9':
		return r.digits(s)
	case (c == '+' || c == '-') && r.offsetMayFollow():
		if n, ok := r.offset(s); ok {
			return n, true
		}
		return 1, true
	case strings.IndexByte(" ,.;:/-|'\"", c) >= 0:
		return 1, true
	}
	n := strings.IndexFunc(s, func(c rune) bool { return !unicode.IsLetter(c) && c != '.' && c != '/' && c != '_' })
	switch {
	case n < 0:
		n = len(s)
	case n == 0:
		return 0, false
	case s[:n] == "t": // between a date and its time
		return n, true
	}
	return n, r.word(s[:n], s[n:], first)
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// offsetMayFollow reports whether a sign here begins an offset: after a time,
// or after a date that is whole.
func (r *dateReader) offsetMayFollow() bool {
	return r.hasTime || len(r.numbers) == 3 || r.month != 0 && len(r.numbers) == 2
}

// digits reads a number, or a time of day where a colon follows.
func (r *dateReader) digits(s string) (int, bool) {
	n := countDigits(s)
	if n > 9 {
		return 0, false
	}
	value, err := strconv.Atoi(s[:n])
	if err != nil {
		return 0, false
	}
	rest := s[n:]
	if !r.hasTime && n <= 2 && len(rest) > 1 && rest[0] == ':' && rest[1] >= '0' && rest[1] <= '9' {
		return r.clock(s)
	}
	if !r.hasTime && n <= 2 && r.offsetMayFollow() && len(rest) > 2 && rest[0] == '.' && countDigits(rest[1:]) == 2 {
		return r.clock(s[:n] + ":" + rest[1:]) // 14.30
	}
	if half := meridiem(strings.TrimLeft(rest, " ")); half != "" && !r.hasTime && n <= 2 {
		r.hour, r.hasTime = value, true // "3 pm"
		return n, true
	}
	if len(r.numbers) == 3 || r.month != 0 && len(r.numbers) == 2 {
		return n, r.afterDate(value, n)
	}
	if n == 8 && len(r.numbers) == 0 && r.month == 0 { // 20060102
		r.numbers = append(r.numbers, number{value / 10000, 4, 0}, number{value / 100 % 100, 2, 0}, number{value % 100, 2, 0})
		return n, true
	}
	sep := byte(' ')
	if rest != "" {
		sep = rest[0]
	}
	r.numbers = append(r.numbers, number{value: value, digits: n, sep: sep})
	// Endings of ordinals: 1st, 2nd, 3rd, 4th.
	for _, e := range []string{"st", "nd", "rd", "th"} {
		if after, ok := strings.CutPrefix(rest, e); ok && (after == "" || !isLetter(after[0])) {
			return n + 2, true
		}
	}
	return n, true
}

// afterDate takes a number after a whole date: a time without colons, an hour
// by itself, or, after a time, "00" for a zone.
func (r *dateReader) afterDate(value, digits int) bool {
	switch {
	case r.hasTime:
		return true
	case digits <= 2:
		r.hour = value
	case digits == 4:
		r.hour, r.min = value/100, value%100
	case digits == 6:
		r.hour, r.min, r.sec = value/10000, value/100%100, value%100
	default:
		return false
	}
	r.hasTime = true
	return true
}

func countDigits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// clock reads hours, minutes, and seconds with a fraction where they follow.
func (r *dateReader) clock(s string) (int, bool) {
	var parts [3]int
	i := 0
	for p := range 3 {
		n := countDigits(s[i:])
		if n == 0 || n > 2 {
			return 0, false
		}
		parts[p], _ = strconv.Atoi(s[i : i+n])
		i += n
		if p == 2 || i+1 >= len(s) || s[i] != ':' || countDigits(s[i+1:]) == 0 || countDigits(s[i+1:]) > 2 {
			break
		}
		i++
	}
	if i+1 < len(s) && (s[i] == '.' || s[i] == ',') {
		if n := countDigits(s[i+1:]); n > 0 {
			frac := (s[i+1:i+1+n] + "000000000")[:9]
			r.nsec, _ = strconv.Atoi(frac)
			i += n + 1
		}
	}
	r.hour, r.min, r.sec, r.hasTime = parts[0], parts[1], parts[2], true
	return i, true
}

// offset reads a signed offset from UTC. One that follows another is its echo.
func (r *dateReader) offset(s string) (int, bool) {
	sign, i := 1, 0
	for i < len(s) && (s[i] == '+' || s[i] == '-') {
		if s[i] == '-' {
			sign = -1
		}
		i++
	}
	n := countDigits(s[i:])
	var h, m int
	switch {
	case n == 1 || n == 2:
		h, _ = strconv.Atoi(s[i : i+n])
		i += n
		if len(s) > i+2 && s[i] == ':' && countDigits(s[i+1:]) == 2 {
			m, _ = strconv.Atoi(s[i+1 : i+3])
			i += 3
			if len(s) > i+2 && s[i] == ':' && countDigits(s[i+1:]) == 2 {
				i += 3 // seconds
			}
		}
	case n == 3 || n == 4:
		v, _ := strconv.Atoi(s[i : i+n])
		h, m = v/100, v%100
		i += n
	default:
		return 0, false
	}
	if h > 14 || m > 59 {
		return i, true // no zone of this world
	}
	if !r.hasZone || r.zone == time.UTC {
		r.zone, r.hasZone = time.FixedZone("", sign*(h*3600+m*60)), true
	}
	return i, true
}

// result puts the parts together.
func (r *dateReader) result() (time.Time, bool) {
	year, month, day, ok := r.date()
	if !ok || day < 1 || month < 1 || month > 12 || day > daysIn(month, year) {
		return time.Time{}, false
	}
	hour := r.hour
	switch {
	case r.half == "pm" && hour < 12:
		hour += 12
	case r.half == "am" && hour == 12:
		hour = 0
	}
	if hour > 24 || r.min > 59 || r.sec > 60 || hour == 24 && r.min+r.sec > 0 {
		return time.Time{}, false
	}
	return time.Date(year, month, day, hour, r.min, min(r.sec, 59), r.nsec, r.zone), true
}

func daysIn(m time.Month, year int) int {
	return time.Date(year, m+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// date settles which number is what.
func (r *dateReader) date() (year int, month time.Month, day int, ok bool) {
	n := r.numbers
	if r.month != 0 {
		if len(n) != 2 {
			return 0, 0, 0, false
		}
		day, year := n[0], n[1]
		if day.digits >= 3 { // 2006 January 02
			day, year = year, day
		}
		return fullYear(year), r.month, day.value, day.digits <= 2
	}
	switch {
	case len(n) == 2 && n[0].digits == 4 && n[1].digits == 3: // the day of the year: 2006-002
		t := time.Date(n[0].value, 1, n[1].value, 0, 0, 0, 0, time.UTC)
		return t.Year(), t.Month(), t.Day(), t.Year() == n[0].value
	case len(n) == 2 && n[0].digits == 4 && n[0].sep == '-' && !r.hasTime: // 2006-01
		return n[0].value, time.Month(n[1].value), 1, true
	case len(n) != 3:
		return 0, 0, 0, false
	case n[0].digits >= 3:
		if n[1].value > 12 { // 2006-31-12
			return n[0].value, time.Month(n[2].value), n[1].value, true
		}
		return n[0].value, time.Month(n[1].value), n[2].value, n[0].value > 0
	}
	return r.numeric(n[0], n[1], n[2])
}

// numeric settles a date of three numbers with the year last.
func (r *dateReader) numeric(a, b, year number) (int, time.Month, int, bool) {
	if year.digits == 1 || year.digits == 3 {
		return 0, 0, 0, false
	}
	order := r.order
	switch {
	case a.value > 12 || a.value == b.value:
		order = DayFirst
	case b.value > 12:
		order = MonthFirst
	case order == DateUnknown && a.sep == '/':
		return 0, 0, 0, false
	}
	if order == MonthFirst {
		return fullYear(year), time.Month(a.value), b.value, true
	}
	return fullYear(year), time.Month(b.value), a.value, true
}

// fullYear reads two digits as the years 1970 to 2069, and three as the years
// since 1900 that old scripts write.
func fullYear(n number) int {
	switch {
	case n.digits == 2 && n.value < 70:
		return 2000 + n.value
	case n.digits == 2, n.digits == 3:
		return 1900 + n.value
	default:
		return n.value
	}
}
