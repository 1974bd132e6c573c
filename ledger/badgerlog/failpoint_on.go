//go:build failpoints

package badgerlog

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// failpoint kills the process, as kill -9 does, where VESTI_FAILPOINT names it:
// "name" or "name:n" for the n-th time that it is passed. Only builds with the
// tag failpoints have it.
func failpoint(name string) {
	want, count, _ := strings.Cut(os.Getenv("VESTI_FAILPOINT"), ":")
	if want != name {
		return
	}
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		n = 1
	}
	if passed.Add(1) == n {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // until the signal is there
	}
}

var passed atomic.Int64 //nolint:gochecknoglobals // of this one process, in test builds only
