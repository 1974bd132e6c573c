package badgerlog

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"vesti.nixg.ru/ledger"
)

// Durability is what an acknowledgement means.
type Durability uint8

const (
	// Durable is the default: what was acknowledged survives a power cut. Every
	// group of writes is synced before its callers hear of it.
	Durable Durability = iota
	// Relaxed means: what was acknowledged survives the death of the process; a power
	// cut may take up to about a second of it. Writes are synced once a second.
	Relaxed
)

// String returns "durable" or "relaxed".
func (d Durability) String() string {
	if d == Relaxed {
		return "relaxed"
	}
	return "durable"
}

// Options configure a Log. The zero value of each field but Dir is its default.
type Options struct {
	// Dir is the store's folder, made where it does not exist, with rights for
	// its owner only.
	Dir        string
	Durability Durability

	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Logger hears of what the engine does by itself; nil discards.
	Logger *slog.Logger
	// Registerer gets the metrics; nil registers none.
	Registerer prometheus.Registerer

	// Lease is how long a claim holds without a heartbeat; 0 is 2 minutes.
	Lease time.Duration
	// MaxAttempts is how many failed attempts park a post; 0 is 5. A post that
	// was in hand when its process died this many times is parked as well.
	MaxAttempts int
	// RetryFirst is the delay after the first failed attempt, 0 is 30 s; each
	// further one triples it up to RetryMax, 0 is 1 hour. A fifth is jitter.
	RetryFirst time.Duration
	RetryMax   time.Duration
	// Tick is how often leases, delays and the disk are looked at; 0 is 1 s.
	Tick time.Duration

	// MemTable is the size of a table in memory in bytes, of which up to four are
	// held; 0 is 8 MiB. An item's text must be well below a tenth of it compressed.
	MemTable int64
	// BlockCache and IndexCache bound the caches, in bytes; 0 is 32 and 16 MiB.
	BlockCache int64
	IndexCache int64
	// ValueLogFile is the size of a file of texts in bytes; 0 is 64 MiB. Space is
	// given back by whole files.
	ValueLogFile int64
	// GCInterval is the time between two rounds of maintenance: retention, and the
	// collection of files of texts that are mostly garbage; 0 is 10 minutes,
	// negative is never.
	GCInterval time.Duration
	// Retention is what maintenance removes; the zero value removes nothing.
	Retention Retention
	// FreeSpaceFloor is the free space in bytes below which no work is taken on;
	// 0 is 1 GiB, negative is no floor.
	FreeSpaceFloor int64

	// AcceptLoss opens a durable store of which it is known that changes that were
	// acknowledged are gone, without them.
	AcceptLoss bool

	// Progress hears of an upgrade from an older format; nil is silent.
	Progress Progress
}

// Progress hears how far long work has come, of total steps; total is 0 where
// it is not known. It is called from one goroutine at a time.
type Progress func(step string, done, total uint64)

func (o Options) withDefaults() (Options, error) {
	if o.Dir == "" {
		return o, fmt.Errorf("%w: no folder given for the store", ledger.ErrInvalid)
	}
	o.Dir = filepath.Clean(o.Dir)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Progress == nil {
		o.Progress = func(string, uint64, uint64) {}
	}
	orDefault(&o.Lease, 2*time.Minute)
	orDefault(&o.MaxAttempts, 5)
	orDefault(&o.RetryFirst, 30*time.Second)
	orDefault(&o.RetryMax, time.Hour)
	orDefault(&o.Tick, time.Second)
	orDefault(&o.MemTable, 8<<20)
	orDefault(&o.BlockCache, 32<<20)
	orDefault(&o.IndexCache, 16<<20)
	orDefault(&o.ValueLogFile, 64<<20)
	orDefault(&o.GCInterval, 10*time.Minute)
	orDefault(&o.FreeSpaceFloor, 1<<30)
	return o, nil
}

func orDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// retryDelay is the delay after the attempt'th failed attempt: it triples up to
// RetryMax, give or take a tenth, so that what failed together does not come
// back together.
func (o Options) retryDelay(attempt int) time.Duration {
	d := o.RetryFirst
	for range attempt - 1 {
		if d *= 3; d >= o.RetryMax {
			d = o.RetryMax
			break
		}
	}
	jitter := time.Duration(rand.Int64N(int64(d)/5 + 1)) //nolint:gosec // spreads load, guards nothing
	return d - d/10 + jitter
}
