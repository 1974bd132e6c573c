package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"vesti.nixg.ru/httpui"
	"vesti.nixg.ru/ledger"
)

func newServe(c *call) *cobra.Command {
	var withDemo bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Crawl on schedule, classify, serve the pages",
		Long: `Crawl on schedule, classify, serve the pages.

The first start writes a starter sources.yaml and rules.yaml into the data folder
and prints a password, once. SIGHUP reads the sources and the rules again, not the
settings, among them the directions: they are read at the start. SIGINT and SIGTERM
stop: work in hand gets work.grace to end, the rest returns to the queue.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.app != nil {
				return usagef("a server is running on this data folder already")
			}
			cfg, err := c.config()
			if err != nil {
				return err
			}
			err = serve(cmd.Context(), c, cfg, withDemo)
			if cmd.Context().Err() != nil && errors.Is(err, context.Canceled) {
				return nil // asked to stop while it started
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&withDemo, "demo", false, "add a built-in feed, so that there is something to see without a network")
	return cmd
}

func serve(ctx context.Context, c *call, cfg Config, withDemo bool) (err error) {
	onSources, onRules := hangups(), hangups()
	defer signal.Stop(onSources)
	defer signal.Stop(onRules)
	o := appOptions{logTo: c.err}
	if withDemo {
		if o.demo, err = newDemo(); err != nil {
			return err
		}
	}
	app, err := openApp(ctx, cfg, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, app.Close()) }()

	ui, err := app.newUI()
	if err != nil {
		return err
	}
	app.ui = ui
	control, err := listenControl(ctx, cfg.Data)
	if err != nil {
		return err
	}
	var lc net.ListenConfig
	pages, err := lc.Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return errors.Join(fmt.Errorf("listen for the pages: %w; choose another address with --set web.listen=HOST:PORT", err), control.Close())
	}
	password, err := ui.EnsurePassword(ctx) // once nothing is in the way of showing it
	if err != nil {
		return errors.Join(fmt.Errorf("set the first password: %w", err), pages.Close(), control.Close())
	}
	fmt.Fprintf(c.out, "vesti %s is at http://%s\n", version, pages.Addr())
	if password != "" {
		fmt.Fprintf(c.out, "The password, shown this once: %s\n", password)
	}
	fmt.Fprintln(c.out, "Ready. Stop it with Ctrl-C.")

	// The projections outlive everything that writes, so that what the workers
	// finish in their grace period is in them.
	return app.run(ctx, func(ctx context.Context) error {
		g, ctx := errgroup.WithContext(ctx)
		g.Go(func() error { return app.crawler.Run(ctx) })
		g.Go(func() error { return app.pool.Run(ctx) })
		g.Go(func() error { return app.watchStore(ctx) })
		if app.trainer != nil {
			g.Go(func() error { return app.trainer.Run(ctx) })
		}
		g.Go(func() error { return app.watchRules(ctx, onRules) })
		g.Go(func() error { return app.reloadOnHangup(ctx, onSources) })
		g.Go(func() error { return serveControl(ctx, control, app) })
		g.Go(func() error { return servePages(ctx, pages, ui.HTTPServer()) })
		if app.demo != nil {
			g.Go(func() error { return app.demo.run(ctx, app.crawlDemo) })
		}
		err := g.Wait()
		app.logger.Info("stopped")
		return err
	})
}

// ready is what stands between vesti and its work: an engine that has given up,
// or a disk below the floor.
func (a *App) ready() error {
	if err := a.log.Err(); err != nil {
		return err
	}
	return a.space()
}

// space matches ledger.ErrNoSpace on a disk below the floor.
func (a *App) space() error {
	free, err := freeSpace(a.cfg.Data)
	if err != nil {
		return err
	}
	if free < a.cfg.FreeSpace {
		return fmt.Errorf("%w: %d MiB free in %s, ledger.free_space wants %d MiB", ledger.ErrNoSpace, free>>20, a.cfg.Data, a.cfg.FreeSpace>>20)
	}
	return nil
}

// freeSpace is what the disk of a folder has left.
func freeSpace(dir string) (ByteSize, error) {
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil {
		return 0, fmt.Errorf("look at the disk: %w", err)
	}
	return ByteSize(disk.Bavail) * ByteSize(disk.Bsize), nil
}

// watchStore ends the server when the engine has given up, as after a disk that
// refused a write: only opening the store again puts that right, which is a
// supervisor's work.
func (a *App) watchStore(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := a.log.Err(); err != nil {
				return err
			}
		}
	}
}

// crawlDemo has the demo feed read at once when it has something new.
func (a *App) crawlDemo(context.Context) {
	if err := a.crawler.RunNow(demoSlug); err != nil {
		a.logger.Warn("the demo feed cannot be read", "error", err)
	}
}

// hangups returns a channel for SIGHUP, which ends a process that has none. The
// caller stops it.
func hangups() chan os.Signal {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c
}

func (a *App) reloadOnHangup(ctx context.Context, hangup <-chan os.Signal) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hangup:
			changes, err := a.reloadSources(ctx)
			if err != nil {
				a.logger.Error("the sources were not taken over; the old ones stay in force", "error", err)
				continue
			}
			a.logger.Info("sources read again", "sources", len(a.crawler.Sources()),
				"added", changes.Added, "changed", changes.Changed, "removed", changes.Removed)
		}
	}
}

func (a *App) newUI() (*httpui.Server, error) {
	o := httpui.Options{
		Queue:          a.queue,
		Registry:       a.crawler,
		Sources:        a.sources,
		Search:         a.search,
		Posts:          a.log,
		Commands:       commands{a},
		Store:          a.log.Store("web"),
		Projections:    a.runner.Status,
		Directions:     a.cfg.Directions,
		Logger:         a.logger.With("part", "web"),
		Registerer:     a.registry,
		Ready:          a.ready,
		Gatherer:       a.registry,
		Location:       a.cfg.location(),
		Version:        version,
		ExternalURL:    a.cfg.ExternalURL,
		TrustedProxies: a.cfg.TrustedProxies,
		MetricsPublic:  a.cfg.MetricsPublic,
	}
	if a.breaker != nil {
		o.LLM = a.breaker.Status
	}
	if a.telegram != nil {
		o.Telegram = a.telegramState
	}
	ui, err := httpui.New(o)
	if err != nil {
		return nil, fmt.Errorf("set up the pages: %w", err)
	}
	return ui, nil
}

func servePages(ctx context.Context, l net.Listener, srv *http.Server) error {
	defer context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if srv.Shutdown(grace) != nil {
			_ = srv.Close()
		}
	})()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the pages: %w", err)
	}
	return nil
}

// commands is what the pages may change.
type commands struct{ a *App }

// CrawlNow implements httpui.Commands.
func (c commands) CrawlNow(_ context.Context, slugs ...ledger.Slug) error {
	return c.a.crawler.RunNow(slugs...)
}

// WorkNow implements httpui.Commands. The workers claim as soon as there is
// something to claim, so there is nothing to wake.
func (c commands) WorkNow(ctx context.Context) error {
	c.a.settle(ctx)
	return nil
}

// ResetDead implements httpui.Commands.
func (c commands) ResetDead(ctx context.Context, slugs ...ledger.Slug) (int, error) {
	n, err := c.a.resetSources(ctx, ledger.ActorEditor, slugs)
	c.a.settle(ctx)
	return n, err
}

// Review implements httpui.Commands.
func (c commands) Review(ctx context.Context, post ledger.PostNum, word ledger.PostReviewed) error {
	_, err := c.a.log.Record(ctx, ledger.NewEvent(ledger.ActorEditor, post, "", word))
	c.a.settle(ctx)
	return err
}

// Requeue implements httpui.Commands.
func (c commands) Requeue(ctx context.Context, post ledger.PostNum) error {
	_, err := c.a.log.Record(ctx, ledger.NewEvent(ledger.ActorEditor, post, "",
		ledger.PostReturned{Reason: ledger.ReturnEditor, Lane: ledger.LaneEditor}))
	c.a.settle(ctx)
	return err
}

// resetSources makes the named sources alive, all dead and gone ones for none.
func (a *App) resetSources(ctx context.Context, actor ledger.Actor, slugs []ledger.Slug) (int, error) {
	if len(slugs) == 0 {
		for _, src := range a.crawler.Sources() {
			state, err := a.log.Source(ctx, src.Slug)
			if err != nil {
				return 0, fmt.Errorf("read source %s: %w", src.Slug, err)
			}
			if state.Status == ledger.SourceDead || state.Status == ledger.SourceGone {
				slugs = append(slugs, src.Slug)
			}
		}
	}
	if len(slugs) == 0 {
		return 0, nil
	}
	if err := a.crawler.Reset(ctx, actor, slugs...); err != nil {
		return 0, err
	}
	return len(slugs), nil
}
