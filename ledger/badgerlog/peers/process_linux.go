package main

import "syscall"

// ownGroup keeps a child out of the terminal's group, and ends it with the bench
// even where that is killed.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGQUIT}
}
