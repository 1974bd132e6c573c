package auth

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Attempts are counted before the password is looked at. An address may try
// addressBurst times and then once in addressEvery; everybody together
// allBurst times and then once in allEvery, which bounds what guessing from
// many addresses can reach: some 43,000 passwords a day of 2^100.
const (
	addressBurst = 8
	addressEvery = 30 * time.Second
	allBurst     = 60
	allEvery     = 2 * time.Second

	maxAddresses = 4096 // remembered at once; the rest share one bucket
)

type throttle struct {
	mu        sync.Mutex
	all       *rate.Limiter
	overflow  *rate.Limiter
	byAddress map[string]*rate.Limiter
}

func newThrottle() *throttle {
	return &throttle{
		all:       rate.NewLimiter(rate.Every(allEvery), allBurst),
		overflow:  rate.NewLimiter(rate.Every(addressEvery), addressBurst),
		byAddress: map[string]*rate.Limiter{},
	}
}

// take counts one attempt and returns zero, or how long to wait, in which case
// nothing is counted.
func (t *throttle) take(address string, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.limiter(block(address), now)
	mine := own.ReserveN(now, 1)
	if wait := mine.DelayFrom(now); wait > 0 {
		mine.CancelAt(now)
		return wait
	}
	total := t.all.ReserveN(now, 1)
	if wait := total.DelayFrom(now); wait > 0 {
		total.CancelAt(now)
		mine.CancelAt(now)
		return wait
	}
	return 0
}

// forgive forgets an address after a right password.
func (t *throttle) forgive(address string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byAddress, block(address))
}

func (t *throttle) limiter(key string, now time.Time) *rate.Limiter {
	if l, ok := t.byAddress[key]; ok {
		return l
	}
	if len(t.byAddress) >= maxAddresses {
		for k, l := range t.byAddress {
			if l.TokensAt(now) >= addressBurst { // as good as new
				delete(t.byAddress, k)
			}
		}
	}
	if len(t.byAddress) >= maxAddresses {
		return t.overflow
	}
	l := rate.NewLimiter(rate.Every(addressEvery), addressBurst)
	t.byAddress[key] = l
	return l
}

// block is the network that one guesser owns: the address, of IPv6 its /64.
func block(address string) string {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	a = a.Unmap().WithZone("")
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.String()
		}
	}
	return a.String()
}
