package grafana_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"vesti.nixg.ru/httpui/grafana"
)

func TestQueriesCanBeRead(t *testing.T) {
	queries, err := grafana.Queries()
	if err != nil {
		t.Fatal(err)
	}
	if len(queries) < 40 {
		t.Errorf("%d queries", len(queries))
	}
	for _, q := range queries {
		if q.Expr == "" {
			t.Errorf("%s asks nothing", q.Where)
		}
	}
}

// TestCheckFindsWhatIsMissing: the check must be able to fail.
func TestCheckFindsWhatIsMissing(t *testing.T) {
	err := grafana.Check(strings.NewReader("# TYPE vesti_queue_posts gauge\nvesti_queue_posts{lane=\"x\"} 1\n"))
	if err == nil {
		t.Fatal("nothing is missing from a /metrics of one metric")
	}
	for _, want := range []string{
		`there is no metric "vesti_crawl_sources"`, `there is no metric "vesti_classify_duration_seconds_bucket"`, `metric vesti_queue_posts has no label "state"`,
		`groups by "route", a label that none of its metrics has`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the check does not say %q", want)
		}
	}
	if err := grafana.Check(strings.NewReader("no metrics {")); err == nil {
		t.Error("text that is no metrics was taken")
	}
}

// TestDashboardIsWhole: panels have names, ids of their own and a place.
func TestDashboardIsWhole(t *testing.T) {
	b, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		UID    string
		Panels []struct {
			ID          int
			Title, Type string
			Description string
			GridPos     struct{ X, Y, W, H int }
		}
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if p.Title == "" || ids[p.ID] || p.Type != "row" && p.Description == "" {
			t.Errorf("panel %+v", p)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := cells[[2]int{x, y}]; other != "" || x >= 24 {
					t.Errorf("%s lies on %s, or outside", p.Title, other)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
	}
	if d.UID == "" || len(ids) < 30 {
		t.Errorf("uid %q, %d panels", d.UID, len(ids))
	}
}
