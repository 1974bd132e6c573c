package badgerlog

import (
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"vesti.nixg.ru/ledger"
)

// metrics are the engine's. Label values come from the vocabulary's closed
// sets.
type metrics struct {
	registerer prometheus.Registerer
	registered []prometheus.Collector

	items     *prometheus.CounterVec // by outcome
	events    *prometheus.CounterVec // by type
	failures  *prometheus.CounterVec // by cause
	parked    *prometheus.CounterVec // by cause
	returns   *prometheus.CounterVec // by reason
	claims    *prometheus.CounterVec // by stage and lane
	claim     prometheus.Histogram
	conflicts prometheus.Counter
	refused   prometheus.Counter
	stale     prometheus.Counter
	leases    prometheus.Counter
	commit    prometheus.Histogram
	groups    prometheus.Histogram
	expired   prometheus.Counter
	pruned    prometheus.Counter
	gc        *prometheus.CounterVec // by result
	gcSeconds prometheus.Counter
	gcBytes   prometheus.Counter

	unreadable prometheus.Counter
	damaged    prometheus.Gauge
	rescued    prometheus.Counter
}

func newMetrics(l *Log) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	seconds := func(name, help string) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(0.0001, 2.5, 14),
		})
	}
	m := &metrics{
		registerer: l.opts.Registerer,
		items:      vec("vesti_ledger_items_total", "Items appended, by what became of them.", "result"),
		events:     vec("vesti_ledger_events_total", "Events written, by type.", "type"),
		failures:   vec("vesti_ledger_attempts_failed_total", "Attempts at a post that failed, by cause.", "cause"),
		parked:     vec("vesti_ledger_parked_total", "Posts parked, by cause.", "cause"),
		returns:    vec("vesti_ledger_returned_total", "Posts put back into the queue, by reason.", "reason"),
		claims:     vec("vesti_ledger_claims_total", "Claims granted, by stage and lane.", "stage", "lane"),
		claim:      seconds("vesti_ledger_claim_duration_seconds", "How long a claim took to grant, waiting for work aside."),
		conflicts:  counter("vesti_ledger_conflicts_total", "Transactions that were run again because another came between."),
		refused:    counter("vesti_ledger_claims_refused_total", "Grants that the post's record did not bear out."),
		stale:      counter("vesti_ledger_claims_stale_total", "Answers of workers that no longer had the claim."),
		leases:     counter("vesti_ledger_leases_expired_total", "Claims whose lease ended."),
		commit:     seconds("vesti_ledger_commit_duration_seconds", "How long a group of writes took to commit."),
		groups: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "vesti_ledger_commit_group_size", Help: "Writes committed together.", Buckets: prometheus.ExponentialBuckets(1, 2, 11),
		}),
		expired:   counter("vesti_ledger_retention_posts_total", "Posts whose texts retention removed."),
		pruned:    counter("vesti_ledger_retention_runs_total", "Runs of sources that retention folded."),
		gc:        vec("vesti_ledger_gc_files_total", "Files of texts that garbage collection looked at, by result.", "result"),
		gcSeconds: counter("vesti_ledger_gc_seconds_total", "Time spent in garbage collection."),
		gcBytes:   counter("vesti_ledger_gc_freed_bytes_total", "Bytes of disk that garbage collection gave back."),

		unreadable: counter("vesti_ledger_unreadable_total", "Reads that met a damaged value and went on without it."),
		damaged: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "vesti_ledger_damaged", Help: "Damaged places that the last daily check of the store's files found.",
		}),
		rescued: counter("vesti_ledger_rescued_total", "Values written anew because they stood behind damage in their file."),
	}
	m.startAtZero()
	return m
}

