package feed

import (
	"testing"
	"time"
)

func TestParseDate(t *testing.T) {
	moscow := time.FixedZone("MSK", 3*3600)
	for _, c := range []struct {
		raw   string
		order DateOrder
		zone  *time.Location
		want  string // "" for no date
	}{
		{raw: "Mon, 10 Mar 2025 12:30:00 +0300", want: "2025-03-10T09:30:00Z"},
		{raw: "Mon, 10 Mar 2025 12:30:00 GMT", want: "2025-03-10T12:30:00Z"},
		{raw: "2025-03-10T12:30:00.25+03:00", want: "2025-03-10T09:30:00.25Z"},
		{raw: "Thu,28 Jul 2022 4:35:5 GMT+9", want: "2022-07-27T19:35:05Z"},
		{raw: "Sun Mar 09 2025 15:45:00 GMT+0300 (Moscow Standard Time)", want: "2025-03-09T12:45:00Z"},
		{raw: "Mon Mar 10 12:30:00 MST 2025", want: "2025-03-10T19:30:00Z"},
		{raw: "10 Mar 2025 9:05 PM", want: "2025-03-10T21:05:00Z"},
		{raw: "March 10, 2025, 12:05 a.m.", want: "2025-03-10T00:05:00Z"},
		{raw: "March 10th, 2025 3pm EST", want: "2025-03-10T20:00:00Z"},
		{raw: "10.03.2025 в 14:00", zone: moscow, want: "2025-03-10T11:00:00Z"},
		{raw: "5 марта 2025 г., 09:30", zone: moscow, want: "2025-03-05T06:30:00Z"},
		{raw: "Mo, 10 März 2025 12:00:00 MEZ", want: "2025-03-10T11:00:00Z"},
		{raw: "mar., 11 mars 2025 12:00:00 +0100", want: "2025-03-11T11:00:00Z"},
		{raw: "05/03/2025", want: ""},
		{raw: "05/03/2025", order: DayFirst, want: "2025-03-05T00:00:00Z"},
		{raw: "05/03/2025", order: MonthFirst, want: "2025-05-03T00:00:00Z"},
		{raw: "25/03/2025", order: MonthFirst, want: "2025-03-25T00:00:00Z"},
		{raw: "03/25/2025 1:00 pm", order: DayFirst, want: "2025-03-25T13:00:00Z"},
		{raw: "05/05/2025", want: "2025-05-05T00:00:00Z"},
		{raw: "10 марта 2025 14.30", want: "2025-03-10T14:30:00Z"},
		{raw: "10.03.2025 14.30", want: "2025-03-10T14:30:00Z"},
		{raw: "2025-03", want: "2025-03-01T00:00:00Z"},
		{raw: "2025", want: "2025-01-01T00:00:00Z"},
		{raw: "2025-069", want: "2025-03-10T00:00:00Z"},
		{raw: "20250310T123000Z", want: "2025-03-10T12:30:00Z"},
		{raw: "1741609800", want: "2025-03-10T12:30:00Z"},
		{raw: "1741609800123", want: "2025-03-10T12:30:00.123Z"},
		{raw: "2025-03-10 12:30:00 Europe/Moscow", want: "2025-03-10T09:30:00Z"},
		{raw: "2025-03-10T24:00:00Z", want: "2025-03-11T00:00:00Z"},
		{raw: "2025-03-10T12:30:60Z", want: "2025-03-10T12:30:59Z"},
		{raw: "1741609800.5", want: "2025-03-10T12:30:00Z"},
		{raw: "2025-03-10T12:30:00+03:00[Europe/Moscow]", want: "2025-03-10T09:30:00Z"},
		{raw: "2025-03-10 12:30:00.123456 +0300 MSK", want: "2025-03-10T09:30:00.123456Z"},
		{raw: "2025-03-10 12:30:00 UTC+3", want: "2025-03-10T09:30:00Z"},
		{raw: "Monday, March 10, 2025 at 12:30 PM", want: "2025-03-10T12:30:00Z"},
		{raw: "2025.03.10 12:30", want: "2025-03-10T12:30:00Z"},
		{raw: "Mon Mar 10 12:30:00 2025", want: "2025-03-10T12:30:00Z"},
		{raw: "2025-3-9T7:5:3", want: "2025-03-09T07:05:03Z"},
		{raw: "10-Mar-25", want: "2025-03-10T00:00:00Z"},
		{raw: "Пн, 10 мар 2025 12:30:00 МСК", want: "2025-03-10T09:30:00Z"},
		{raw: "10 Март 2025, 12:30 MSK", want: "2025-03-10T09:30:00Z"},
		{raw: "10 березня 2025 р. о 12:30", want: "2025-03-10T12:30:00Z"},
		{raw: "Ma, 10 maaliskuuta 2025 12:30", want: "2025-03-10T12:30:00Z"},
		{raw: "man, 10 marts 2025 12:30:00 +0100", want: "2025-03-10T11:30:00Z"},
		{raw: "10 martie 2025", want: "2025-03-10T00:00:00Z"},
		{raw: "17 юни 2025", want: "2025-06-17T00:00:00Z"},
		{raw: "2025年3月10日 12:30", want: "2025-03-10T12:30:00Z"},
		{raw: "2025年3月10日12時30分05秒", want: "2025-03-10T12:30:05Z"},
		{raw: "2025년 3월 10일 오후 3시 20분", want: "2025-03-10T15:20:00Z"},
		{raw: "10/Mar/2025:12:30:00 +0300", want: "2025-03-10T09:30:00Z"},
		{raw: "Mon, 10 Mar 2025 12:30:00 --0700", want: "2025-03-10T19:30:00Z"},
		{raw: "Mon, 10 Mar 2025 12:30:00 +9900", want: "2025-03-10T12:30:00Z"},
		{raw: "Mon, 10 Mar 125 12:30:00 GMT", want: "2025-03-10T12:30:00Z"},
		{raw: "Mon, 10 Mar 2025 12:30:00 A", want: "2025-03-10T12:30:00Z"},
		{raw: "Mon, 10 Mar 2025 12:30:00 IDT", want: "2025-03-10T09:30:00Z"},
		{raw: "Mon, 10 Mar 2025 12:30:00 COT", want: "2025-03-10T17:30:00Z"},
		{raw: "10 марта 2025, 12:30 (МСК)", want: "2025-03-10T09:30:00Z"},
		{raw: "10 Mar 2025 12:30 (GMT+3)", want: "2025-03-10T09:30:00Z"},
		{raw: "10 Mar 2025 12:30 (updated)", zone: moscow, want: "2025-03-10T09:30:00Z"},
		{raw: "10 mars 2025 à 12:30 h", zone: moscow, want: "2025-03-10T09:30:00Z"},
		{raw: "10 верас. 2025 12:30 +0300", want: "2025-09-10T09:30:00Z"},
		{raw: "2025-03-10 12:30 America/Argentina/Buenos_Aires", want: "2025-03-10T15:30:00Z"},
		{raw: "Mon, 31 Feb 2025 12:30:00 GMT", want: ""},
		{raw: "Mon, 10 Foo 2025 12:30:00 GMT", want: ""},
		{raw: "Mon, 10 Mar 2025 99:30:00 GMT", want: ""},
		{raw: "Thu, 01 Jan 1970 03:00:00 +0300", want: ""},
		{raw: "Wed, 30 Nov -0001 00:00:00 +0000", want: ""},
		{raw: "0001-01-01T00:00:00Z", want: ""},
		{raw: "0000-00-00 00:00:00", want: ""},
		{raw: "yesterday", want: ""},
		{raw: "12:30", want: ""},
		{raw: "", want: ""},
	} {
		got, ok := ParseDate(c.raw, c.zone, c.order)
		if !ok {
			if c.want != "" {
				t.Errorf("%q: no date, want %s", c.raw, c.want)
			}
			continue
		}
		if s := got.Format(time.RFC3339Nano); s != c.want {
			t.Errorf("%q: %s, want %q", c.raw, s, c.want)
		}
	}
}
