package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version and revision are set by the linker; see the Makefile.
var (
	version  = "dev"
	revision string // of git; "" where only the go command may know it
)

func newVersion(c *call) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		RunE: func(*cobra.Command, []string) error {
			info := map[string]string{"version": version, "go": runtime.Version(), "commit": commit()}
			return c.result(info, func(w io.Writer) {
				fmt.Fprintf(w, "vesti %s (%s, commit %s)\n", version, runtime.Version(), orDash(commit()))
			})
		},
	}
}

// commit is the revision that the build was made from, "" where nobody noted it.
func commit() string {
	if revision != "" {
		return revision
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return ""
}
