package fetch

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestPaceKeepsStartsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(2, 500*time.Millisecond, time.Now)
		began := time.Now()
		var flying, most atomic.Int32
		var mu sync.Mutex
		var starts []time.Duration
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				release, err := p.acquire(t.Context(), "a:80")
				if err != nil {
					t.Error(err)
					return
				}
				defer release()
				mu.Lock()
				starts = append(starts, time.Since(began))
				most.Store(max(most.Load(), flying.Add(1)))
				mu.Unlock()
				time.Sleep(3 * time.Second)
				flying.Add(-1)
			})
		}
		other, err := p.acquire(t.Context(), "b:80")
		if err != nil || time.Since(began) > 0 {
			t.Errorf("another host waited %s (%v)", time.Since(began), err)
		}
		other()
		all.Wait()
		if most.Load() != 2 {
			t.Errorf("%d requests in flight, want 2", most.Load())
		}
		for i := 1; i < len(starts); i++ {
			if gap := starts[i] - starts[i-1]; gap < 500*time.Millisecond {
				t.Errorf("start %d came %s after the one before", i, gap)
			}
		}
	})
}

func TestPauseReachesThoseThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(1, 0, time.Now)
		release, err := p.acquire(t.Context(), "a:80")
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan error)
		go func() {
			_, err := p.acquire(t.Context(), "a:80")
			got <- err
		}()
		synctest.Wait()
		until := time.Now().Add(time.Minute)
		p.pause("a:80", until)
		release()
		paused, ok := errors.AsType[*pausedError](<-got)
		if !ok || !paused.until.Equal(until) {
			t.Errorf("got %v, want a pause until %s", paused, until)
		}
		time.Sleep(time.Minute)
		if release, err = p.acquire(t.Context(), "a:80"); err != nil {
			t.Fatalf("after the pause: %v", err)
		}
		release()
	})
}

func TestPacerForgetsHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(2, time.Second, time.Now)
		p.pause("paused:80", time.Now().Add(time.Hour))
		for i := range 5000 {
			release, err := p.acquire(t.Context(), fmt.Sprintf("h%d:80", i))
			if err != nil {
				t.Fatal(err)
			}
			release()
			time.Sleep(time.Millisecond)
		}
		if n := len(p.hosts); n > 3000 {
			t.Errorf("%d hosts remembered", n)
		}
		if _, err := p.acquire(t.Context(), "paused:80"); err == nil {
			t.Error("the pause was forgotten")
		}
	})
}
