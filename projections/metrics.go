package projections

import "github.com/prometheus/client_golang/prometheus"

// metrics are read from the runner's status when they are scraped.
type metrics struct {
	status     func() []Status
	lag        *prometheus.Desc
	seq        *prometheus.Desc
	rebuilding *prometheus.Desc
	failing    *prometheus.Desc

	events   *prometheus.CounterVec
	failures *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer, status func() []Status) *metrics {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("vesti_projection_"+name, help, []string{"projection"}, nil)
	}
	m := &metrics{
		status:     status,
		lag:        desc("lag_events", "Sequence numbers by which the projection is behind the ledger."),
		seq:        desc("seq", "Last event that the projection has applied."),
		rebuilding: desc("rebuilding", "1 while a new generation of the projection is built."),
		failing:    desc("failing", "1 while the projection cannot apply events."),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vesti_projection_events_total", Help: "Events that the projection has applied since the start.",
		}, []string{"projection"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vesti_projection_failures_total", Help: "Batches that the projection could not apply.",
		}, []string{"projection"}),
	}
	if reg != nil {
		reg.MustRegister(m)
	}
	return m
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.lag, m.seq, m.rebuilding, m.failing} {
		ch <- d
	}
	m.events.Describe(ch)
	m.failures.Describe(ch)
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	for _, s := range m.status() {
		ch <- prometheus.MustNewConstMetric(m.lag, prometheus.GaugeValue, float64(s.Lag), s.Name)
		ch <- prometheus.MustNewConstMetric(m.seq, prometheus.GaugeValue, float64(s.Seq), s.Name)
		ch <- prometheus.MustNewConstMetric(m.rebuilding, prometheus.GaugeValue, truth(s.Rebuilding), s.Name)
		ch <- prometheus.MustNewConstMetric(m.failing, prometheus.GaugeValue, truth(s.Error != ""), s.Name)
	}
	m.events.Collect(ch)
	m.failures.Collect(ch)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
