package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"vesti.nixg.ru/classify"
	"vesti.nixg.ru/classify/keyword"
	"vesti.nixg.ru/classify/learned"
	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/fetch"
	"vesti.nixg.ru/crawl/page"
	"vesti.nixg.ru/crawl/telegram"
	"vesti.nixg.ru/crawl/telegram/mtproto"
	"vesti.nixg.ru/httpui"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
	"vesti.nixg.ru/projections"
	"vesti.nixg.ru/projections/posts"
	"vesti.nixg.ru/projections/queue"
	"vesti.nixg.ru/projections/search"
	"vesti.nixg.ru/projections/sources"
)

// App is vesti put together on one store: by "vesti serve" for as long as it
// runs, by other commands for the time they take.
type App struct {
	cfg      Config
	logger   *slog.Logger
	registry *prometheus.Registry
	demo     *demo // nil without one
	scratch  bool  // the data folder goes when the App is closed

	log     *badgerlog.Log
	runner  *projections.Runner
	queue   *queue.Queue
	sources *sources.Sources
	posts   *posts.Posts
	search  *search.Search
	client  *fetch.Client
	crawler *crawl.Crawler
	drops   *crawl.Drops
	pages   *page.Extractor
	rules   *keyword.Classifier
	learned *learned.Classifier // nil where it is switched off
	trainer *classify.Trainer   // likewise
	cascade *classify.Cascade
	pool    *classify.Pool
	breaker *classify.Breaker // nil without a language model
	ui      *httpui.Server    // nil outside "vesti serve"

	channels *telegram.Kind
	telegram *mtproto.Account // nil without api_id
}

type appOptions struct {
	logTo io.Writer
	demo  *demo
	// tolerate hears of broken sources and rules, in whose place there are none
	// and the starter's; nil makes them an error.
	tolerate func(error)
	// acceptLoss opens a store that has lost what it acknowledged.
	acceptLoss bool
}

// openApp opens the store and builds everything on it; nothing runs yet.
func openApp(ctx context.Context, cfg Config, o appOptions) (*App, error) {
	if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
		return nil, fmt.Errorf("make data folder: %w", err)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(cfg.Memory))
	}
	a := &App{cfg: cfg, logger: newLogger(cfg, o.logTo), registry: prometheus.NewRegistry(), demo: o.demo}
	a.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if err := a.writeStarters(); err != nil {
		return nil, err
	}
	var err error
	if a.log, err = a.openLog(ctx, o.acceptLoss); err != nil {
		return nil, err
	}
	if a.demo != nil {
		if err := a.demo.listen(ctx, a.log.Store("demo"), a.logger); err != nil {
			return nil, errors.Join(err, a.log.Close())
		}
	}
	if err := errors.Join(a.buildProjections(), a.buildCrawler(ctx, o.tolerate), a.buildClassifiers(ctx, o.tolerate)); err != nil {
		return nil, errors.Join(err, a.log.Close())
	}
	return a, nil
}

// Close closes the store. What ran on it must have ended.
func (a *App) Close() error {
	a.pages.Close()
	a.client.Close()
	if a.telegram != nil {
		if err := a.telegram.Close(); err != nil {
			a.logger.Warn("close the Telegram account", "error", err)
		}
	}
	if err := a.log.Close(); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	if a.scratch {
		return os.RemoveAll(a.cfg.Data)
	}
	return nil
}

// run feeds the projections while f runs, which sees them up to date.
func (a *App) run(ctx context.Context, f func(context.Context) error) error {
	feeding, stop := context.WithCancel(context.WithoutCancel(ctx))
	fed := make(chan error, 1)
	go func() { fed <- a.runner.Run(feeding) }()
	err := a.catchUp(ctx)
	if err == nil {
		err = f(ctx)
	}
	stop()
	return errors.Join(err, <-fed)
}

// catchUp waits until the projections show all that the ledger has. On a disk
// below its floor it does not wait for long: what is far behind stays there.
func (a *App) catchUp(ctx context.Context) error {
	if err := a.space(); err != nil {
		a.logger.Warn("some views may be behind", "error", err)
		a.settle(ctx)
		return nil
	}
	if err := a.runner.CatchUp(ctx, a.log.Head()); err != nil {
		return fmt.Errorf("wait for projections: %w", err)
	}
	return nil
}

