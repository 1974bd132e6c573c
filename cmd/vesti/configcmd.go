package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

func newConfig(c *call) *cobra.Command {
	return &cobra.Command{
		Use:   "config",
		Short: "Show every setting with its value, its environment variable and its meaning",
		Long: `Show every setting with its value, its environment variable and its meaning.

A setting is taken from, the later over the earlier: its default; the file
vesti.yaml in the data folder, or the one named by --config, where a dot in the
key is a level of the file; the environment; --set key=value.`,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := c.config()
			if c.app != nil {
				cfg, err = c.app.cfg, nil
			}
			if err != nil {
				return err
			}
			values := map[string]string{}
			for _, s := range cfg.settings() {
				values[s.key] = s.String()
			}
			return c.result(values, func(w io.Writer) {
				tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
				for _, s := range cfg.settings() {
					fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", s.key, orDash(s.String()), s.env(), s.doc)
				}
				_ = tw.Flush()
			})
		},
	}
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}
