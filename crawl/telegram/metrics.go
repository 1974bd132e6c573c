package telegram

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"vesti.nixg.ru/crawl"
)

// metrics of the Kind.
type metrics struct {
	runs     *prometheus.CounterVec
	pages    prometheus.Counter
	messages *prometheus.CounterVec
	changes  *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vesti_telegram_runs_total",
			Help: "Runs of Telegram channels, by way (mtproto, preview) and outcome (ok, failed, throttled).",
		}, []string{"way", "outcome"}),
		pages: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "vesti_telegram_preview_pages_total",
			Help: "Preview pages fetched.",
		}),
		messages: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vesti_telegram_messages_total",
			Help: "Messages read for the first time, an album being one, by way.",
		}, []string{"way"}),
		changes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vesti_telegram_changes_total",
			Help: "Changes found on messages read before, by kind (edited, removed, measured).",
		}, []string{"kind"}),
	}
	if reg != nil {
		reg.MustRegister(m.runs, m.pages, m.messages, m.changes)
	}
	return m
}

// ran counts a run and returns its error.
func (m *metrics) ran(w way, err error) error {
	outcome := "ok"
	var throttled *crawl.Throttled
	switch {
	case errors.As(err, &throttled):
		outcome = "throttled"
	case err != nil:
		outcome = "failed"
	}
	m.runs.WithLabelValues(string(w), outcome).Inc()
	return err
}
