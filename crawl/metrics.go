package crawl

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"vesti.nixg.ru/ledger"
)

// metrics count by crawler, cause, status and priority, all from closed sets,
// never by source.
type metrics struct {
	runs     *prometheus.CounterVec
	entries  *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer, census func() census) *metrics {
	m := &metrics{
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vesti_crawl_runs_total",
			Help: "Runs of sources, by crawler, outcome (ok, not_modified, partial, throttled, failed) and the cause of a failure.",
		}, []string{"crawler", "outcome", "cause"}),
		entries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vesti_crawl_entries_total",
			Help: "Entries that runs looked at, by crawler and what became of them (new, seen_again, revised, dropped, unchanged).",
		}, []string{"crawler", "outcome"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "vesti_crawl_run_duration_seconds",
			Help:    "How long runs took, by crawler.",
			Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300},
		}, []string{"crawler"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "vesti_crawl_runs_in_flight",
			Help: "Runs that are under way.",
		}),
	}
	if reg != nil {
		reg.MustRegister(m.runs, m.entries, m.duration, m.inFlight, &censusCollector{
			take: census,
			sources: prometheus.NewDesc("vesti_crawl_sources", "Sources in the registry, by crawler, priority and status.",
				[]string{"crawler", "priority", "status"}, nil),
			late: prometheus.NewDesc("vesti_crawl_late_seconds", "How long the source that waits longest is overdue.", nil, nil),
		})
	}
	return m
}

// enter counts a run as under way until the returned function is called.
func (m *metrics) enter() func() {
	m.inFlight.Inc()
	return m.inFlight.Dec
}

func (m *metrics) ended(crawler ledger.Crawler, end ending) {
	r := end.result()
	m.runs.WithLabelValues(string(crawler), r.Outcome, string(closedCause(r.Cause))).Inc()
	m.duration.WithLabelValues(string(crawler)).Observe(end.duration.Seconds())
	for outcome, n := range map[string]int{
		"new": r.New, "seen_again": r.SeenAgain, "revised": r.Revised, "dropped": r.Dropped,
		"unchanged": max(0, r.Fetched-r.New-r.SeenAgain-r.Revised-r.Dropped),
	} {
		m.entries.WithLabelValues(string(crawler), outcome).Add(float64(n))
	}
}

// closedCause keeps a kind's invention out of the label.
func closedCause(c ledger.Cause) ledger.Cause {
	if c != "" && !slices.Contains(ledger.RunCauses(), c) {
		return ledger.CauseInternal
	}
	return c
}

// census is the registry counted.
type census struct {
	sources map[censusKey]int
	late    time.Duration
}

type censusKey struct {
	crawler          ledger.Crawler
	priority, status string
}

// census counts the sources of the registry. Those that are switched off have
// the status "disabled".
func (c *Crawler) census() census {
	n := census{sources: map[censusKey]int{}}
	now := c.opts.Now()
	for _, v := range c.Status() {
		status := v.State.Status.String()
		if !v.Source.Enabled {
			status = "disabled"
		}
		n.sources[censusKey{v.Source.Crawler, v.Source.Priority.String(), status}]++
		if !v.Due.IsZero() && v.Running.IsZero() {
			n.late = max(n.late, now.Sub(v.Due))
		}
	}
	return n
}

// censusCollector counts at each scrape.
type censusCollector struct {
	take          func() census
	sources, late *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *censusCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.sources
	ch <- c.late
}

// Collect implements prometheus.Collector.
func (c *censusCollector) Collect(ch chan<- prometheus.Metric) {
	n := c.take()
	for k, count := range n.sources {
		ch <- prometheus.MustNewConstMetric(c.sources, prometheus.GaugeValue, float64(count), string(k.crawler), k.priority, k.status)
	}
	ch <- prometheus.MustNewConstMetric(c.late, prometheus.GaugeValue, n.late.Seconds())
}
