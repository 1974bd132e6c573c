package llm_test

import (
	"bufio"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"vesti.nixg.ru/classify/llm"
	"vesti.nixg.ru/ledger"
)

// injection is a post that gives orders, and what a model that obeys them
// answers.
type injection struct {
	Name    string `json:"name"`
	Text    string `json:"text"`
	Obeyed  string `json:"obeyed"`
	Refused bool   `json:"refused"` // the obedient answer must not count
}

func injections(t *testing.T) []injection {
	t.Helper()
	f, err := os.Open("testdata/injections.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []injection
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var i injection
		if err := json.Unmarshal(lines.Bytes(), &i); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		all = append(all, i)
	}
	return all
}

// TestInjections: a post's orders reach the model only as data within the fence,
// with nothing in them that a template reads as its own; and a model that obeys
// them cannot make vesti say more than a choice from the list.
func TestInjections(t *testing.T) {
	control := regexp.MustCompile(`<\|?/?[a-zA-Z_]+\|?>|\[/?INST\]|\[/?SYSTEM_PROMPT\]`)
	for _, tt := range injections(t) {
		t.Run(tt.Name, func(t *testing.T) {
			d := newDouble(t, said(tt.Obeyed))
			c := claim()
			c.Item.Title, c.Item.Text = "", tt.Text
			got, err := classifier(t, d).Classify(t.Context(), c, nil)
			q := d.asked()[0]
			if len(q.Messages) != 2 || q.Messages[0].Role != "system" || q.Messages[1].Role != "user" {
				t.Fatalf("messages %+v", q.Messages)
			}
			if !fenced(q, tt.Text) || control.MatchString(q.Messages[1].Content) {
				t.Errorf("the post is not fenced: %s", q.Messages[1].Content)
			}
			if tt.Refused != (err != nil) {
				t.Fatalf("decision %+v, error %v", got, err)
			}
			if err != nil {
				return
			}
			if !slices.Contains(append(ledger.DefaultDirections(), c.Item.Direction), got.Direction) {
				t.Errorf("direction %q", got.Direction)
			}
			for _, s := range []string{got.Summary, got.Reasons[0].Note} {
				if strings.ContainsAny(s, "<>\n\x1b") || strings.Contains(s, "evil.example") || strings.Contains(s, "You sort news posts") {
					t.Errorf("said %q", s)
				}
			}
		})
	}
}

// TestNonce: no two questions have the same code in their fence.
func TestNonce(t *testing.T) {
	d := newDouble(t, said(valid))
	c := classifier(t, d)
	seen := make(map[string]bool)
	for range 50 {
		if _, err := c.Classify(t.Context(), claim(), nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, q := range d.asked() {
		code := regexp.MustCompile(`-----([A-Z0-9]{12})-----`).FindStringSubmatch(q.Messages[1].Content)
		if code == nil || seen[code[1]] {
			t.Fatalf("code %q twice", code)
		}
		seen[code[1]] = true
	}
}

// TestLongPosts: however long a post is, and of whatever, the prompt fits and
// keeps its instructions.
func TestLongPosts(t *testing.T) {
	for name, text := range map[string]string{
		"sentences":    strings.Repeat("Одно предложение о ядре. ", 20_000),
		"one sentence": strings.Repeat("слово ", 50_000),
		"one word":     strings.Repeat("ы", 200_000),
		"lines":        strings.Repeat("строка\n", 50_000),
		"emoji":        strings.Repeat("👩‍👩‍👧", 30_000),
		"broken bytes": strings.Repeat("\xd0\xff", 50_000),
	} {
		t.Run(name, func(t *testing.T) {
			d := newDouble(t, said(valid))
			c := claim()
			c.Item.Text = text
			_, err := classifier(t, d, func(o *llm.Options) { o.MaxPrompt = 4000 }).Classify(t.Context(), c, nil)
			if err != nil {
				t.Fatal(err)
			}
			told := d.asked()[0].whole()
			if n := utf8.RuneCountInString(told); n > 4002 || n < 2000 && name != "broken bytes" && name != "emoji" {
				t.Errorf("the prompt has %d characters", n)
			}
			if !utf8.ValidString(told) || !strings.Contains(told, "Answer with the JSON object") || !strings.Contains(told, "[…]") && name != "broken bytes" {
				t.Errorf("the prompt is broken: %.300s … %s", told, told[max(0, len(told)-300):])
			}
		})
	}
}
