package fetch

import (
	"errors"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"vesti.nixg.ru/crawl"
)

type metrics struct {
	requests *prometheus.CounterVec
	bytes    *prometheus.CounterVec
	inFlight prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vesti_crawl_http_requests_total",
			Help: "Exchanges of the crawlers, redirects included in one, by what was asked for (feed, page) and how it ended: " +
				"the class of the status, throttled, or the cause of the failure.",
		}, []string{"what", "result"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vesti_crawl_http_bytes_total",
			Help: "Bytes of decompressed bodies, by what was asked for (feed, page).",
		}, []string{"what"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "vesti_crawl_http_in_flight",
			Help: "Requests of the crawlers that are under way.",
		}),
	}
	if reg != nil {
		reg.MustRegister(m.requests, m.bytes, m.inFlight)
	}
	return m
}

// enter counts a request as under way until the returned function is called.
func (m *metrics) enter() func() {
	m.inFlight.Inc()
	return m.inFlight.Dec
}

func (m *metrics) succeeded(page bool, r *Response) {
	m.requests.WithLabelValues(what(page), strconv.Itoa(r.Status/100)+"xx").Inc()
	m.bytes.WithLabelValues(what(page)).Add(float64(r.Bytes))
}

func (m *metrics) failed(page bool, err error) {
	result := "stopped"
	var failed *crawl.Error
	var throttled *crawl.Throttled
	switch {
	case errors.As(err, &failed):
		result = string(failed.Cause)
	case errors.As(err, &throttled):
		result = "throttled"
	}
	m.requests.WithLabelValues(what(page), result).Inc()
}

func what(page bool) string {
	if page {
		return "page"
	}
	return "feed"
}
