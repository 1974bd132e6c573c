// Command vesti is a news desk for one machine: it crawls feeds and Telegram
// channels, keeps every post once, sorts posts into subject areas and gives an
// editor candidates to search and pick. See README.md.
//
// This package is the composition root: it alone knows every other package. It
// has one file per subcommand.
package main

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	early := make(chan os.Signal, 1)
	signal.Notify(early, syscall.SIGHUP)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	cwd, err := os.Getwd()
	if err != nil {
		cwd = "/"
	}
	code := run(ctx, &call{
		args: os.Args[1:],
		in:   os.Stdin,
		out:  os.Stdout,
		err:  os.Stderr,
		env:  environment(os.Environ()),
		cwd:  cwd,

		early: early,
	})
	stop()
	os.Exit(code)
}

// environment makes a map of a process's "NAME=value" lines.
func environment(lines []string) map[string]string {
	env := map[string]string{}
	for _, line := range lines {
		if name, value, ok := strings.Cut(line, "="); ok {
			env[name] = value
		}
	}
	return env
}
