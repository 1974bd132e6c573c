package classify_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"vesti.nixg.ru/classify"
	"vesti.nixg.ru/ledger"
)

func away() error {
	return &classify.Failure{Cause: ledger.CauseUnavailable, Err: errors.New("connection refused")}
}

func TestBreakerBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		var probes []time.Duration
		b := classify.NewBreaker(classify.BreakerOptions{Pause: time.Second, Limit: 8 * time.Second, Probe: func(context.Context) error {
			probes = append(probes, time.Since(started))
			if len(probes) < 7 {
				return errors.New("no")
			}
			return nil
		}})
		if !b.Wait(t.Context()) {
			t.Fatal("Wait gave up")
		}
		want := []time.Duration{0, 1, 3, 7, 15, 23, 31}
		for i := range want {
			want[i] *= time.Second
		}
		if fmt.Sprint(probes) != fmt.Sprint(want) {
			t.Errorf("probed at %v, want %v", probes, want)
		}
		if s := b.Status(); s.Open || s.Reason != "" || !s.Retry.IsZero() {
			t.Errorf("status %+v", s)
		}
	})
}

func TestBreakerOpens(t *testing.T) {
	timeout := func() error { return &classify.Failure{Cause: ledger.CauseTimeout, Err: errors.New("slow")} }
	bad := func() error { return &classify.Failure{Cause: ledger.CauseBadReply, Err: errors.New("nonsense")} }
	for _, tt := range []struct {
		name    string
		reports []error
		open    bool
	}{
		{"away", []error{nil, away()}, true},
		{"a bad answer is an answer", []error{bad(), bad(), bad(), bad()}, false},
		{"one timeout", []error{timeout()}, false},
		{"three timeouts in a row", []error{timeout(), timeout(), timeout()}, true},
		{"three timeouts with an answer between", []error{timeout(), timeout(), nil, timeout()}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := classify.NewBreaker(classify.BreakerOptions{})
			if !b.Ready(t.Context()) {
				t.Fatal("not ready without a probe")
			}
			for _, err := range tt.reports {
				b.Report(err)
			}
			if s := b.Status(); s.Open != tt.open || s.Open == b.Ready(t.Context()) {
				t.Errorf("status %+v", s)
			}
		})
	}
}

// TestBreakerKeepsGrowing: a server whose probe succeeds and whose work does not
// is left alone for longer and longer.
func TestBreakerKeepsGrowing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := classify.NewBreaker(classify.BreakerOptions{Pause: time.Second, Limit: time.Minute})
		for _, want := range []time.Duration{1, 2, 4, 8} {
			b.Wait(t.Context())
			b.Report(away())
			if pause := time.Until(b.Status().Retry); pause != want*time.Second {
				t.Errorf("pause %v, want %v", pause, want*time.Second)
			}
		}
		b.Wait(t.Context())
		b.Report(nil)
		b.Report(away())
		if pause := time.Until(b.Status().Retry); pause != time.Second {
			t.Errorf("pause %v after a success, want 1s", pause)
		}
	})
}

// TestBreakerManyWaiters: one of many probes, all go on when it succeeds, and
// who stops waiting says nothing of the server.
func TestBreakerManyWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		probes := 0
		b := classify.NewBreaker(classify.BreakerOptions{Probe: func(ctx context.Context) error {
			probes++
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(5 * time.Second):
				return nil
			}
		}})
		early, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		results := make(chan bool, 9)
		go func() { results <- b.Wait(early) }()
		synctest.Wait()
		for range 8 {
			go func() { results <- b.Wait(t.Context()) }()
		}
		passed := 0
		for range 9 {
			if <-results {
				passed++
			}
		}
		if passed != 8 || probes != 2 || b.Status().Open {
			t.Errorf("%d of 8 went on after %d probes, status %+v", passed, probes, b.Status())
		}
	})
}
