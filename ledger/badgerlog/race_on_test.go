//go:build race

package badgerlog_test

// underRace: the race detector makes what writes hundreds of megabytes take
// minutes; those tests run without it.
const underRace = true
