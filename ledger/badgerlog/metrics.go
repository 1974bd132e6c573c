package badgerlog

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"vesti.nixg.ru/ledger"
)

// metrics are the engine's.
type metrics struct {
	registerer prometheus.Registerer
	collectors []prometheus.Collector
	conflicts  prometheus.Counter
	refused    prometheus.Counter
	stale      prometheus.Counter
	leases     prometheus.Counter
}

func newMetrics(l *Log) (*metrics, error) {
	m := &metrics{registerer: l.opts.Registerer}
	m.conflicts = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "vesti_ledger_conflicts_total", Help: "Transactions that were run again after a conflict.",
	})
	m.refused = prometheus.NewCounter(prometheus.CounterOpts{Name: "vesti_ledger_refused_total", Help: "x"})
	m.stale = prometheus.NewCounter(prometheus.CounterOpts{Name: "vesti_ledger_stale_total", Help: "x"})
	m.leases = prometheus.NewCounter(prometheus.CounterOpts{Name: "vesti_ledger_leases_total", Help: "x"})
	return m, nil
}

func (m *metrics) group(steps int, took time.Duration) {}
func (m *metrics) close()                              {}

func (m *metrics) item(o ledger.Outcome)                 {}
func (m *metrics) event(e ledger.Event)                  {}
func (m *metrics) failed(p ledger.PostFailed)            {}
func (m *metrics) returned(r ledger.Return)              {}
func (m *metrics) claimed(q queueID, took time.Duration) {}
