package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/telegram/mtproto"
)

func newTelegramCmd(c *call) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "telegram",
		Short: "Log in to Telegram, out, or show how the account stands",
		Long: `Log in to Telegram, out, or show how the account stands. Without an account,
channels are read from their public preview pages.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTelegramLogin(c), newTelegramImport(c))
	cmd.AddCommand(needing(needsStore, newTelegramLogout(c), newTelegramStatus(c), newTelegramForget(c))...)
	return cmd
}

// withAccount runs f with the account, or says what is missing for one.
func (c *call) withAccount(cmd *cobra.Command, f func(context.Context, *mtproto.Account) error) error {
	return c.withApp(cmd.Context(), func(ctx context.Context, a *App) error {
		if a.telegram == nil {
			return a.noAccount()
		}
		return f(ctx, a.telegram)
	})
}

func newTelegramLogin(c *call) *cobra.Command {
	return &cobra.Command{
		Use:   "login",
		Short: "Log in with phone number, code and, where set, the second factor",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.interactive = true
			return c.withAccount(cmd, func(ctx context.Context, account *mtproto.Account) error {
				fmt.Fprintln(c.err, mtproto.LoginNotice)
				who, err := account.Login(ctx, &prompter{call: c, lines: bufio.NewReader(c.in)})
				if err != nil {
					return err
				}
				return c.printIdentity("logged in as", who)
			})
		},
	}
}

func newTelegramLogout(c *call) *cobra.Command {
	return &cobra.Command{
		Use:   "logout",
		Short: "End the session at Telegram and forget it",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withAccount(cmd, func(ctx context.Context, account *mtproto.Account) error {
				if err := account.Logout(ctx); err != nil {
					return err
				}
				return c.result(map[string]any{"ok": true}, func(w io.Writer) { fmt.Fprintln(w, "logged out") })
			})
		},
	}
}

func newTelegramStatus(c *call) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show whether the account can be used",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withApp(cmd.Context(), func(ctx context.Context, a *App) error {
				st, err := a.accountStatus(ctx)
				if err != nil {
					return err
				}
				return c.result(st, func(w io.Writer) {
					fmt.Fprintf(w, "%s: %s\n", st.State, st.Message)
					if st.Identity != nil {
						fmt.Fprintf(w, "%s (%d), since %s\n", st.Identity.Name, st.Identity.ID, day(st.Identity.Since))
					}
					for _, p := range st.Pauses {
						fmt.Fprintf(w, "%s waits until %s\n", p.Method, day(p.Until))
					}
				})
			})
		},
	}
}

func newTelegramImport(c *call) *cobra.Command {
	var desktop string
	var passcode bool
	cmd := &cobra.Command{
		Use:   "import-session [--desktop TDATA [--passcode]]",
		Short: "Take over a session of Telethon (its StringSession, from standard input) or Telegram Desktop",
		Long: `Take over a session of Telethon (its StringSession, from standard input) or of
Telegram Desktop (its folder tdata). Whatever used the session must have stopped:
Telegram ends sessions that are used from two places.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.interactive = desktop == "" || passcode
			return c.withAccount(cmd, func(ctx context.Context, account *mtproto.Account) error {
				var who mtproto.Identity
				var err error
				if desktop != "" {
					var code string
					if passcode {
						ask := &prompter{call: c, lines: bufio.NewReader(c.in)}
						if code, err = ask.ask(ctx, "Local passcode of Telegram Desktop: ", false); err != nil {
							return err
						}
					}
					who, err = account.ImportDesktop(ctx, c.path(desktop), []byte(code))
				} else {
					var line string
					if line, err = bufio.NewReader(c.in).ReadString('\n'); err == nil || errors.Is(err, io.EOF) {
						who, err = account.ImportTelethon(ctx, line)
					}
				}
				if err != nil {
					return err
				}
				return c.printIdentity("took over the session of", who)
			})
		},
	}
	cmd.Flags().StringVar(&desktop, "desktop", "", "the folder tdata of Telegram Desktop, which must not be running")
	cmd.Flags().BoolVar(&passcode, "passcode", false, "ask for the passcode that protects the folder")
	return cmd
}

func newTelegramForget(c *call) *cobra.Command {
	return &cobra.Command{
		Use:   "forget CHANNEL",
		Short: "Forget which channel a name led to, to follow the name to another one",
		Long: `Forget which channel a name led to. A name that suddenly leads to another channel
stops its source, so that the two are not mixed; after this command the source
begins anew with the channel that has the name now. Posts stay.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := crawl.ChannelName(args[0])
			if err != nil {
				return usagef("%v", err)
			}
			return c.withApp(cmd.Context(), func(ctx context.Context, a *App) error {
				was, err := a.channels.Forget(ctx, name)
				if err != nil {
					return err
				}
				if !was {
					return fmt.Errorf("channel %s was never read", name)
				}
				return c.result(map[string]any{"ok": true, "channel": name}, func(w io.Writer) { fmt.Fprintln(w, "forgotten:", name) })
			})
		},
	}
}

func (c *call) printIdentity(what string, who mtproto.Identity) error {
	return c.result(who, func(w io.Writer) { fmt.Fprintf(w, "%s %s (%d)\n", what, who.Name, who.ID) })
}

// prompter asks on the caller's terminal.
type prompter struct {
	call  *call
	lines *bufio.Reader
}

// Phone implements mtproto.Prompter.
func (p *prompter) Phone(ctx context.Context) (string, error) {
	return p.ask(ctx, "Phone number, as +79991234567: ", true)
}

// Code implements mtproto.Prompter.
func (p *prompter) Code(ctx context.Context, sentBy string, wrong bool) (string, error) {
	return p.ask(ctx, again(wrong)+"Code, sent by "+sentBy+": ", true)
}

// Password implements mtproto.Prompter.
func (p *prompter) Password(ctx context.Context, hint string, wrong bool) (string, error) {
	if hint != "" {
		hint = " (hint: " + hint + ")"
	}
	return p.ask(ctx, again(wrong)+"Password of the second factor"+hint+": ", false)
}

func again(wrong bool) string {
	if wrong {
		return "That was not right. "
	}
	return ""
}

func (p *prompter) ask(ctx context.Context, question string, echo bool) (string, error) {
	fmt.Fprint(p.call.err, question)
	if !echo {
		p.call.setEcho(false)
		defer func() {
			p.call.setEcho(true)
			fmt.Fprintln(p.call.err)
		}()
	}
	type answer struct {
		line string
		err  error
	}
	got := make(chan answer, 1)
	go func() { // a terminal's read cannot be interrupted; the process ends soon after ctx
		line, err := p.lines.ReadString('\n')
		got <- answer{line, err}
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case a := <-got:
		if a.err != nil && (a.line == "" || !errors.Is(a.err, io.EOF)) {
			return "", fmt.Errorf("read the answer: %w", a.err)
		}
		return strings.TrimSpace(a.line), nil
	}
}

// setEcho switches the caller's terminal, at the other end of the socket where
// a server carries the call out.
func (c *call) setEcho(on bool) {
	if c.remoteEcho != nil {
		c.remoteEcho(on)
		return
	}
	if f, ok := c.in.(*os.File); ok {
		setTerminalEcho(f, on)
	}
}
