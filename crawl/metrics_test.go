package crawl_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/ledger"
)

// However many sources fail with however many texts, metrics have few series
// and say nothing of any single source.
func TestMetricsCountByClosedSets(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	causes := append(ledger.RunCauses(), "a cause of a kind's own invention")
	kind := &script{do: func(ctx context.Context, job crawl.Job) (crawl.Report, error) {
		var n int
		if _, err := fmt.Sscanf(string(job.Source.Slug), "s%d", &n); err != nil {
			return crawl.Report{}, err
		}
		if n%10 == 0 {
			return appending(ctx, job)
		}
		return crawl.Report{}, &crawl.Error{
			Cause: causes[n%len(causes)], Message: fmt.Sprintf("dial tcp: https://s%d.example/ answered nonsense %d", n, n),
		}
	}}
	var sources []crawl.Source
	for i := range 500 {
		sources = append(sources, feedSource(ledger.Slug(fmt.Sprintf("s%d", i)), ledger.Priority(i%3)))
	}
	d := newDesk(t, kind, crawl.Options{Registerer: reg}, sources...)
	if _, err := d.RunOnce(t.Context(), everything(), crawl.Once{}); err != nil {
		t.Fatal(err)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if n := len(f.GetMetric()); n > 100 || !strings.HasPrefix(f.GetName(), "vesti_crawl_") {
			t.Errorf("%s has %d series", f.GetName(), n)
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if strings.ContainsAny(l.GetValue(), ":/ ") {
					t.Errorf("%s has the label %s=%q", f.GetName(), l.GetName(), l.GetValue())
				}
			}
			got[f.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	for name, want := range map[string]float64{
		"vesti_crawl_runs_total": 500, "vesti_crawl_run_duration_seconds": 500, "vesti_crawl_sources": 500,
		"vesti_crawl_runs_in_flight": 0, "vesti_crawl_entries_total": 100,
	} {
		if got[name] != want {
			t.Errorf("%s: %v in all, want %v", name, got[name], want)
		}
	}
}
