package httpui_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"vesti.nixg.ru/httpui"
	"vesti.nixg.ru/ledger"
)

func TestMetrics(t *testing.T) {
	d := newDesk(t, demoSources())
	d.rebuild(func(o *httpui.Options) { o.MetricsPublic = true })
	d.logIn(d.client)
	for i := range 5 {
		d.add(ledger.Item{Title: fmt.Sprintf("Post %d", i), Text: fmt.Sprintf("Post number %d with letters.", i), Lane: ledger.LaneP1})
	}
	d.claim()
	for i := range 300 {
		d.getAs(d.client, fmt.Sprintf("/nowhere/%d", i))
	}
	for _, path := range append(pagePaths(), "/login", "/posts/1", "/posts/77777", "/api/v1/queue", "/healthz") {
		d.getAs(d.client, path)
	}
	res, text := d.getAs(&http.Client{}, "/metrics")
	if res.StatusCode != http.StatusOK {
		t.Fatalf("metrics: %s", res.Status)
	}
	wantIn(t, text, `vesti_queue_posts{state="pending"} 4`, `vesti_queue_posts{state="processing"} 1`, `vesti_queue_posts{state="done_today"} 0`,
		`vesti_queue_posts{state="parked"} 0`, `vesti_queue_lane_posts{lane="p1"} 5`, `vesti_queue_oldest_pending_seconds 0`,
		`vesti_http_requests_total{code="4xx",route="other"} 300`, `vesti_http_requests_total{code="2xx",route="sources"} 2`)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for name, family := range families {
		series := 0
		for _, m := range family.GetMetric() {
			series++
			if h := m.GetHistogram(); h != nil {
				series += len(h.GetBucket()) + 1
			}
		}
		if series > 100 {
			t.Errorf("%s has %d series", name, series)
		}
		if !strings.HasPrefix(name, "vesti_") {
			t.Errorf("%s does not begin with vesti_", name)
		}
	}
}
