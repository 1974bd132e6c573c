// Package grafana holds the dashboard and the alert rules that come with vesti,
// and the check that they ask for metrics that there are. Nothing of it is in
// the binary; operators take the two files as they are.
package grafana

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/VictoriaMetrics/metricsql"
	"github.com/goccy/go-yaml"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

//go:embed dashboard.json
var dashboard []byte

//go:embed alerts.yaml
var alerts []byte

// Query is an expression that the dashboard or an alert asks.
type Query struct {
	Where string // the panel or the alert
	Expr  string
}

// Queries returns every query of the dashboard and of the alert rules.
func Queries() ([]Query, error) {
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(dashboard, &d); err != nil {
		return nil, fmt.Errorf("dashboard: %w", err)
	}
	var queries []Query
	for _, p := range d.Panels {
		for _, t := range p.Targets {
			queries = append(queries, Query{"panel " + p.Title, t.Expr})
		}
	}
	var rules struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert       string
				Expr        string
				For         string
				Labels      map[string]string
				Annotations map[string]string
			}
		}
	}
	if err := yaml.NewDecoder(bytes.NewReader(alerts), yaml.Strict()).Decode(&rules); err != nil {
		return nil, fmt.Errorf("alerts: %w", err)
	}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			queries = append(queries, Query{"alert " + r.Alert, r.Expr})
		}
	}
	return queries, nil
}

// Check reports every query that cannot be read, or that asks for a metric or a
// label that is not in metrics, the text of a /metrics. The process must have
// done some of its work: a metric with labels shows once it has a value.
func Check(metrics io.Reader) error {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(metrics)
	if err != nil {
		return fmt.Errorf("read metrics: %w", err)
	}
	queries, err := Queries()
	if err != nil {
		return err
	}
	var wrong []error
	for _, q := range queries {
		if err := check(q, families); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", q.Where, err))
		}
	}
	return errors.Join(wrong...)
}

// check looks at one query. Grafana's variables are values that any would do for.
func check(q Query, families map[string]*dto.MetricFamily) error {
	expr := strings.NewReplacer("$__rate_interval", "5m", "$job", ".*", "$instance", ".*").Replace(q.Expr)
	parsed, err := metricsql.Parse(expr)
	if err != nil {
		return fmt.Errorf("%s: %w", q.Expr, err)
	}
	var wrong []error
	known := map[string]bool{}
	metricsql.VisitAll(parsed, func(e metricsql.Expr) {
		m, ok := e.(*metricsql.MetricExpr)
		if !ok {
			return
		}
		for _, filters := range m.LabelFilterss {
			name, labels := named(filters)
			have, found := labelsOf(families, name)
			if !found {
				wrong = append(wrong, fmt.Errorf("there is no metric %q", name))
				continue
			}
			maps.Copy(known, have)
			for _, l := range labels {
				if !have[l] {
					wrong = append(wrong, fmt.Errorf("metric %s has no label %q", name, l))
				}
			}
		}
	})
	metricsql.VisitAll(parsed, func(e metricsql.Expr) {
		var by []string
		switch e := e.(type) {
		case *metricsql.AggrFuncExpr:
			by = e.Modifier.Args
		case *metricsql.BinaryOpExpr:
			by = e.GroupModifier.Args
		}
		for _, l := range by {
			if !known[l] {
				wrong = append(wrong, fmt.Errorf("groups by %q, a label that none of its metrics has", l))
			}
		}
	})
	return errors.Join(wrong...)
}

// named splits a selector into the metric's name and the labels it looks at.
func named(filters []metricsql.LabelFilter) (name string, labels []string) {
	for _, f := range filters {
		if f.Label == "__name__" {
			name = f.Value
		} else {
			labels = append(labels, f.Label)
		}
	}
	return name, labels
}

// labelsOf returns the labels of a metric's series, with those that Prometheus
// itself adds.
func labelsOf(families map[string]*dto.MetricFamily, name string) (map[string]bool, bool) {
	labels := map[string]bool{"job": true, "instance": true}
	family, found := families[name]
	if !found {
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			base, ok := strings.CutSuffix(name, suffix)
			if f := families[base]; ok && f.GetType() == dto.MetricType_HISTOGRAM {
				family, found = f, true
				if suffix == "_bucket" {
					labels["le"] = true
				}
			}
		}
	}
	for _, m := range family.GetMetric() {
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = true
		}
	}
	return labels, found
}