// settle is catchUp for a moment: what a page does should show on the next one,
// but never at the price of a page that hangs.
func (a *App) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_ = a.runner.CatchUp(ctx, a.log.Head()) // late is no failure: the change itself is durable
}

func newLogger(cfg Config, w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(cfg.LogLevel)) // Config.check has seen it
	opts := &slog.HandlerOptions{Level: level}
	if cfg.LogJSON {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

// writeStarters puts a registry of sources and keyword rules where the user has
// none and has named no other place.
func (a *App) writeStarters() error {
	registry, err := starter.ReadFile("starter/sources.yaml")
	if err != nil {
		return fmt.Errorf("read starter sources: %w", err)
	}
	files := []struct {
		path string
		data []byte
	}{{filepath.Join(a.cfg.Data, "sources.yaml"), registry}}
	if sameDirections(a.cfg.Directions, ledger.DefaultDirections()) {
		files = append(files, struct {
			path string
			data []byte
		}{filepath.Join(a.cfg.Data, "rules.yaml"), keyword.Starter()})
	}
	for _, f := range files {
		if f.path != a.cfg.Sources && f.path != a.cfg.Rules {
			continue
		}
		file, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("write starter file: %w", err)
		}
		_, err = file.Write(f.data)
		if err := errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("write starter file: %w", err)
		}
		a.logger.Info("wrote a starter file for you to edit", "file", f.path)
	}
	return nil
}

func sameDirections(a, b []ledger.Direction) bool {
	if len(a) != len(b) {
		return false
	}
	have := map[ledger.Direction]bool{}
	for _, d := range a {
		have[d] = true
	}
	for _, d := range b {
		if !have[d] {
			return false
		}
	}
	return true
}

func (a *App) openLog(ctx context.Context, acceptLoss bool) (*badgerlog.Log, error) {
	durability := badgerlog.Durable
	if a.cfg.Durability == "relaxed" {
		durability = badgerlog.Relaxed
	}
	log, err := badgerlog.Open(ctx, badgerlog.Options{
		Dir:            filepath.Join(a.cfg.Data, "ledger"),
		Durability:     durability,
		Logger:         a.logger.With("part", "ledger"),
		Registerer:     a.registry,
		Lease:          a.cfg.Lease,
		MaxAttempts:    a.cfg.MaxAttempts,
		Retention:      a.retention(),
		FreeSpaceFloor: int64(a.cfg.FreeSpace),
		AcceptLoss:     acceptLoss,
		Progress: func(step string, done, total uint64) {
			a.logger.Info("upgrading the store", "step", step, "done", done, "total", total)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return log, nil
}

// retention is what the engine removes by itself, and "vesti compact" at once.
func (a *App) retention() badgerlog.Retention {
	return badgerlog.Retention{Posts: a.cfg.KeepPosts, Revisions: a.cfg.KeepRevision, Runs: a.cfg.KeepRuns}
}

func (a *App) buildProjections() error {
	stores := projections.Stores(a.log.Store)
	a.queue = queue.New(stores)
	a.sources = sources.New(stores)
	a.posts = posts.New(stores)
	a.search = search.New(search.Options{
		Dir:    filepath.Join(a.cfg.Data, "search"),
		Texts:  a.log,
		Posts:  a.posts,
		Logger: a.logger.With("part", "search"),
		Zone:   a.cfg.location(),

		Directions: a.cfg.Directions,
		Sources:    a.slugs,
		Registerer: a.registry,
	})
	var err error
	a.runner, err = projections.New(projections.Options{
		Log:         a.log,
		Stores:      stores,
		Space:       a.space,
		Projections: []projections.Projection{a.queue, a.sources, a.posts, a.search},
		Logger:      a.logger.With("part", "projections"),
		Registerer:  a.registry,
	})
	if err != nil {
		return fmt.Errorf("set up projections: %w", err)
	}
	return nil
}
