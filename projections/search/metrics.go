package search

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics measure searches, and the index that serves when they are scraped.
type metrics struct {
	serving   func() *fold
	seconds   prometheus.Histogram
	failures  prometheus.Counter
	documents *prometheus.Desc
	bytes     *prometheus.Desc
}

func newMetrics(reg prometheus.Registerer, serving func() *fold) *metrics {
	m := &metrics{
		serving: serving,
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "vesti_search_seconds", Help: "How long searches took, with the excerpts of their hits.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "vesti_search_failures_total", Help: "Searches that ended in an error of the index or of the ledger.",
		}),
		documents: prometheus.NewDesc("vesti_search_index_documents", "Posts in the search index.", nil, nil),
		bytes:     prometheus.NewDesc("vesti_search_index_bytes", "Size of the search index on disk.", nil, nil),
	}
	if reg != nil {
		reg.MustRegister(m)
	}
	return m
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	m.seconds.Describe(ch)
	m.failures.Describe(ch)
	ch <- m.documents
	ch <- m.bytes
}

// Collect implements prometheus.Collector. What cannot be had now is left out.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	m.seconds.Collect(ch)
	m.failures.Collect(ch)
	f := m.serving()
	if f == nil {
		return
	}
	if n, err := f.documents(); err == nil {
		ch <- prometheus.MustNewConstMetric(m.documents, prometheus.GaugeValue, float64(n))
	}
	if n, err := folderSize(f.dir); err == nil {
		ch <- prometheus.MustNewConstMetric(m.bytes, prometheus.GaugeValue, float64(n))
	}
}

// documents counts the posts in the index.
func (f *fold) documents() (n uint64, err error) {
	f.readers.RLock()
	defer f.readers.RUnlock()
	if f.closed {
		return 0, errClosed
	}
	err = f.health.guard(func() error {
		r, err := f.index.Reader()
		if err != nil {
			return err
		}
		n, err = r.DocCount()
		return errors.Join(err, r.Close())
	})
	return n, err
}

// errClosed: the fold was replaced a moment ago.
var errClosed = errors.New("index is closed")

// folderSize adds up the files of a folder, which may come and go meanwhile.
func folderSize(dir string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			var info fs.FileInfo
			if info, err = e.Info(); err == nil {
				sum += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return sum, err
}
