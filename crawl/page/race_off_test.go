//go:build !race

package page_test

// hostileSize is the length of a hostile page in tests of time, in bytes.
const hostileSize = 512 << 10
