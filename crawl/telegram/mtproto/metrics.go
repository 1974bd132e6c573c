//go:build !notelegram

package mtproto

import (
	"context"
	"errors"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/tgerr"
	"github.com/prometheus/client_golang/prometheus"
)

// metrics of an Account.
type metrics struct {
	calls    *prometheus.CounterVec
	repeated prometheus.Counter
	waited   prometheus.Counter
	paused   prometheus.Counter
	refused  prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, ready func() float64) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vesti_telegram_calls_total",
			Help: "Calls to Telegram by MTProto, by method and outcome (ok, flood_wait, refused, lost).",
		}, []string{"method", "outcome"}),
		repeated: counter("vesti_telegram_calls_repeated_total", "Calls repeated because no answer came."),
		waited:   counter("vesti_telegram_flood_wait_seconds_total", "Seconds that Telegram asked to wait."),
		paused:   counter("vesti_telegram_pauses_total", "Waits too long to sit out, for which a method was paused."),
		refused:  counter("vesti_telegram_session_refused_total", "Times that Telegram refused the session."),
	}
	if reg != nil {
		reg.MustRegister(m.calls, m.repeated, m.waited, m.paused, m.refused, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "vesti_telegram_account_ready",
			Help: "1 while there is a session that Telegram has not refused.",
		}, ready))
	}
	return m
}

func (m *metrics) called(in bin.Encoder, err error) {
	outcome := "ok"
	rpc, typed := tgerr.As(err)
	switch {
	case err == nil:
	case typed && rpc.Code == 420:
		outcome = "flood_wait"
		m.waited.Add(float64(max(rpc.Argument, 0)))
	case typed:
		outcome = "refused"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		outcome = "lost"
	default:
		outcome = "lost"
	}
	m.calls.WithLabelValues(methodOf(in), outcome).Inc()
}

func methodOf(in bin.Encoder) string {
	named, ok := in.(interface{ TypeName() string })
	if !ok {
		return "other"
	}
	switch name := named.TypeName(); name {
	case methodHistory, methodMessages, methodResolve:
		return name
	default:
		return "other"
	}
}
