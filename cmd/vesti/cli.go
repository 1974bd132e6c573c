package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vesti.nixg.ru/ledger"
)

// Exit codes, which scripts rely on.
const (
	exitDone    = 0
	exitFailed  = 1
	exitUsage   = 2 // the command line or the configuration is wrong, or names what is not there; nothing was done
	exitPartial = 3 // done, but some sources failed
)

var (
	errUsage   = errors.New("usage")
	errPartial = errors.New("some sources failed")
)

// exitError carries the exit code of a command that a server carried out, and
// whose errors it has printed already.
type exitError struct{ code int }

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// usageError is wrong in what the user gave; it matches errUsage.
type usageError struct{ msg string }

func (e usageError) Error() string        { return e.msg }
func (e usageError) Is(target error) bool { return target == errUsage }
func usagef(format string, a ...any) error {
	return usageError{fmt.Sprintf(format, a...)}
}

// call is one command line and all that it may touch of the world. The same
// commands run in a process of their own and inside a server.
type call struct {
	args []string
	in   io.Reader
	out  io.Writer // results
	err  io.Writer // progress, logs and errors
	env  map[string]string
	cwd  string

	interactive bool       // the command reads in
	remoteEcho  func(bool) // switches the echo of a terminal at the other end; nil for in itself

	early chan os.Signal // has a SIGHUP that came before the command was known; nil where none is held back

	app *App // the server that carries the call out; nil in a process of its own

	dataDir, sourcesFile, configFile string
	set                              []string
	json, quiet                      bool

	data  string // the folder that was chosen; "" before the configuration is read
	needs string // what must be there for the command

	acceptLoss bool // open a store that has lost what it acknowledged
	answered   bool // the JSON object of the result is printed
}

// run carries a command line out and returns its exit code.
func run(ctx context.Context, c *call) int {
	root := newRoot(c)
	root.SetArgs(c.args)
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	err := root.ExecuteContext(ctx)
	var done exitError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &done):
		return done.code
	}
	message, code := c.explain(err), exitFailed
	switch {
	case errors.Is(err, errPartial):
		code = exitPartial
	case errors.Is(err, errUsage):
		code = exitUsage
	}
	fmt.Fprintln(c.err, "vesti:", message)
	if (c.json || slices.Contains(c.args, "--json")) && !c.answered { // the flags before a wrong one may not have been read
		_ = c.result(map[string]string{"error": message}, nil)
	}
	return code
}

// needs is the annotation of a command that says what must be there for it. One
// without it makes what is not there.
const (
	needs        = "needs"
	needsStore   = "store"   // sources and rules may be broken
	needsDesk    = "desk"    // a store, sources and rules
	needsSources = "sources" // it stores nothing
	needsNothing = "nothing" // likewise
)

func needing(what string, cmds ...*cobra.Command) []*cobra.Command {
	for _, cmd := range cmds {
		cmd.Annotations = map[string]string{needs: what}
	}
	return cmds
}

