//go:build race

package page_test

// hostileSize is the length of a hostile page in tests of time, in bytes: with
// the race detector everything takes many times as long.
const hostileSize = 8 << 10
