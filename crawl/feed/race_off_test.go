//go:build !race

package feed

// hostileSize is the length of a hostile document in tests of time, in bytes.
const hostileSize = 4 << 20
