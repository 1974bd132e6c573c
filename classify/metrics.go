package classify

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"vesti.nixg.ru/ledger"
)

// metrics count what workers do. Label values are stages, causes and outcomes,
// all from closed sets.
type metrics struct {
	settled  *prometheus.CounterVec   // stage: keyword, learned, llm, default
	handedOn prometheus.Counter       // to the language model
	failures *prometheus.CounterVec   // stage, cause
	duration *prometheus.HistogramVec // stage: keyword, learned, llm
	inHand   *prometheus.GaugeVec     // stage
}

func newMetrics(reg prometheus.Registerer, b *Breaker) (*metrics, error) {
	m := &metrics{
		settled: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vesti_classify_settled_total", Help: "Posts settled, by the way that settled them.",
		}, []string{"by"}),
		handedOn: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "vesti_classify_handed_on_total", Help: "Posts handed on to the language model's queue.",
		}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vesti_classify_failures_total", Help: "Attempts at judging a post that failed, by stage and cause.",
		}, []string{"stage", "cause"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "vesti_classify_duration_seconds", Help: "Time that each stage of the cascade took for one post.",
			Buckets: []float64{25e-6, 1e-4, 4e-4, 1.6e-3, 6.4e-3, 25e-3, 0.1, 0.4, 1.6, 6.4, 25, 100},
		}, []string{"stage"}),
		inHand: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "vesti_classify_in_hand", Help: "Posts being judged now, by stage.",
		}, []string{"stage"}),
	}
	paused := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "vesti_classify_paused", Help: "1 while the language model's stage is paused because its server is away.",
	}, func() float64 {
		if b.Status().Open {
			return 1
		}
		return 0
	})
	m.begin()
	if reg == nil {
		return m, nil
	}
	var errs []error
	for _, c := range []prometheus.Collector{m.settled, m.handedOn, m.failures, m.duration, m.inHand, paused} {
		errs = append(errs, reg.Register(c))
	}
	return m, errors.Join(errs...)
}

// begin makes the series exist from the start, so that rates have a beginning.
func (m *metrics) begin() {
	for _, way := range Ways() {
		m.settled.WithLabelValues(way)
	}
	for _, way := range []string{WayKeyword, WayLearned, WayLLM} {
		m.duration.WithLabelValues(way)
	}
	for s := range ledger.Stage(ledger.StageCount) {
		m.inHand.WithLabelValues(s.String())
		for _, c := range ledger.PostCauses() {
			m.failures.WithLabelValues(s.String(), string(c))
		}
	}
}

func (m *metrics) judged(d Decision, err error) {
	for _, s := range d.Spent {
		m.duration.WithLabelValues(wayLabel(s.Way)).Observe(s.Time.Seconds())
	}
	switch {
	case err != nil:
	case d.HandOn:
		m.handedOn.Inc()
	default:
		m.settled.WithLabelValues(wayLabel(d.Stage)).Inc()
	}
}

// The ways to settle a post, as ledger.Classification.Stage names them.
const (
	WayKeyword = "keyword" // the rules
	WayLearned = "learned" // the model trained on this machine
	WayLLM     = "llm"     // a language model
	WayDefault = "default" // nothing said anything: the source's direction
)

// Ways lists them in the cascade's order.
func Ways() []string { return []string{WayKeyword, WayLearned, WayLLM, WayDefault} }

func wayLabel(way string) string {
	for _, w := range Ways() {
		if w == way {
			return w
		}
	}
	return "other"
}
