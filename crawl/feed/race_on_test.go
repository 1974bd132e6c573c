//go:build race

package feed

// hostileSize is the length of a hostile document in tests of time, in bytes: with
// the race detector everything takes many times as long.
const hostileSize = 512 << 10
