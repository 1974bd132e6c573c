package httpui

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/projections/queue"
)

// route is what metrics call a group of addresses: a closed set, whatever is
// asked for.
type route string

const (
	routeCandidates route = "candidates"
	routePost       route = "post"
	routeSources    route = "sources"
	routeAction     route = "action" // buttons
	routeAccount    route = "account"
	routeLogin      route = "login"
	routeAPI        route = "api"
	routeAsset      route = "asset"
	routeMetrics    route = "metrics"
	routeProbe      route = "probe"
	routeOther      route = "other"
)

type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newMetrics(reg prometheus.Registerer, q queueView) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vesti_http_requests_total", Help: "Answered requests by group of addresses and class of status.",
		}, []string{"route", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "vesti_http_request_duration_seconds", Help: "Time to answer a request, by kind of answer.",
			Buckets: []float64{.005, .02, .05, .1, .25, .5, 1, 2.5, 10},
		}, []string{"kind"}),
	}
	err := errors.Join(reg.Register(m.requests), reg.Register(m.duration), reg.Register(newQueueCollector(q)))
	if err != nil {
		return nil, fmt.Errorf("metrics of httpui: %w", err)
	}
	return m, nil
}

// observe notes an answer. Durations are kept by kind, requests by route, so
// that neither metric nears a hundred series.
func (m *metrics) observe(name route, status int, took time.Duration) {
	kind := "page"
	switch name {
	case routeAPI:
		kind = "api"
	case routeAction:
		kind = "action"
	case routeAsset, routeMetrics, routeProbe:
		kind = "other"
	default:
	}
	m.requests.WithLabelValues(string(name), fmt.Sprintf("%dxx", status/100)).Inc()
	m.duration.WithLabelValues(kind).Observe(took.Seconds())
}

// queueView is the queue at a moment; see Server.queueNow.
type queueView func() (queue.Counts, time.Time)

// queueCollector shows the queue's gauges as of the scrape.
type queueCollector struct {
	view   queueView
	posts  *prometheus.Desc
	lanes  *prometheus.Desc
	stages *prometheus.Desc
	parked *prometheus.Desc
	oldest *prometheus.Desc
}

func newQueueCollector(view queueView) *queueCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("vesti_queue_"+name, help, labels, nil)
	}
	return &queueCollector{
		view:   view,
		posts:  desc("posts", "Posts by where they stand in the queue.", "state"),
		lanes:  desc("lane_posts", "Pending and claimed posts by lane.", "lane"),
		stages: desc("stage_posts", "Pending and claimed posts by the stage they wait for.", "stage"),
		parked: desc("parked_posts", "Parked posts by the cause of their last failure.", "cause"),
		oldest: desc("oldest_pending_seconds", "How long the oldest pending post has waited; 0 for none."),
	}
}

// Describe implements prometheus.Collector.
func (c *queueCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.posts, c.lanes, c.stages, c.parked, c.oldest} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *queueCollector) Collect(ch chan<- prometheus.Metric) {
	counts, now := c.view()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(c.posts, float64(counts.Pending), "pending")
	gauge(c.posts, float64(counts.Processing), "processing")
	gauge(c.posts, float64(counts.Waiting), "waiting")
	gauge(c.posts, float64(counts.Parked), "parked")
	gauge(c.posts, float64(counts.Classified), "classified")
	gauge(c.posts, float64(counts.DoneToday), "done_today")
	for i, n := range counts.ByLane {
		gauge(c.lanes, float64(n), ledger.Lane(i).String())
	}
	for i, n := range counts.ByStage {
		gauge(c.stages, float64(n), ledger.Stage(i).String())
	}
	for _, cause := range ledger.PostCauses() {
		gauge(c.parked, float64(counts.ParkedByCause[cause]), string(cause))
	}
	gauge(c.oldest, waited(counts.OldestPending, now).Seconds())
}

// waited is how long since; zero for a zero time.
func waited(since, now time.Time) time.Duration {
	if since.IsZero() {
		return 0
	}
	return max(0, now.Sub(since))
}

// showMetrics serves /metrics, to everybody or to who may, by its own setting.
func (s *Server) showMetrics(w http.ResponseWriter, r *http.Request) error {
	if !s.MetricsPublic {
		allowed, err := s.program(r)
		if err != nil {
			return err
		}
		if !allowed {
			w.Header().Set("WWW-Authenticate", `Bearer realm="vesti"`)
			return &httpError{status: http.StatusUnauthorized, key: "error.token"}
		}
	}
	promhttp.HandlerFor(s.Gatherer, promhttp.HandlerOpts{DisableCompression: true}).ServeHTTP(w, r)
	return nil
}

func healthz(w http.ResponseWriter, _ *http.Request) error {
	return plain(w, http.StatusOK, "ok")
}

func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) error {
	if err := s.Ready(); err != nil {
		return plain(w, http.StatusServiceUnavailable, "not ready: "+err.Error())
	}
	return plain(w, http.StatusOK, "ready")
}

func plain(w http.ResponseWriter, status int, text string) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, text) // the client may be gone
	return nil
}
