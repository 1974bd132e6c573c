package classify

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"vesti.nixg.ru/ledger"
)

// History is what is read of the ledger to judge history again and to learn
// from it. The contracts are in ledger/DESIGN.md.
type History interface {
	Head() ledger.Seq
	Read(ctx context.Context, after ledger.Seq, limit int) ([]ledger.Event, error)
	ReadTexts(ctx context.Context, after ledger.Seq, limit int) ([]ledger.Event, error)
	Post(ctx context.Context, post ledger.PostNum) (ledger.Post, error)
}

const (
	// stretchLen is how many Seqs are read at once, textStretchLen where texts come
	// with them: that bounds the memory.
	stretchLen     = 1000
	textStretchLen = 250
)

// eachEvent calls f with the events after a Seq up to head, in order, on the
// caller's goroutine. One reader for each CPU reads ahead of it.
func eachEvent(ctx context.Context, h History, after, head ledger.Seq, texts bool, f func(ledger.Event) error) error {
	ctx, cancel := context.WithCancel(ctx)
	readers := runtime.GOMAXPROCS(0)
	s := &scan{
		history: h, texts: texts, next: after, head: head,
		ahead: make(chan struct{}, 2*readers), order: make(chan *stretch, 2*readers),
	}
	var wg sync.WaitGroup
	for range readers {
		wg.Go(func() { s.readAll(ctx) })
	}
	go func() { // ends with the readers, which the caller waits for
		wg.Wait()
		close(s.order)
	}()
	err := s.each(ctx, f)
	cancel()
	for range s.order { // until the readers have ended
	}
	return err
}

// scan is one way through a part of the ledger, in stretches that are read side
// by side and come out in order.
type scan struct {
	history History
	texts   bool
	head    ledger.Seq

	ahead chan struct{} // one for each stretch that is taken and not yet handed out
	order chan *stretch // never full: as many as ahead

	mu   sync.Mutex
	next ledger.Seq // up to which stretches were taken
}

// stretch is the events after one Seq up to another.
type stretch struct {
	after, end ledger.Seq
	events     []ledger.Event
	err        error
	done       chan struct{}
}

func (s *scan) each(ctx context.Context, f func(ledger.Event) error) error {
	for t := range s.order {
		select {
		case <-t.done:
		case <-ctx.Done():
			return fmt.Errorf("read history: %w", context.Cause(ctx))
		}
		if t.err != nil {
			return fmt.Errorf("read history: %w", t.err)
		}
		for _, e := range t.events {
			if err := f(e); err != nil {
				return err
			}
		}
		<-s.ahead
	}
	return nil
}

func (s *scan) readAll(ctx context.Context) {
	for {
		t := s.take(ctx)
		if t == nil {
			return
		}
		s.read(ctx, t)
		close(t.done)
		if t.err != nil {
			return
		}
	}
}

// take returns the next stretch, nil at the end. It waits while the caller of
// eachEvent is far behind.
func (s *scan) take(ctx context.Context) *stretch {
	select {
	case s.ahead <- struct{}{}:
	case <-ctx.Done():
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next >= s.head {
		return nil
	}
	length := ledger.Seq(stretchLen)
	if s.texts {
		length = textStretchLen
	}
	t := &stretch{after: s.next, end: min(s.next+length, s.head), done: make(chan struct{})}
	s.next = t.end
	s.order <- t
	return t
}

func (s *scan) read(ctx context.Context, t *stretch) {
	read := s.history.Read
	if s.texts {
		read = s.history.ReadTexts
	}
	t.events, t.err = read(ctx, t.after, int(t.end-t.after))
	for i, e := range t.events {
		if e.Seq > t.end { // retention has left a gap here
			t.events = t.events[:i]
			s.skip(e.Seq - 1)
			return
		}
	}
}

// skip leaves out what is known to be empty, as far as nobody took it already.
func (s *scan) skip(to ledger.Seq) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = max(s.next, to)
}
