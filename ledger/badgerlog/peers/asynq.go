package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

const asynqCompleted = "asynq:{default}:completed" // where Asynq keeps the ids of completed tasks

// asynqStore is a Redis server of its own with Asynq's queue in it.
type asynqStore struct {
	server *process
	redis  *redis.Client
	client *asynq.Client
	addr   string
}

func (e *environment) openAsynq(ctx context.Context, dir string, c class) (_ store, err error) {
	appendfsync := "always"
	if c == classP {
		appendfsync = "everysec"
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	s := &asynqStore{addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	s.server = newProcess(ctx, e.redis, "--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir, "--save", "",
		"--appendonly", "yes", "--appendfsync", appendfsync, "--daemonize", "no")
	s.redis = redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: -1})
	s.client = asynq.NewClient(asynq.RedisClientOpt{Addr: s.addr})
	if err := s.server.start(); err != nil {
		return nil, errors.Join(err, s.disconnect())
	}
	ready := func(ctx context.Context) error { return s.redis.Ping(ctx).Err() }
	if err := s.server.waitReady(ctx, ready); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// append enqueues tasks one by one: Asynq has no call for many.
func (s *asynqStore) append(ctx context.Context, f *feed, batch int, b budget) (tally, error) {
	return produce(ctx, f, batch, b, func(ctx context.Context, posts []post) (int, error) {
		fresh := 0
		for i := range posts {
			payload, err := json.Marshal(&posts[i])
			if err != nil {
				return fresh, fmt.Errorf("encode: %w", err)
			}
			h := posts[i].hash()
			// The id keeps duplicates out for as long as the task is retained.
			_, err = s.client.EnqueueContext(ctx, asynq.NewTask("post", payload),
				asynq.TaskID(hex.EncodeToString(h[:])), asynq.Retention(24*time.Hour))
			if errors.Is(err, asynq.ErrTaskIDConflict) {
				continue
			}
			if err != nil {
				return fresh, fmt.Errorf("enqueue: %w", err)
			}
			fresh++
		}
		return fresh, nil
	})
}

func (s *asynqStore) claim(ctx context.Context, m mode, b budget) (tally, error) {
	before, err := s.completed(ctx)
	if err != nil {
		return tally{}, err
	}
	server := asynq.NewServer(asynq.RedisClientOpt{Addr: s.addr}, asynq.Config{
		Concurrency: m.crew(), Logger: silent{}, LogLevel: asynq.FatalLevel, TaskCheckInterval: time.Millisecond,
	})
	begin := time.Now()
	err = server.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		var p post
		if err := json.Unmarshal(t.Payload(), &p); err != nil || p.Text == "" {
			return errors.New("claimed a post without its text")
		}
		return nil
	}))
	if err != nil {
		return tally{}, fmt.Errorf("start Asynq: %w", err)
	}
	var t tally
	for t.posts < b.posts && time.Since(begin) < b.time && err == nil {
		pause(ctx, 2*time.Millisecond) // the count is read from Redis: rarely enough not to weigh
		var n int
		n, err = s.completed(ctx)
		t.posts = n - before
		t.elapsed = time.Since(begin)
	}
	server.Stop()
	server.Shutdown()
	if err != nil {
		return t, err
	}
	n, err := s.completed(ctx)
	t.extra = n - before - t.posts
	return t, err
}

func (s *asynqStore) completed(ctx context.Context) (int, error) {
	n, err := s.redis.ZCard(ctx, asynqCompleted).Result()
	if err != nil {
		return 0, fmt.Errorf("count completed tasks: %w", err)
	}
	return int(n), nil
}

func (s *asynqStore) close() error {
	return errors.Join(s.disconnect(), s.server.stop())
}

func (s *asynqStore) disconnect() error {
	var errs []error
	for _, c := range []io.Closer{s.client, s.redis} {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// silent is a logger for Asynq, which has none that says nothing.
type silent struct{}

func (silent) Debug(...any) {}
func (silent) Info(...any)  {}
func (silent) Warn(...any)  {}
func (silent) Error(...any) {}
func (silent) Fatal(...any) {}
