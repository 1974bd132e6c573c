package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// jetStore is a NATS server inside this process, as an embedded engine would have it.
type jetStore struct {
	server   *server.Server
	conns    []*nats.Conn // one for each producer and worker
	streams  []jetstream.JetStream
	stream   jetstream.Stream
	consumer []jetstream.Consumer // one handle for each worker, all of the same consumer
}

func openJetStream(ctx context.Context, dir string, c class) (_ store, err error) {
	s := &jetStore{}
	s.server, err = server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, SyncAlways: c == classD, NoLog: true, NoSigs: true,
	})
	if err != nil {
		return nil, fmt.Errorf("start NATS: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	s.server.Start()
	if !s.server.ReadyForConnections(30 * time.Second) {
		return nil, errors.New("start NATS: not ready after 30 s")
	}
	for range max(producers, workers) {
		conn, err := nats.Connect(s.server.ClientURL())
		if err != nil {
			return nil, fmt.Errorf("connect to NATS: %w", err)
		}
		s.conns = append(s.conns, conn)
		js, err := jetstream.New(conn)
		if err != nil {
			return nil, fmt.Errorf("connect to JetStream: %w", err)
		}
		s.streams = append(s.streams, js)
	}
	s.stream, err = s.streams[0].CreateStream(ctx, jetstream.StreamConfig{
		Name: "posts", Subjects: []string{"posts"}, Storage: jetstream.FileStorage, Retention: jetstream.WorkQueuePolicy,
		Duplicates: time.Hour,
	})
	if err != nil {
		return nil, fmt.Errorf("make the stream: %w", err)
	}
	_, err = s.stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: "classify", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 10_000,
	})
	if err != nil {
		return nil, fmt.Errorf("make the consumer: %w", err)
	}
	for _, js := range s.streams {
		c, err := js.Consumer(ctx, "posts", "classify")
		if err != nil {
			return nil, fmt.Errorf("find the consumer: %w", err)
		}
		s.consumer = append(s.consumer, c)
	}
	return s, nil
}

func (s *jetStore) append(ctx context.Context, f *feed, batch int, b budget) (tally, error) {
	free := make(chan jetstream.JetStream, len(s.streams))
	for _, js := range s.streams {
		free <- js
	}
	return produce(ctx, f, batch, b, func(ctx context.Context, posts []post) (int, error) {
		js := <-free
		defer func() { free <- js }()
		if len(posts) == 1 {
			return publish(ctx, js, &posts[0])
		}
		return publishMany(ctx, js, posts)
	})
}

func publish(ctx context.Context, js jetstream.JetStream, p *post) (fresh int, err error) {
	m, id, err := message(p)
	if err != nil {
		return 0, err
	}
	ack, err := js.PublishMsg(ctx, m, jetstream.WithMsgID(id))
	if err != nil {
		return 0, fmt.Errorf("publish: %w", err)
	}
	if ack.Duplicate {
		return 0, nil
	}
	return 1, nil
}

// publishMany sends all posts and then waits for their acknowledgements.
func publishMany(ctx context.Context, js jetstream.JetStream, posts []post) (fresh int, err error) {
	acks := make([]jetstream.PubAckFuture, len(posts))
	for i := range posts {
		m, id, err := message(&posts[i])
		if err != nil {
			return 0, err
		}
		if acks[i], err = js.PublishMsgAsync(m, jetstream.WithMsgID(id)); err != nil {
			return 0, fmt.Errorf("publish: %w", err)
		}
	}
	for _, a := range acks {
		select {
		case ack := <-a.Ok():
			if !ack.Duplicate {
				fresh++
			}
		case err := <-a.Err():
			return fresh, fmt.Errorf("publish: %w", err)
		case <-ctx.Done():
			return fresh, ctx.Err()
		}
	}
	return fresh, nil
}

func message(p *post) (m *nats.Msg, id string, err error) {
	data, err := json.Marshal(p)
	if err != nil {
		return nil, "", fmt.Errorf("encode: %w", err)
	}
	h := p.hash()
	return &nats.Msg{Subject: "posts", Data: data}, hex.EncodeToString(h[:]), nil
}

func (s *jetStore) claim(ctx context.Context, m mode, b budget) (tally, error) {
	before, err := s.waiting(ctx)
	if err != nil {
		return tally{}, err
	}
	do := func(ctx context.Context, worker, n int) error {
		for n > 0 {
			got, err := s.handle(ctx, s.consumer[worker], m, n)
			if err != nil {
				return err
			}
			n -= got
		}
		return nil
	}
	return work(ctx, m, b, do, func(done int) error {
		// Acknowledgements nobody waits for count once the stream shows them.
		for {
			left, err := s.waiting(ctx)
			if err != nil || left == before-done {
				return err
			}
			if left < before-done {
				return fmt.Errorf("the stream lost messages: %d left, want %d", left, before-done)
			}
			pause(ctx, time.Millisecond)
		}
	})
}

// handle fetches up to n messages, and acknowledges each.
func (s *jetStore) handle(ctx context.Context, c jetstream.Consumer, m mode, n int) (int, error) {
	batch, err := c.Fetch(n, jetstream.FetchMaxWait(10*time.Second))
	if err != nil {
		return 0, fmt.Errorf("fetch: %w", err)
	}
	got := 0
	for msg := range batch.Messages() {
		var p post
		if err := json.Unmarshal(msg.Data(), &p); err != nil || p.Text == "" {
			return got, errors.New("claimed a post without its text")
		}
		if m.awaited {
			err = msg.DoubleAck(ctx)
		} else {
			err = msg.Ack()
		}
		if err != nil {
			return got, fmt.Errorf("acknowledge: %w", err)
		}
		got++
	}
	if err := batch.Error(); err != nil {
		return got, fmt.Errorf("fetch: %w", err)
	}
	if got == 0 {
		return 0, errors.New("fetch: the queue ran dry")
	}
	return got, nil
}

func (s *jetStore) waiting(ctx context.Context) (int, error) {
	info, err := s.stream.Info(ctx)
	if err != nil {
		return 0, fmt.Errorf("look at the stream: %w", err)
	}
	return int(info.State.Msgs), nil
}

func (s *jetStore) close() error {
	for _, c := range s.conns {
		c.Close()
	}
	s.server.Shutdown()
	s.server.WaitForShutdown()
	return nil
}
