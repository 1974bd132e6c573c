package classify_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"vesti.nixg.ru/classify"
	"vesti.nixg.ru/ledger"
)

// onlyWithDirection leaves out the lines of a labelled set whose label has no
// direction.
func onlyWithDirection(in io.Reader) io.Reader {
	var out bytes.Buffer
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var l struct{ Direction string }
		if json.Unmarshal(lines.Bytes(), &l) == nil && l.Direction != "" {
			out.Write(lines.Bytes())
			out.WriteByte('\n')
		}
	}
	return &out
}

// parrot says what the text's first word is, by the stage of its second.
func parrot(_ context.Context, c ledger.Claim) (classify.Decision, error) {
	words := strings.Fields(c.Item.Text)
	d := classify.Decision{Classification: ledger.Classification{Direction: ledger.Direction(strings.Trim(words[0], "-")), Stage: words[1]}}
	switch {
	case words[1] == "broken":
		return d, errors.New("cannot say")
	case words[1] == "llm" && c.Stage == ledger.StageFirst:
		d.HandOn, d.Stage = true, "keyword"
	}
	return d, nil
}

func TestEvaluate(t *testing.T) {
	lines := `{"text":"linux keyword","direction":"linux"}
{"text":"linux keyword","label":"linux"}

{"text":"linux llm","direction":"tech"}
{"text":"tech learned","direction":"tech","label":"it"}
{"text":"- default","direction":"tech"}
{"text":"sport keyword","direction":"sport"}
{"text":"tech keyword","direction":"sport"}
{"text":"tech broken","direction":"tech"}
{"text":"tech keyword","direction":null}
{"text":"","direction":"tech"}
`
	e, err := classify.Evaluate(t.Context(), strings.NewReader(lines), decide(parrot), []ledger.Direction{"linux", "tech"}, classify.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := []classify.DirectionScore{
		{Direction: "linux", Support: 2, Precision: 0.667, Recall: 1, F1: 0.8, Measured: true},
		{Direction: "sport", Support: 2, Precision: 1, Recall: 0.5, F1: 0.667},
		{Direction: "tech", Support: 3, Precision: 0.5, Recall: 0.333, F1: 0.4, Measured: true},
	}
	if !reflect.DeepEqual(e.Directions, want) {
		t.Errorf("directions %+v\nwant %+v", e.Directions, want)
	}
	if e.Lines != 10 || e.Skipped != 2 || e.Unjudged != 1 || e.MacroF1 != 0.6 || e.Accuracy != 0.571 {
		t.Errorf("%+v", e)
	}
	stages := []classify.StageScore{
		{Stage: "default", Settled: 1, Coverage: 0.143},
		{Stage: "keyword", Settled: 4, Coverage: 0.571, Accuracy: 0.75},
		{Stage: "learned", Settled: 1, Coverage: 0.143, Accuracy: 1},
		{Stage: "llm", Settled: 1, Coverage: 0.143},
	}
	if !reflect.DeepEqual(e.Stages, stages) {
		t.Errorf("stages %+v\nwant %+v", e.Stages, stages)
	}
	if got := e.Confusion["tech"]; !reflect.DeepEqual(got, []classify.Counts{{Said: "(none)", Lines: 1}, {Said: "linux", Lines: 1}, {Said: "tech", Lines: 1}}) {
		t.Errorf("confusion %+v", got)
	}
	folded, err := classify.Evaluate(t.Context(), strings.NewReader(lines), decide(parrot), []ledger.Direction{"linux", "tech"},
		classify.EvalOptions{As: map[ledger.Direction]ledger.Direction{"linux": "tech"}})
	if err != nil || len(folded.Directions) != 2 || folded.MacroF1 != 0.8 {
		t.Errorf("linux as tech: %+v, %v", folded, err)
	}
	var text strings.Builder
	if err := e.WriteText(&text); err != nil || !strings.Contains(text.String(), "macro F1 0.600") || !strings.Contains(text.String(), "(not in macro F1)") {
		t.Errorf("%v\n%s", err, &text)
	}
	if _, err := classify.Evaluate(t.Context(), strings.NewReader("{}\nnonsense\n"), decide(parrot), nil, classify.EvalOptions{}); !errors.Is(err, ledger.ErrInvalid) || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("nonsense: %v", err)
	}
}
