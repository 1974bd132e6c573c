//go:build !failpoints

package badgerlog

// failpoint is where a test build can die; see failpoint_on.go.
func failpoint(string) {}
