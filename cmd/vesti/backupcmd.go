package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
)

func newBackup(c *call) *cobra.Command {
	var since string
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write the store to a file, while it is used",
		Long: `Write the store to a file, while it is used. With --since FILE, an earlier backup,
only what changed after it: the next link of its chain. To restore, every link is
needed, in order. The file appears under its name when it is whole. Sources, rules
and settings are no part of it: they are files of yours, copy them too.`,
		Example: "  vesti backup monday.vesti\n  vesti backup tuesday.vesti --since monday.vesti",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withApp(cmd.Context(), func(ctx context.Context, a *App) error {
				return c.backup(ctx, a, c.path(args[0]), c.path(since))
			})
		},
	}
	cmd.Flags().StringVar(&since, "since", "", "an earlier backup, whose next link this is")
	return cmd
}

func (c *call) backup(ctx context.Context, a *App, path, since string) error {
	var parent *badgerlog.BackupInfo
	if since != "" {
		f, err := os.Open(since)
		if err != nil {
			return usagef("read earlier backup: %v", err)
		}
		info, err := badgerlog.ReadBackupInfo(f)
		if err := errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("read earlier backup %s: %w", since, err)
		}
		parent = &info
	}
	if _, err := os.Stat(path); err == nil {
		return usagef("%s is there already; name another file, or move it away", path)
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".vesti-backup-*")
	if wrong, ok := errors.AsType[*fs.PathError](err); ok {
		return usagef("write backup %s: %v", path, wrong.Err) // the name in it is the temporary file's
	}
	if err != nil {
		return fmt.Errorf("write backup %s: %w", path, err)
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // gone already where all went well
	report, err := a.log.Backup(ctx, tmp, parent, c.stepProgress())
	if err := errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return fmt.Errorf("write backup: %w", err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("write backup: %w", err)
	}
	out := struct {
		OK   bool   `json:"ok"`
		File string `json:"file"`
		badgerlog.BackupReport
	}{true, path, report}
	return c.result(out, func(w io.Writer) {
		fmt.Fprintf(w, "%s: %d bytes, the ledger up to event %d\n", path, report.Bytes, report.Head)
		if own, _ := a.cfg.ownFiles(); len(own) > 0 {
			fmt.Fprintf(w, "Not part of it, copy them too: %s\n", strings.Join(own, ", "))
		}
	})
}

// ownFiles are the files beside the store that a person writes: those that are
// there, and those that a start without them would make anew.
func (c *Config) ownFiles() (there, missing []string) {
	for _, path := range []string{c.Sources, c.Rules, c.File} {
		switch _, err := os.Stat(path); {
		case err == nil:
			there = append(there, path)
		case path != c.File: // of settings there need not be a file
			missing = append(missing, path)
		}
	}
	return there, missing
}

