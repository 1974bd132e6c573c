package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker; see the Makefile.
var version = "dev"

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

func commit() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return ""
}
