package search

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime/debug"
	"sync"

	"github.com/blevesearch/bleve/v2/index/scorch"

	"vesti.nixg.ru/projections"
)

// health tells whether an open index still works. bleve's goroutines report to
// it: when one of them has died of a panic, writing would hang for ever.
type health struct {
	logger *slog.Logger

	mu    sync.Mutex // guards what follows
	cause error      // why the index is broken; nil while it works
	last  error      // the newest error that was not the end of it
	ch    chan struct{}

	doubts chan struct{} // holds one when something went wrong that damage may explain
}

// errPanic: bleve panicked, over damaged files or by a defect.
var errPanic = errors.New("the index panicked")

func newHealth(logger *slog.Logger) *health {
	return &health{logger: logger, ch: make(chan struct{}), doubts: make(chan struct{}, 1)}
}

// doubt asks for a look at the files.
func (h *health) doubt() {
	select {
	case h.doubts <- struct{}{}:
	default:
	}
}

// broken is closed once the index is beyond use.
func (h *health) broken() <-chan struct{} { return h.ch }

// err matches projections.ErrDamaged once the index is beyond use.
func (h *health) err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cause == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", projections.ErrDamaged, h.cause)
}

// lastError is for the end of a message.
func (h *health) lastError() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last == nil {
		return ""
	}
	return fmt.Sprintf(" (%v)", h.last)
}

// report takes an error of one of bleve's goroutines.
func (h *health) report(err error) {
	if errors.Is(err, scorch.ErrAsyncPanic) {
		h.fail(err)
		return
	}
	h.doubt()
	h.logger.Warn("search index reports an error and goes on", "error", err)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = err
}

func (h *health) fail(cause error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cause == nil {
		h.cause = cause
		close(h.ch)
	}
}

// guard runs f, which reads the index's mapped files: what is wrong there shows
// as a panic or a fault, and must not end the process. A fault means that the
// files are damaged; a panic may be any defect.
func (h *health) guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		v := recover()
		if v == nil {
			if err != nil {
				h.doubt()
			}
			return
		}
		h.doubt()
		// Damage heals by itself; the stack is for whoever looks for a defect.
		h.logger.Error("the search index panicked; its files are checked", "panic", v)
		h.logger.Debug("stack of the panic in the search index", "stack", string(debug.Stack()))
		err = fmt.Errorf("%w: %v", errPanic, v)
		if fault, ok := v.(interface{ Addr() uintptr }); ok {
			h.fail(fmt.Errorf("reading address %#x of a mapped file failed", fault.Addr()))
			err = h.err()
		}
	}()
	return f()
}

// bleve finds the receiver of such errors in a table of its own, by a name, when
// an index is opened, and tells it the index's folder. One receiver is put
// there, which hands on by folder.
const reportName = "vesti"

var (
	registerReport sync.Once
	reportsByPath  sync.Map // string to *health
)

// watch makes errors of the index in path go to h until the function that it
// returns is called.
func (h *health) watch(path string) (stop func()) {
	registerReport.Do(func() {
		scorch.RegistryEventCallbacks[reportName] = panicOnFault
		scorch.RegistryAsyncErrorCallbacks[reportName] = func(err error, path string) {
			if v, ok := reportsByPath.Load(filepath.Clean(path)); ok {
				v.(*health).report(err)
			}
		}
	})
	path = filepath.Clean(path)
	reportsByPath.Store(path, h)
	return func() { reportsByPath.CompareAndDelete(path, h) }
}

// panicOnFault makes faults panics on those of bleve's own goroutines that read
// files, where bleve turns panics into reports. It hears of them before they do.
func panicOnFault(e scorch.Event) bool {
	switch e.Kind {
	case scorch.EventKindPreMergeCheck, scorch.EventKindPersisterProgress, scorch.EventKindPurgerCheck:
		debug.SetPanicOnFault(true)
	default: // on the goroutine of whoever called bleve
	}
	return true
}
