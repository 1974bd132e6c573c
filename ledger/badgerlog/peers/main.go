// Peers runs the same work on vesti's engine and on what people would use
// instead, in turns, and prints by how much which is faster. DESIGN.md says what
// is compared, and how fair that is.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// vesti is the contestant that the others are compared with.
const vesti = "vesti"

type options struct {
	rounds   int
	posts    int
	section  time.Duration
	peers    string
	json     string
	dir      string
	profiles string
	quick    bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:])
	stop()
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(2) //nolint:forbidigo // this is main
	default:
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

var errUsage = errors.New("usage")

func run(ctx context.Context, args []string) (err error) {
	o, err := parse(args)
	if err != nil {
		return err
	}
	dir, err := workFolder(o.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	env := &environment{postsFile: filepath.Join(dir, "posts.json")}
	contestants, err := env.contestants(strings.Split(o.peers, ","))
	if err != nil {
		return err
	}
	log.Info("making posts", "posts", o.posts)
	f := newFeed(o.posts, 1)
	if err := writePosts(env.postsFile, f); err != nil {
		return err
	}
	c := &contest{
		contestants: contestants, feed: f, dir: dir, rounds: o.rounds, section: o.section, profiles: o.profiles, log: log,
	}
	begin := time.Now()
	runErr := c.run(ctx)
	rows := c.rows()
	if err := printTable(os.Stdout, rows); err != nil {
		return err
	}
	if runErr != nil {
		return fmt.Errorf("the run was cut short: %w", runErr)
	}
	log.Info("done", "rounds", o.rounds, "took", time.Since(begin).Round(time.Second))
	if o.json != "" {
		return writeJSON(o.json, rows)
	}
	return nil
}

func parse(args []string) (options, error) {
	var o options
	fs := flag.NewFlagSet("peers", flag.ContinueOnError)
	fs.IntVar(&o.rounds, "rounds", 3, "rounds; the medians of their rates are compared")
	fs.IntVar(&o.posts, "posts", 60_000, "most posts that a section handles")
	fs.DurationVar(&o.section, "section", 3*time.Second, "longest time that a section lasts")
	fs.StringVar(&o.peers, "peers", strings.Join(peerNames(), ","), "the peers to compare with; none measures vesti alone")
	fs.StringVar(&o.json, "json", "", "file to write the ratios to")
	fs.StringVar(&o.dir, "dir", "", "folder to work in, on the disk to be measured; default is the system's for temporary files")
	fs.StringVar(&o.profiles, "cpuprofile", "", "folder for CPU profiles of vesti's sections")
	fs.BoolVar(&o.quick, "quick", false, "one round of short sections: shows that it works, measures little")
	if err := fs.Parse(args); err != nil {
		return o, errors.Join(errUsage, err)
	}
	if o.quick {
		o.rounds, o.posts, o.section = 1, 20_000, 700*time.Millisecond
	}
	if fs.NArg() > 0 || o.rounds < 1 || o.posts < 1000 || o.section <= 0 {
		return o, fmt.Errorf("%w: want no arguments, at least 1 round and 1000 posts, and sections that last", errUsage)
	}
	if o.profiles != "" {
		if err := os.MkdirAll(o.profiles, 0o755); err != nil { //nolint:gosec // profiles for anyone
			return o, fmt.Errorf("make the folder for profiles: %w", err)
		}
	}
	return o, nil
}

// workFolder makes a folder that a server under another account can pass through.
func workFolder(parent string) (string, error) {
	dir, err := os.MkdirTemp(parent, "vesti-peers-")
	if err != nil {
		return "", fmt.Errorf("make a folder to work in: %w", err)
	}
	if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // see above
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return filepath.Abs(dir)
}

// environment is what the peers need of the machine.
type environment struct {
	postsFile    string
	python       string
	redis        string
	postgresBin  string // folder
	postgresUser *account
}

func peerNames() []string { return []string{"sqlite-go", "sqlite-py", "river", "asynq", "jetstream"} }

// contestants returns vesti and the named peers, and finds the programs they need.
func (e *environment) contestants(names []string) ([]contestant, error) {
	all := []contestant{
		{name: vesti, open: openVesti, claims: 12000, modes: []mode{{name: "not awaited"}, {name: "awaited", awaited: true}}},
		{name: "sqlite-go", open: openSQLite, claims: 400, modes: []mode{{name: "transactions", both: true}}},
		{name: "sqlite-py", open: e.openPython, claims: 400, modes: []mode{{name: "transactions", both: true}}},
		{name: "river", open: e.openRiver, claims: 1000, modes: []mode{
			{name: "8 workers"}, {name: "50 workers", workers: 50}, {name: "100 workers", workers: 100},
		}},
		{name: "asynq", open: e.openAsynq, claims: 400, single: true, modes: []mode{{name: "8 workers", both: true}}},
		{name: "jetstream", open: openJetStream, claims: 400, modes: []mode{
			{name: "per message"}, {name: "batched", batch: 16}, {name: "double ack", batch: 16, awaited: true},
		}},
	}
	if slices.Equal(names, []string{"none"}) {
		names = nil
	}
	for _, n := range names {
		if !slices.Contains(peerNames(), n) {
			return nil, fmt.Errorf("%w: no peer %q: want some of %s", errUsage, n, strings.Join(peerNames(), ","))
		}
	}
	chosen := slices.DeleteFunc(all, func(c contestant) bool { return c.name != vesti && !slices.Contains(names, c.name) })
	var missing []error
	for _, c := range chosen {
		if err := e.find(c.name); err != nil {
			missing = append(missing, fmt.Errorf("%s: %w; deps.sh installs it, or leave the peer out with -peers", c.name, err))
		}
	}
	return chosen, errors.Join(missing...)
}

func (e *environment) find(name string) (err error) {
	switch name {
	case "sqlite-py":
		e.python, err = findProgram("python3")
	case "asynq":
		e.redis, err = findProgram("redis-server")
	case "river":
		var server string
		if server, err = findProgram("postgres", "/usr/lib/postgresql/*/bin/postgres", "/usr/pgsql-*/bin/postgres"); err != nil {
			return err
		}
		e.postgresBin = filepath.Dir(server)
		e.postgresUser, err = unprivileged("postgres", "nobody")
	}
	return err
}
