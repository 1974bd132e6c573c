package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverJob carries a post. River tells duplicates by the tagged field.
type riverJob struct {
	SHA string `json:"sha" river:"unique"`
	post
}

func (riverJob) Kind() string { return "post" }

// riverStore is a PostgreSQL server of its own with River's tables in it.
type riverStore struct {
	server *process
	pool   *pgxpool.Pool
	insert *river.Client[pgx.Tx]
}

// openRiver makes a cluster in dir and starts it. Servers live for one section's
// store only, so that none writes behind another contestant's back.
func (e *environment) openRiver(ctx context.Context, dir string, c class) (_ store, err error) {
	synchronous := "on"
	if c == classP {
		synchronous = "off"
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "cluster")
	if err := e.initCluster(ctx, dir, data); err != nil {
		return nil, err
	}
	s := &riverStore{server: newProcess(ctx, filepath.Join(e.postgresBin, "postgres"), "-D", data, "-p", strconv.Itoa(port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "synchronous_commit="+synchronous,
		"-c", "shared_buffers=256MB", "-c", "max_wal_size=2GB", "-c", "max_connections=200")}
	s.server.as(e.postgresUser)
	s.server.ask = syscall.SIGINT // "fast": rolls back and ends
	if err := s.server.start(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if err := s.connect(ctx, port); err != nil {
		return nil, err
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(s.pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fmt.Errorf("make River's tables: %w", err)
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, fmt.Errorf("make River's tables: %w", err)
	}
	s.insert, err = river.NewClient(riverpgxv5.New(s.pool), &river.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fmt.Errorf("make River's client: %w", err)
	}
	return s, nil
}

func (e *environment) initCluster(ctx context.Context, dir, data string) error {
	if err := e.postgresUser.own(dir); err != nil {
		return fmt.Errorf("give the cluster's folder to its account: %w", err)
	}
	p := newProcess(ctx, filepath.Join(e.postgresBin, "initdb"), "-D", data, "-U", "postgres", "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync")
	p.as(e.postgresUser)
	p.cmd.Dir = dir
	if err := p.start(); err != nil {
		return err
	}
	if err := p.wait(ctx); err != nil {
		return fmt.Errorf("make a PostgreSQL cluster: %w", err)
	}
	return nil
}

// connect waits until the server takes connections.
func (s *riverStore) connect(ctx context.Context, port int) error {
	cfg, err := pgxpool.ParseConfig(fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable&pool_max_conns=32", port))
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	return s.server.waitReady(ctx, s.pool.Ping)
}

func (s *riverStore) append(ctx context.Context, f *feed, batch int, b budget) (tally, error) {
	return produce(ctx, f, batch, b, func(ctx context.Context, posts []post) (int, error) {
		params := riverParams(posts)
		for {
			results, err := s.insert.InsertMany(ctx, params)
			var pg *pgconn.PgError
			if errors.As(err, &pg) && pg.Code == "40P01" { // two batches met in each other's keys
				continue
			}
			if err != nil {
				return 0, fmt.Errorf("insert: %w", err)
			}
			fresh := 0
			for _, r := range results {
				if !r.UniqueSkippedAsDuplicate {
					fresh++
				}
			}
			return fresh, nil
		}
	})
}

// riverParams sorts a batch by key, which makes deadlocks between batches rare,
// and leaves out what it holds twice, which River refuses.
func riverParams(posts []post) []river.InsertManyParams {
	jobs := make([]riverJob, len(posts))
	for i, p := range posts {
		h := p.hash()
		jobs[i] = riverJob{SHA: hex.EncodeToString(h[:]), post: p}
	}
	slices.SortFunc(jobs, func(a, b riverJob) int { return cmp.Compare(a.SHA, b.SHA) })
	jobs = slices.CompactFunc(jobs, func(a, b riverJob) bool { return a.SHA == b.SHA })
	params := make([]river.InsertManyParams, len(jobs))
	for i, j := range jobs {
		priority := 2
		if j.Own {
			priority = 1
		}
		params[i] = river.InsertManyParams{Args: j, InsertOpts: &river.InsertOpts{
			Priority: priority, UniqueOpts: river.UniqueOpts{ByArgs: true},
		}}
	}
	return params
}

func (s *riverStore) claim(ctx context.Context, m mode, b budget) (tally, error) {
	registry := river.NewWorkers()
	river.AddWorker(registry, river.WorkFunc(func(_ context.Context, j *river.Job[riverJob]) error {
		if j.Args.Text == "" {
			return errors.New("claimed a post without its text")
		}
		return nil
	}))
	client, err := river.NewClient(riverpgxv5.New(s.pool), &river.Config{
		Logger: slog.New(slog.DiscardHandler), Workers: registry,
		Queues:        map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: m.crew()}},
		FetchCooldown: time.Millisecond, FetchPollInterval: time.Millisecond,
	})
	if err != nil {
		return tally{}, fmt.Errorf("make River's client: %w", err)
	}
	// An event follows the completion's commit.
	events, cancel := client.SubscribeConfig(&river.SubscribeConfig{
		ChanSize: 100_000, Kinds: []river.EventKind{river.EventKindJobCompleted, river.EventKindJobFailed},
	})
	defer cancel()
	begin := time.Now()
	if err := client.Start(ctx); err != nil {
		return tally{}, fmt.Errorf("start River: %w", err)
	}
	t, err := completions(ctx, begin, b, events)
	if err := client.Stop(ctx); err != nil {
		return t, fmt.Errorf("stop River: %w", err)
	}
	for len(events) > 0 {
		<-events
		t.extra++
	}
	return t, err
}

// completions counts until the budget is spent. River records completions in
// batches: the clock stops with the last one that is in, and waits for the first.
func completions(ctx context.Context, begin time.Time, b budget, events <-chan *river.Event) (tally, error) {
	var t tally
	end := time.NewTimer(b.time)
	defer end.Stop()
	for over := false; t.posts < b.posts && (!over || t.posts == 0); {
		select {
		case e := <-events:
			if e.Kind != river.EventKindJobCompleted {
				return t, fmt.Errorf("job %d failed: %v", e.Job.ID, e.Job.Errors)
			}
			t.posts++
			t.elapsed = time.Since(begin)
		case <-end.C:
			over = true
		case <-ctx.Done():
			return t, ctx.Err()
		}
	}
	return t, nil
}

func (s *riverStore) close() error {
	if s.pool != nil {
		s.pool.Close()
	}
	return s.server.stop()
}
