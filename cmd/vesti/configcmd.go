package main

import (
	"bytes"
	"context"
	"encoding/json"
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
key is a level of the file; the environment; --set key=value.

While a server runs on the data folder its settings are shown, and standard error
says which of them one started now, from here, would have otherwise.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.app != nil {
				return c.result(values(c.app.cfg), nil)
			}
			cfg, err := c.config()
			if err != nil {
				return err
			}
			inForce, err := c.settingsInForce(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			return c.result(inForce, func(w io.Writer) {
				tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
				for _, s := range cfg.settings() {
					fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", s.key, orDash(inForce[s.key]), s.env(), s.doc)
				}
				_ = tw.Flush()
			})
		},
	}
}

// settingsInForce are those of the server that runs on the data folder, else
// those of the call, and says which.
func (c *call) settingsInForce(ctx context.Context, cfg Config) (map[string]string, error) {
	own := values(cfg)
	var answer bytes.Buffer
	answered, err := forward(ctx, &call{args: []string{"config", "--json"}, out: &answer, err: c.err, cwd: c.cwd}, cfg)
	if err != nil {
		return nil, err
	}
	if !answered {
		c.progress("no server runs on %s; one started from here would have these settings", cfg.Data)
		return own, nil
	}
	server := map[string]string{}
	if err := json.Unmarshal(answer.Bytes(), &server); err != nil {
		return nil, fmt.Errorf("read the server's settings: %w", err)
	}
	c.progress("the server that runs on %s has these settings", cfg.Data)
	for _, s := range cfg.settings() {
		if server[s.key] != own[s.key] {
			c.progress("%s: a server started from here would have %s", s.key, orDash(own[s.key]))
		}
	}
	return server, nil
}

// values are the settings as they are shown.
func values(cfg Config) map[string]string {
	all := map[string]string{}
	for _, s := range cfg.settings() {
		all[s.key] = s.String()
	}
	return all
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}
