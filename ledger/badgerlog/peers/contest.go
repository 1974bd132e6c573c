package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"syscall"
	"time"
)

// contestant is vesti's engine or one of its peers.
type contestant struct {
	name   string
	single bool // its API takes one post a call only
	// claims is about how many posts a second it can claim in class D, at least;
	// it decides how long a queue it gets.
	claims int
	modes  []mode
	open   func(ctx context.Context, dir string, c class) (store, error)
}

// measure names a series of rates, one from each round.
type measure struct {
	contestant string
	class      class
	work       string // append1, append50 or claim
	mode       string // of a claim
}

// contest runs the same work on all contestants, in turns.
type contest struct {
	contestants []contestant
	feed        *feed
	dir         string
	rounds      int
	section     time.Duration // the longest that a timed section lasts
	profiles    string        // folder for CPU profiles of vesti's sections; "" for none
	log         *slog.Logger

	rates map[measure][]float64
}

const (
	sectionPatience = 2 * time.Minute // beyond a section's time: it hangs
	manyPosts       = 50              // a call of append50
	queueReserve    = 300             // posts for each mode, for those that fetch ahead
)

// run goes through the rounds. Within a round each step of the work is done by
// all contestants one right after another, in an order that rotates, so that
// what else the machine does falls on all alike.
func (c *contest) run(ctx context.Context) error {
	c.rates = make(map[measure][]float64)
	for round := range c.rounds {
		for _, class := range []class{classD, classP} {
			for _, batch := range []int{1, manyPosts} {
				for _, one := range rotated(c.contestants, round) {
					if one.single && batch > 1 {
						continue
					}
					c.log.Info("step", "round", round+1, "of", c.rounds, "class", class, "contestant", one.name, "posts_a_call", batch)
					if err := c.step(ctx, one, round, class, batch); err != nil {
						return fmt.Errorf("%s, class %s, %d posts a call: %w", one.name, class, batch, err)
					}
				}
			}
		}
	}
	return nil
}

func rotated[T any](s []T, by int) []T {
	by %= len(s)
	return slices.Concat(s[by:], s[:by])
}

// step measures appends into a fresh store, and in the last of a contestant's
// two steps the work on the queue that they made.
func (c *contest) step(ctx context.Context, one contestant, round int, cl class, batch int) (err error) {
	dir, err := os.MkdirTemp(c.dir, one.name+"-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := one.open(ctx, dir, cl)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()

	c.feed.rewind()
	appended, err := c.timed(ctx, measure{one.name, cl, fmt.Sprintf("append%d", batch), ""}, func(ctx context.Context) (tally, error) {
		return s.append(ctx, c.feed, batch, budget{posts: len(c.feed.posts), time: c.section})
	})
	if err != nil {
		return err
	}
	queue := appended.fresh
	if err := c.checkFresh(queue); err != nil {
		return err
	}
	if batch == 1 && !one.single {
		return nil
	}
	return c.claims(ctx, one, rotated(one.modes, round), cl, batch, s, queue)
}

// fill appends, untimed, until the queue holds enough for so many modes.
func (c *contest) fill(ctx context.Context, s store, batch, queue int, one contestant, modes int) (int, error) {
	enough := (int(float64(one.claims)*c.section.Seconds()) + queueReserve) * modes
	for queue < enough && c.feed.taken() < len(c.feed.posts) {
		t, err := s.append(ctx, c.feed, batch, budget{posts: (enough-queue)*3/2 + 1, time: time.Minute})
		if err != nil {
			return 0, fmt.Errorf("fill the queue: %w", err)
		}
		queue += t.fresh
	}
	return queue, nil
}

// claims lets each mode have its share of the queue, which is filled up where
// one has fetched far ahead of its budget.
func (c *contest) claims(ctx context.Context, one contestant, modes []mode, cl class, batch int, s store, queue int) (err error) {
	done := 0
	for i, m := range modes {
		if queue, err = c.fill(ctx, s, batch, queue, one, len(modes)-i); err != nil {
			return err
		}
		if err := c.checkFresh(queue + done); err != nil {
			return err
		}
		if queue == 0 {
			return fmt.Errorf("claim, %s: no posts left, raise -posts", m.name)
		}
		share := queue / (len(modes) - i)
		t, err := c.timed(ctx, measure{one.name, cl, "claim", m.name}, func(ctx context.Context) (tally, error) {
			return s.claim(ctx, m, budget{posts: share, time: c.section})
		})
		if err != nil {
			return fmt.Errorf("claim, %s: %w", m.name, err)
		}
		queue -= t.posts + t.extra
		done += t.posts + t.extra
		if queue < 0 {
			return fmt.Errorf("claim, %s: %d posts were handled twice", m.name, -queue)
		}
	}
	return nil
}

// checkFresh compares what a contestant took for new with what was.
func (c *contest) checkFresh(got int) error {
	if want := c.feed.fresh[c.feed.taken()]; got != want {
		return fmt.Errorf("took %d of %d posts for new, want %d", got, c.feed.taken(), want)
	}
	return nil
}

// timed runs a section on a machine that has no writes outstanding, and notes its rate.
func (c *contest) timed(ctx context.Context, m measure, section func(context.Context) (tally, error)) (_ tally, err error) {
	debug.FreeOSMemory()
	syscall.Sync()
	ctx, cancel := context.WithTimeout(ctx, c.section+sectionPatience)
	defer cancel()
	stop, err := c.profile(m)
	if err != nil {
		return tally{}, err
	}
	before := cpuTime()
	t, err := section(ctx)
	cpu := cpuTime() - before
	if err := errors.Join(err, stop()); err != nil {
		return t, err
	}
	if t.posts == 0 {
		return t, errors.New("nothing was done")
	}
	c.rates[m] = append(c.rates[m], t.rate())
	c.log.Info("measured", "contestant", m.contestant, "class", m.class, "work", m.work, "mode", m.mode,
		"posts", t.posts, "seconds", fmt.Sprintf("%.2f", t.elapsed.Seconds()), "per_s", int(t.rate()),
		"cpu_us_per_post", cpu.Microseconds()/int64(t.posts), "cores_used", fmt.Sprintf("%.2f", cpu.Seconds()/t.elapsed.Seconds()))
	return t, nil
}

// cpuTime is the processor time that this process has used. It tells, on a
// machine with other work to do, a section that had to wait for a processor from a slow one; what a
// server uses is not in it.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// profile takes a CPU profile of a section of vesti's, where wanted; a later
// round's replaces it.
func (c *contest) profile(m measure) (stop func() error, err error) {
	if c.profiles == "" || m.contestant != vesti {
		return func() error { return nil }, nil
	}
	name := fmt.Sprintf("%s-%s.pprof", m.work, m.class)
	if m.mode != "" {
		name = fmt.Sprintf("%s-%s-%s.pprof", m.work, m.mode, m.class)
	}
	f, err := os.Create(filepath.Join(c.profiles, name))
	if err != nil {
		return nil, fmt.Errorf("make a profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}