func newRoot(c *call) *cobra.Command {
	root := &cobra.Command{
		Use:   "vesti",
		Short: "A news desk for one machine: crawl, classify, search, pick",
		Long: `vesti watches feeds and Telegram channels, keeps every post once, sorts the posts
into subject areas and gives an editor candidates to search and pick.

Begin with "vesti serve". A command given while a server runs on the same data
folder is carried out by that server, with the same output and exit code.

Exit codes: 0 done; 1 failed; 2 the command line or the configuration is wrong, or
names a post, source or file that is not there, and nothing was done; 3 done, but
some sources failed. With --json a command that fails prints {"error": "..."}.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			c.needs = cmd.Annotations[needs]
			return c.letHangupEnd(cmd)
		},
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%s; see \"%s --help\"", flagError(err), cmd.CommandPath())
	})
	f := root.PersistentFlags()
	f.StringVar(&c.dataDir, "data", "", `folder of the store, the index and the socket (default "data")`)
	f.StringVar(&c.sourcesFile, "sources", "", `the registry of sources (default sources.yaml in the data folder)`)
	f.StringVar(&c.configFile, "config", "", `the configuration file (default vesti.yaml in the data folder)`)
	f.StringArrayVar(&c.set, "set", nil, `a setting as "key=value"; may be given again; "vesti config" lists them`)
	f.BoolVar(&c.json, "json", false, "print the result as one JSON object, the last line of standard output")
	f.BoolVar(&c.quiet, "quiet", false, "print no progress")
	root.AddCommand(newServe(c), newCrawl(c), newSources(c), newTelegramCmd(c), newClassify(c), newRestore(c), newConfig(c), newVersion(c))
	root.AddCommand(needing(needsStore, newStatus(c), newSearch(c), newLog(c), newReview(c), newVerify(c), newBackup(c), newCompact(c),
		newRebuild(c), newPassword(c))...)
	root.AddCommand(needing(needsDesk, newWork(c), newReplay(c), newReclassify(c))...)
	return strict(root)
}

// letHangupEnd gives SIGHUP its usual effect again, which it has on all but a
// server.
func (c *call) letHangupEnd(cmd *cobra.Command) error {
	if c.early == nil || cmd.Name() == "serve" {
		return nil
	}
	signal.Reset(syscall.SIGHUP)
	select {
	case <-c.early:
		return context.Canceled
	default:
		return nil
	}
}

// flagError names an unknown flag as it was typed: the library's own words show a
// single byte of it, which is no letter of a word in Cyrillic.
func flagError(err error) string {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedShortnames() != "" {
		return "unknown flag: -" + unknown.GetSpecifiedShortnames()
	}
	return err.Error()
}

// strict makes wrong arguments a usage error, for a command and all below it.
func strict(cmd *cobra.Command) *cobra.Command {
	check := cmd.Args
	if check == nil {
		check = cobra.NoArgs
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usagef("%v; see \"%s --help\"", err, cmd.CommandPath())
		}
		return nil
	}
	for _, sub := range cmd.Commands() {
		strict(sub)
	}
	return cmd
}

// config reads the configuration that the call's flags and environment select.
func (c *call) config() (Config, error) {
	flags := map[string]string{}
	for _, kv := range c.set {
		k, v, ok := strings.Cut(kv, "=")
		if !ok {
			return Config{}, usagef("--set %q: want key=value", kv)
		}
		flags[k] = v
	}
	if c.dataDir != "" {
		flags["data"] = c.dataDir
	}
	if c.sourcesFile != "" {
		flags["sources"] = c.sourcesFile
	}
	known := map[string]bool{}
	var probe Config
	for _, s := range probe.settings() {
		known[s.key] = true
	}
	for k := range flags {
		if !known[k] {
			return Config{}, usagef("--set %s: unknown setting%s", k, suggest(k, slices.Collect(maps.Keys(known))))
		}
	}
	cfg, err := loadConfig(configLayers{file: c.configFile, env: c.env, flags: flags, cwd: c.cwd})
	if err == nil {
		c.data = cfg.Data
		c.warn(cfg, unknownEnv(c.env))
	}
	return cfg, err
}

// warn tells of what hinders nothing: variables of the environment may be
// another program's.
func (c *call) warn(cfg Config, warnings []string) {
	for _, w := range warnings {
		if cfg.LogJSON {
			newLogger(cfg, c.err).Warn(w)
			continue
		}
		fmt.Fprintln(c.err, "warning:", w)
	}
}

// withApp runs f on the server that runs on the data folder, else on the store
// opened for the time of the call.
func (c *call) withApp(ctx context.Context, f func(context.Context, *App) error) error {
	if c.app != nil {
		c.data = c.app.cfg.Data
		if len(c.set) > 0 || c.sourcesFile != "" || c.configFile != "" {
			c.progress("a server runs on this data folder, and its settings hold: --set, --sources and --config are not heeded")
		}
		return f(ctx, c.app)
	}
	cfg, err := c.config()
	if err != nil {
		return err
	}
	app, answered, err := c.openOrForward(ctx, cfg)
	if answered || err != nil {
		return err
	}
	err = app.run(ctx, func(ctx context.Context) error { return f(ctx, app) })
	return errors.Join(err, app.Close())
}

// lockWait is how long a command waits for another one to leave the store.
const lockWait = 10 * time.Second

// openOrForward opens the store, or has the server that runs on it carry the
// call out. A command that has the store for a moment is waited for.
func (c *call) openOrForward(ctx context.Context, cfg Config) (app *App, answered bool, err error) {
	o := appOptions{logTo: c.logWriter(), acceptLoss: c.acceptLoss}
	if _, err := os.Stat(filepath.Join(cfg.Data, "ledger")); errors.Is(err, fs.ErrNotExist) {
		switch c.needs {
		case needsStore, needsDesk:
			return nil, false, usagef("there is no store in %s; begin with \"vesti serve\" or \"vesti crawl\", or name the folder with --data", cfg.Data)
		case needsSources, needsNothing:
			app, err := c.openScratch(ctx, cfg, o)
			return app, false, err
		}
	}
	if c.needs == needsStore {
		o.tolerate = func(err error) { fmt.Fprintln(c.err, "warning:", err) }
	}
	for deadline := time.Now().Add(lockWait); ; {
		if answered, err := forward(ctx, c, cfg); answered {
			return nil, true, err
		}
		app, err := openApp(ctx, cfg, o)
		if !errors.Is(err, ledger.ErrLocked) || time.Now().After(deadline) {
			return app, false, err
		}
		again := time.NewTimer(200 * time.Millisecond)
		select {
		case <-ctx.Done():
			again.Stop()
			return nil, false, ctx.Err()
		case <-again.C:
		}
	}
}

// openScratch opens a store of its own for a command that stores nothing, where
// the data folder has none.
func (c *call) openScratch(ctx context.Context, cfg Config, o appOptions) (*App, error) {
	_, err := os.Stat(cfg.Sources)
	missing := errors.Is(err, fs.ErrNotExist)
	if missing && c.needs == needsSources {
		return nil, usagef("there is no %s; \"vesti serve\" writes one to begin with, --data and --sources name another", cfg.Sources)
	}
	if cfg.Data, err = os.MkdirTemp("", "vesti-"); err != nil {
		return nil, fmt.Errorf("make a folder for the time of the command: %w", err)
	}
	if missing {
		cfg.Sources = filepath.Join(cfg.Data, "sources.yaml")
		err = os.WriteFile(cfg.Sources, []byte("sources: []\n"), 0o600)
	}
	var app *App
	if err == nil {
		app, err = openApp(ctx, cfg, o)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(cfg.Data))
	}
	app.scratch = true
	return app, nil
}

// logWriter is where a command without a server logs to.
func (c *call) logWriter() io.Writer {
	if c.quiet {
		return io.Discard
	}
	return c.err
}

// result prints what a command found: as JSON if asked to, else as human does,
// where that is not nil.
func (c *call) result(v any, human func(w io.Writer)) error {
	if human != nil && !c.json {
		human(c.out)
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	c.answered = true
	_, err = fmt.Fprintln(c.out, string(b))
	return err
}

// progress prints a line about work that goes on.
func (c *call) progress(format string, a ...any) {
	if !c.quiet {
		fmt.Fprintf(c.err, format+"\n", a...)
	}
}

// path makes a path given on the command line absolute: a server has another
// working folder than its caller.
func (c *call) path(p string) string {
	if p == "" || p == "-" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(c.cwd, p)
}

// explain adds the way out to errors that have one.
func (c *call) explain(err error) string {
	switch {
	case errors.Is(err, context.Canceled):
		return "stopped"
	case errors.Is(err, ledger.ErrLocked):
		return err.Error() + "; stop that process, or name another folder with --data"
	case errors.Is(err, ledger.ErrNoSpace):
		return err.Error() + "; " + c.roomAdvice()
	case errors.Is(err, ledger.ErrNewer):
		return err.Error() + "; use that version, or a copy made by it with \"vesti backup\""
	default:
		return err.Error()
	}
}

// roomAdvice is what helps where the disk is too full: with less free than the
// setting may be lowered to, only room does.
func (c *call) roomAdvice() string {
	if free, err := freeSpace(c.data); err == nil && free >= leastFreeSpace {
		return fmt.Sprintf("free some space, or set ledger.free_space to no more than the %d MiB that are free (it takes 64MiB at the least)", free>>20)
	}
	return "free some space: vesti stores nothing with less than 64 MiB, whatever ledger.free_space says"
}
