package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

func newPassword(c *call) *cobra.Command {
	return &cobra.Command{
		Use:   "password",
		Short: "Set a new password for the pages, print it, and end every session",
		Long: `Set a new password for the pages, print it, and end every session. Tokens of the
API stay valid: they are revoked on the account page.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withApp(cmd.Context(), func(ctx context.Context, a *App) error {
				ui := a.ui
				if ui == nil {
					var err error
					if ui, err = a.newUI(); err != nil {
						return err
					}
				}
				password, err := ui.ResetPassword(ctx)
				if err != nil {
					return fmt.Errorf("set password: %w", err)
				}
				return c.result(map[string]any{"ok": true, "password": password}, func(w io.Writer) { fmt.Fprintln(w, password) })
			})
		},
	}
}