// startAtZero makes every label value there is, so that a rate over its first
// occurrence is right.
func (m *metrics) startAtZero() {
	for o := range ledger.Outcome(ledger.OutcomeCount) {
		m.items.WithLabelValues(o.String())
	}
	for _, t := range ledger.Types() {
		m.events.WithLabelValues(t.String())
	}
	for _, c := range ledger.PostCauses() {
		m.failures.WithLabelValues(string(c))
		m.parked.WithLabelValues(string(c))
	}
	for _, q := range queues() {
		m.claims.WithLabelValues(q.stage.String(), q.lane.String())
	}
	for _, r := range ledger.Returns() {
		m.returns.WithLabelValues(string(r))
	}
	for _, r := range []string{gcFreed, gcNothing, gcFailed} {
		m.gc.WithLabelValues(r)
	}
}

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{
		m.items, m.events, m.failures, m.parked, m.returns, m.claims, m.claim, m.conflicts, m.refused, m.stale, m.leases,
		m.commit, m.groups, m.expired, m.pruned, m.gc, m.gcSeconds, m.gcBytes,
		m.unreadable, m.damaged, m.rescued,
	}
}

// gauges are read when they are asked for.
func (m *metrics) gauges(l *Log) []prometheus.Collector {
	gauge := func(name, help string, read func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read)
	}
	return []prometheus.Collector{
		gauge("vesti_ledger_head", "Seq of the newest durable event.", func() float64 { return float64(l.Head()) }),
		gauge("vesti_ledger_claims_in_hand", "Posts in workers' hands.", func() float64 { return float64(l.queue.gauge().Processing) }),
		gauge("vesti_ledger_delayed", "Pending posts whose delay is not over.", func() float64 { return float64(l.queue.gauge().Waiting) }),
		gauge("vesti_ledger_free_bytes", "Free space of the store's disk.", func() float64 { return float64(l.space.free.Load()) }),
		gauge("vesti_ledger_out_of_space", "1 while no work is taken on for want of space.", func() float64 { return float64(count(l.space.low.Load())) }),
		gauge("vesti_ledger_stopped", "1 after a commit failed: the store must be opened again.", func() float64 { return float64(count(l.Err() != nil)) }),
		gauge("vesti_ledger_tree_bytes", "Size of the tree of keys on disk.", func() float64 { return l.sizes(true) }),
		gauge("vesti_ledger_texts_bytes", "Size of the files of texts on disk.", func() float64 { return l.sizes(false) }),
	}
}

func (l *Log) sizes(tree bool) float64 {
	release, err := l.acquire()
	if err != nil {
		return 0
	}
	defer release()
	lsm, vlog := l.db.Size()
	if tree {
		return float64(lsm)
	}
	return float64(vlog)
}

// register makes the metrics of an open store known.
func (m *metrics) register(l *Log) error {
	if m.registerer == nil {
		return nil
	}
	for _, c := range append(m.all(), m.gauges(l)...) {
		if err := m.registerer.Register(c); err != nil {
			m.close()
			return fmt.Errorf("register metrics: %w", err)
		}
		m.registered = append(m.registered, c)
	}
	return nil
}

// close takes the metrics back, so that a store can be opened again.
func (m *metrics) close() {
	for _, c := range m.registered {
		m.registerer.Unregister(c)
	}
	m.registered = nil
}

func (m *metrics) group(steps int, took time.Duration) {
	m.groups.Observe(float64(steps))
	m.commit.Observe(took.Seconds())
}

func (m *metrics) item(o ledger.Outcome) { m.items.WithLabelValues(o.String()).Inc() }

func (m *metrics) event(e ledger.Event) {
	m.events.WithLabelValues(e.Type.String()).Inc()
	switch p := e.Payload.(type) {
	case ledger.PostFailed:
		cause := knownCause(p.Cause)
		m.failures.WithLabelValues(cause).Inc()
		if p.Parked {
			m.parked.WithLabelValues(cause).Inc()
		}
	case ledger.PostReturned:
		if slices.Contains(ledger.Returns(), p.Reason) {
			m.returns.WithLabelValues(string(p.Reason)).Inc()
		}
	case ledger.PostExpired:
		m.expired.Inc()
	}
}

// knownCause keeps the set of label values closed.
func knownCause(c ledger.Cause) string {
	if slices.Contains(ledger.PostCauses(), c) {
		return string(c)
	}
	return string(ledger.CauseInternal)
}

func (m *metrics) claimed(q queueID, took time.Duration) {
	m.claims.WithLabelValues(q.stage.String(), q.lane.String()).Inc()
	m.claim.Observe(took.Seconds())
}

// The results of looking at a file of texts.
const (
	gcFreed   = "freed"
	gcNothing = "nothing"
	gcFailed  = "failed"
)
