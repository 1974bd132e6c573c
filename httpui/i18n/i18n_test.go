package i18n_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"vesti.nixg.ru/httpui/i18n"
)

func load(t *testing.T) *i18n.Catalogue {
	t.Helper()
	c, err := i18n.Load()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestMatch(t *testing.T) {
	c := load(t)
	for _, tt := range []struct{ chosen, header, want string }{
		{"", "", "en"},
		{"", "ru", "ru"},
		{"", "ru-RU,en;q=0.5", "ru"},
		{"", "de-DE,de;q=0.9,ru;q=0.4", "ru"},
		{"", "de-DE", "en"},
		{"", "en-GB,ru;q=0.9", "en"},
		{"ru", "en", "ru"},
		{"xx", "ru", "ru"},
		{"", ";;;q=zzz", "en"},
		{"", strings.Repeat("ru-", 5000), "en"},
	} {
		if got := c.Match(tt.chosen, tt.header).Tag.String(); got != tt.want {
			t.Errorf("Match(%q, %.30q) = %s, want %s", tt.chosen, tt.header, got, tt.want)
		}
	}
}

func TestRussianPlurals(t *testing.T) {
	ru := load(t).Match("ru", "")
	for n, want := range map[int]string{
		0: "0 постов", 1: "1 пост", 2: "2 поста", 4: "4 поста", 5: "5 постов", 11: "11 постов", 12: "12 постов", 14: "14 постов",
		21: "21 пост", 22: "22 поста", 25: "25 постов", 101: "101 пост", 111: "111 постов", 1_002: "1\u00a0002 поста",
	} {
		if got, err := ru.Plural("found", n); err != nil || got != want {
			t.Errorf("%d: %q, %v; want %q", n, got, err, want)
		}
	}
}

func TestEnglishPlurals(t *testing.T) {
	en := load(t).Match("en", "")
	for n, want := range map[int]string{0: "0 posts", 1: "1 post", 2: "2 posts", 21: "21 posts", 1_000: "1,000 posts"} {
		if got, err := en.Plural("found", n); err != nil || got != want {
			t.Errorf("%d: %q, %v; want %q", n, got, err, want)
		}
	}
}

func TestValuesAreNoPlaces(t *testing.T) {
	en := load(t).Match("en", "")
	got, err := en.Text("event.failed", "cause", "{message}", "n", 2, "message", "{cause} {n}")
	if want := "Attempt 2 failed: {message}. {cause} {n}"; err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

func TestUnknownKeysAreErrors(t *testing.T) {
	en := load(t).Match("en", "")
	if _, err := en.Text("no.such"); err == nil {
		t.Error("Text of an unknown key gave no error")
	}
	if _, err := en.Text("found"); err == nil {
		t.Error("Text of a plural entry gave no error")
	}
	if _, err := en.Plural("skip", 1); err == nil {
		t.Error("Plural of a plain entry gave no error")
	}
	if _, err := en.Text("skip", "odd"); err == nil {
		t.Error("places that do not pair gave no error")
	}
}

// TestLanguagesHaveTheSamePlaces: a translation fills in what the others do.
func TestLanguagesHaveTheSamePlaces(t *testing.T) {
	c := load(t)
	place := regexp.MustCompile(`\{[a-z]+\}`)
	places := func(l *i18n.Language, key string) []string {
		s, err := l.Text(key)
		if err != nil {
			return nil // plural forms may say "one" without a number
		}
		found := place.FindAllString(s, -1)
		slices.Sort(found)
		return slices.Compact(found)
	}
	first := c.All()[0]
	for _, other := range c.All()[1:] {
		if !slices.Equal(first.Keys(), other.Keys()) {
			t.Errorf("%s and %s differ in their keys", first.Tag, other.Tag)
		}
		for _, key := range first.Keys() {
			if a, b := places(first, key), places(other, key); !slices.Equal(a, b) {
				t.Errorf("%s: places %v in %s, %v in %s", key, a, first.Tag, b, other.Tag)
			}
		}
	}
}
