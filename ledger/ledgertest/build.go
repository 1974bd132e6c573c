package ledgertest

import (
	"fmt"
	"strings"

	"vesti.nixg.ru/ledger"
)

// Item returns an item of source with a guid and a text of n words of its own,
// in P1's lane. The same arguments give the same item.
func Item(source ledger.Slug, guid string) ledger.Item {
	url := fmt.Sprintf("https://%s.example.org/%s", source, guid)
	return ledger.Item{
		Source:       source,
		Key:          ledger.NewItemKey(source, guid),
		Fingerprint:  ledger.HashOf(string(source), guid),
		URL:          url + "?utm_source=feed",
		CanonicalURL: url,
		Title:        "Заголовок " + guid,
		Text:         Text(string(source) + guid),
		TextFrom:     ledger.TextContent,
		Lang:         "ru",
		Direction:    "tech",
		Lane:         ledger.LaneP1,
	}
}

// Items returns n items of source with guids 1 to n.
func Items(source ledger.Slug, n int) []ledger.Item {
	items := make([]ledger.Item, n)
	for i := range items {
		items[i] = Item(source, fmt.Sprint(i+1))
	}
	return items
}

// Text returns a text of about 400 bytes that differs from those of other seeds
// in most of its words.
func Text(seed string) string {
	h := ledger.HashOf(seed)
	var b strings.Builder
	b.WriteString("Новость")
	for _, c := range h {
		fmt.Fprintf(&b, " %s%s", syllables[c>>4], syllables[c&15])
	}
	return b.String()
}

var syllables = [16]string{"ба", "во", "ги", "ду", "же", "зо", "ка", "ли", "ме", "но", "пы", "ра", "со", "ту", "фё", "ши"}

// Decision returns a final classification in a direction.
func Decision(d ledger.Direction) ledger.PostClassified {
	return ledger.PostClassified{Classification: ledger.Classification{
		Direction: d, Relevance: 0.9, Interest: 0.5, Summary: "Коротко.", Confidence: 0.8, Stage: "keyword",
		Reasons: []ledger.Reason{{Stage: "keyword", Rule: "r1", Matched: "ядро", Weight: 2}},
		RuleSet: "rules-1",
	}}
}

// Run returns a run of a source that worked, as an event.
func Run(source ledger.Slug, found int) ledger.Event {
	return ledger.NewEvent(ledger.ActorCrawler, 0, source, ledger.SourceCrawled{
		Run: ledger.Run{Trigger: ledger.TriggerSchedule, HTTPStatus: 200, Fetched: found, New: found},
	})
}
