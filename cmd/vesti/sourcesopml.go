package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/ownfile"
)

func newSourcesImport(c *call) *cobra.Command {
	var direction, priority string
	var dry bool
	cmd := &cobra.Command{
		Use:   "import FILE.opml",
		Short: "Add the subscriptions of another reader to sources.yaml",
		Long: `Add the subscriptions of another reader to sources.yaml, "-" for an OPML file on
standard input. A folder with the name of a direction gives its feeds that
direction; the feeds of others go to --direction, which is told of each folder.
Feeds that are there already, and what cannot be read, are left out and told. The
file as it was is kept beside it as sources.yaml.bak. A server that runs takes the
new sources over at once.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.interactive = args[0] == "-"
			if dry {
				c.needs = needsNothing
			}
			p, err := ledger.ParsePriority(priority)
			if err != nil {
				return usagef("--priority: %v", err)
			}
			return c.withApp(cmd.Context(), func(ctx context.Context, a *App) error {
				if err := a.checkDirection(ledger.Direction(direction)); err != nil {
					return err
				}
				im := crawl.Import{Existing: a.crawler.Sources(), Directions: a.cfg.Directions, Direction: ledger.Direction(direction), Priority: p}
				if direction == "" {
					im.Direction = a.cfg.Directions[0]
				}
				return c.importOPML(ctx, a, args[0], im, dry)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&direction, "direction", "", "direction of feeds whose folder names none (default the first configured one)")
	f.StringVar(&priority, "priority", "P1", "priority of the new sources: P0, P1 or P2")
	f.BoolVar(&dry, "dry-run", false, "print what would be added, change nothing")
	return cmd
}

func (c *call) importOPML(ctx context.Context, a *App, name string, im crawl.Import, dry bool) error {
	in := c.in
	if name != "-" {
		f, err := os.Open(c.path(name))
		if err != nil {
			return usagef("read OPML: %v", err)
		}
		defer f.Close()
		in = f
	}
	imported, err := crawl.ImportOPML(io.LimitReader(in, 64<<20), im)
	if err != nil {
		return asUsage(fmt.Errorf("%s: %w", name, err))
	}
	added, skipped := imported.Sources, imported.Skipped
	if !dry && len(added) > 0 {
		if err := addSources(a.cfg.Sources, added, a.cfg.Directions); err != nil {
			return err
		}
		if _, err := a.reloadSources(ctx); err != nil {
			return err
		}
	}
	out := map[string]any{"ok": true, "added": len(added), "skipped": skipped, "defaulted": imported.Defaulted, "dry_run": dry}
	return c.result(out, func(w io.Writer) {
		if dry {
			_ = crawl.WriteSources(w, added)
		}
		for _, s := range skipped {
			fmt.Fprintf(w, "left out: %s %s: %s\n", s.Title, s.URL, s.Why)
		}
		for _, d := range imported.Defaulted {
			where := "in no folder"
			if d.Folder != "" {
				where = fmt.Sprintf("folder %q is no direction", d.Folder)
			}
			fmt.Fprintf(w, "%s: %d sources go to %s, --direction names another\n", where, d.Sources, d.Direction)
		}
		verb := "added"
		if dry {
			verb = "would be added"
		}
		fmt.Fprintf(w, "%d sources %s, %d left out\n", len(added), verb, len(skipped))
		switch {
		case dry || len(added) == 0:
		case c.app != nil:
			fmt.Fprintln(w, "The server that runs has taken them over and crawls them now.")
		default:
			fmt.Fprintln(w, "They are crawled from the next start on; \"vesti crawl --all\" crawls them now.")
		}
	})
}

// emptyList is a list without sources, as the registry's own messages write it,
// and what follows on its line.
var emptyList = regexp.MustCompile(`(?m)^(?:sources[ \t]*:[ \t]*)?\[[ \t]*\]([ \t]*(?:#.*)?)$`)

// addSources writes the registry anew with added at its end. The user's own
// lines stay as they are: the new ones follow at the indentation at which the
// whole can be read.
func addSources(path string, added []crawl.Source, directions []ledger.Direction) error {
	old, err := ownfile.Read(path)
	if err != nil {
		return fmt.Errorf("read sources: %w", err)
	}
	before, err := crawl.ParseSources(old, path, directions)
	if err != nil {
		return asUsage(err)
	}
	var list bytes.Buffer
	if err := crawl.WriteSources(&list, added); err != nil {
		return fmt.Errorf("write sources: %w", err)
	}
	kept := bytes.TrimRight(old, " \t\r\n")
	if len(before) == 0 {
		kept = emptyList.ReplaceAll(kept, []byte("sources:$1")) // in a list of the other notation there is no place for them
	}
	for _, indent := range []string{"  ", "", "    "} {
		var b bytes.Buffer
		b.Write(kept)
		b.WriteString("\n")
		for line := range strings.Lines(list.String()) {
			b.WriteString(indent + line)
		}
		if after, err := crawl.ParseSources(b.Bytes(), path, directions); err == nil && len(after) == len(before)+len(added) {
			return errors.Join(replaceFile(path+".bak", old), replaceFile(path, b.Bytes()))
		}
	}
	return fmt.Errorf("the new sources do not fit the layout of %s; print them with --dry-run and put them there by hand", path)
}

// replaceFile puts a file in the place of another, whole or not at all.
func replaceFile(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".vesti-*")
	if err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // gone already where all went well
	_, err = tmp.Write(data)
	if err := errors.Join(err, tmp.Chmod(0o644), tmp.Sync(), tmp.Close()); err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	return nil
}

func newSourcesExport(c *call) *cobra.Command {
	return &cobra.Command{
		Use:   "export",
		Short: "Print the sources as OPML, a folder for each direction",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withApp(cmd.Context(), func(_ context.Context, a *App) error {
				return crawl.ExportOPML(c.out, "vesti", a.crawler.Sources())
			})
		},
	}
}
