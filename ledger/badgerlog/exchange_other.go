//go:build !linux

package badgerlog

// exchange gives two folders each other's name.
func exchange(a, b string) error { return exchangeInSteps(a, b) }