func newRestore(c *call) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "restore FILE...",
		Short: "Make the store from a backup, or a chain of them",
		Long: `Make the store from a backup, or from a chain of them, the whole one first. Counts,
hashes and every invariant are proven before the store is put in place. Where there
is a store already --yes is needed: the new one takes its place, the old one is kept
beside it under another name. Without --yes such a restore is tried and proven, and
refused with exit code 2; nothing is changed. A server on the data folder must be
stopped. Sources, rules and settings are no part of a backup: copy them back yourself.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.app != nil {
				return errServerRuns
			}
			cfg, err := c.config()
			if err != nil {
				return err
			}
			return c.restore(cmd.Context(), cfg, args, yes)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "put the restored store in the place of the present one")
	return cmd
}

var errServerRuns = errors.New("a server is running on this data folder: stop it first")

func (c *call) restore(ctx context.Context, cfg Config, files []string, yes bool) error {
	var d net.Dialer
	if conn, err := d.DialContext(ctx, "unix", socketPath(cfg.Data)); err == nil {
		_ = conn.Close()
		return errServerRuns
	}
	var chain []io.Reader
	for _, name := range files {
		f, err := os.Open(c.path(name))
		if err != nil {
			return usagef("read backup: %v", err)
		}
		defer f.Close()
		chain = append(chain, f)
	}
	occupied, err := holdsStore(filepath.Join(cfg.Data, "ledger"))
	if err != nil {
		return fmt.Errorf("look for a store: %w", err)
	}
	out := restored{Restored: yes || !occupied}
	if out.Restored {
		out.RestoreReport, err = c.replaceStore(ctx, cfg, chain, !occupied)
	} else {
		out.RestoreReport, err = c.tryRestore(ctx, cfg, chain)
	}
	if errors.Is(err, ledger.ErrLocked) {
		return errServerRuns
	}
	if err != nil {
		return err
	}
	out.OK = out.Restored && out.RestoreReport.OK()
	if err := c.result(out, func(w io.Writer) { out.print(w, cfg) }); err != nil || out.Restored {
		return err
	}
	return usagef("there is a store in %s already, nothing was changed; with --yes the restored one takes its place, and the old one is kept beside it", cfg.Data)
}

// restored is what a restore came to.
type restored struct {
	OK       bool `json:"ok"`
	Restored bool `json:"restored"` // it is in place, and was not only tried
	badgerlog.RestoreReport
}

func (r restored) print(w io.Writer, cfg Config) {
	fmt.Fprintf(w, "%d links: %d events, %d posts, %d sources; every hash and count is right\n", r.Links, r.Events, r.Posts, r.Sources)
	if r.Replaced != "" {
		fmt.Fprintf(w, "The store that was there before is now %s; remove it when you no longer want it.\n", r.Replaced)
	}
	if _, missing := cfg.ownFiles(); r.Restored && len(missing) > 0 {
		fmt.Fprintf(w, "Not part of a backup, copy them back before the next start, which else writes others: %s\n", strings.Join(missing, ", "))
	}
}

// holdsStore reports whether a folder has anything that a store might want: all
// but the file of a lock, which whoever looks for a store leaves.
func holdsStore(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() != "store.lock" }), err //nolint:wrapcheck // names the folder
}

// replaceStore restores into the data folder. Where there was nothing before, a
// restore that fails leaves nothing.
func (c *call) replaceStore(ctx context.Context, cfg Config, chain []io.Reader, fresh bool) (badgerlog.RestoreReport, error) {
	_, missing := os.Stat(cfg.Data)
	dir := filepath.Join(cfg.Data, "ledger")
	report, err := c.restoreInto(ctx, cfg, dir, chain)
	if err != nil {
		if occupied, look := holdsStore(dir); fresh && !occupied && look == nil && !errors.Is(err, ledger.ErrLocked) {
			_ = os.RemoveAll(dir)
			if errors.Is(missing, fs.ErrNotExist) {
				_ = os.Remove(cfg.Data)
			}
		}
		return report, err
	}
	// The index belongs to the store that was replaced; it is built again.
	if err := os.RemoveAll(filepath.Join(cfg.Data, "search")); err != nil {
		return report, fmt.Errorf("remove the old search index: %w", err)
	}
	return report, nil
}

// tryRestore proves that the chain can be restored, and leaves nothing.
func (c *call) tryRestore(ctx context.Context, cfg Config, chain []io.Reader) (badgerlog.RestoreReport, error) {
	trial, err := os.MkdirTemp(cfg.Data, ".restore-trial-*")
	if err != nil {
		return badgerlog.RestoreReport{}, fmt.Errorf("try the restore: %w", err)
	}
	defer func() { _ = os.RemoveAll(trial) }()
	return c.restoreInto(ctx, cfg, filepath.Join(trial, "ledger"), chain)
}

func (c *call) restoreInto(ctx context.Context, cfg Config, dir string, chain []io.Reader) (badgerlog.RestoreReport, error) {
	//nolint:wrapcheck // it says by itself that it was a restore
	return badgerlog.Restore(ctx, badgerlog.Options{Dir: dir, Progress: c.stepProgress(), FreeSpaceFloor: int64(cfg.FreeSpace)}, chain)
}

func newCompact(c *call) *cobra.Command {
	return &cobra.Command{
		Use:   "compact",
		Short: "Apply the retention settings and give disk space back now",
		Long: `Apply the retention settings (ledger.keep_*) and give disk space back now. A server
does both by itself; the store can be used meanwhile.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withApp(cmd.Context(), func(ctx context.Context, a *App) error {
				removed, err := a.log.Retain(ctx, a.retention())
				if err != nil {
					return fmt.Errorf("apply retention: %w", err)
				}
				report, err := a.log.Compact(ctx)
				if err != nil {
					return fmt.Errorf("compact: %w", err)
				}
				out := struct {
					OK bool `json:"ok"`
					badgerlog.RetentionReport
					badgerlog.CompactReport
				}{true, removed, report}
				return c.result(out, func(w io.Writer) {
					gain := fmt.Sprintf("%d bytes before, %d after", report.Before, report.After)
					if report.After >= report.Before {
						gain = fmt.Sprintf("there was no space to give back of %d bytes", report.Before)
					}
					fmt.Fprintf(w, "texts of %d posts and %d revisions removed, %d runs folded; %s\n", removed.Posts, removed.Revisions, removed.Runs, gain)
				})
			})
		},
	}
}
