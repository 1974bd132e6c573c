//go:build !race

package badgerlog_test

const underRace = false
