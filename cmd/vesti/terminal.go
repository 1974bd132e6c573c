package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// setTerminalEcho switches whether a terminal shows what is typed. Of anything
// but a terminal it does nothing.
func setTerminalEcho(f *os.File, on bool) {
	fd := int(f.Fd())
	state, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return
	}
	if on {
		state.Lflag |= unix.ECHO
	} else {
		state.Lflag &^= unix.ECHO
	}
	_ = unix.IoctlSetTermios(fd, unix.TCSETS, state)
}
