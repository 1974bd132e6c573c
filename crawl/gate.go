package crawl

import "sync"

// gate limits how many runs there are at once, in all and per host, so that
// the sources of one slow host hold up nobody else's.
type gate struct {
	most, mostPerHost int

	mu      sync.Mutex
	running int
	hosts   map[string]int
	changed chan struct{} // closed, and made anew, whenever a run ends
}

func newGate(most, mostPerHost int) *gate {
	return &gate{most: most, mostPerHost: mostPerHost, hosts: make(map[string]int), changed: make(chan struct{})}
}

// tryEnter takes a place for a run of the host's; false says there is none now.
// After a true, leave gives it back.
func (g *gate) tryEnter(host string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running >= g.most || g.hosts[host] >= g.mostPerHost {
		return false
	}
	g.running++
	g.hosts[host]++
	return true
}

func (g *gate) leave(host string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	if g.hosts[host]--; g.hosts[host] == 0 {
		delete(g.hosts, host)
	}
	close(g.changed)
	g.changed = make(chan struct{})
}

// left returns a channel that closes when the next run ends. Ask for it before
// tryEnter.
func (g *gate) left() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changed
}
