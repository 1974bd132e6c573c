package badgerlog

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"path/filepath"
	"slices"

	"github.com/dgraph-io/ristretto/v2/z"
)

// A file of values is Badger's, as is its log, in which transactions have ends: a
// header, then entries of
//
//	meta1 user1 uv(key length) uv(value length) uv(expiry) key value crc4
//
// where key ends with 8 bytes of the version (as 2^64-1 less it) and crc is the
// CRC-32C of what is before it. Badger itself reads such a file only up to the
// first entry that is damaged: at opening it cuts the newest file there, and its
// garbage collection takes the rest of a file for garbage. What follows reads on
// behind the damage.
const (
	valueHeader = 20
	maxValueKey = 1 << 16
	minEntry    = 5

	// The bits of meta that are set.
	valueMeta     = 0x07
	logMeta       = 0xCF
	endOfTxn      = 0x80 // an entry that ends a transaction; in logs only
	versionLength = 8
)

// valueEntry is an entry of a file of values. Its slices are the file's.
type valueEntry struct {
	meta    byte
	key     []byte
	version uint64
	value   []byte
}

// span is a part of a file, in bytes.
type span struct{ from, to int64 }

func (s span) String() string { return fmt.Sprintf("%d bytes at %d", s.to-s.from, s.from) }

// scanValues calls f with each sound entry from an offset on and returns the
// damaged parts between them, and where the last one ends. What is behind that
// is no damage: it was not written to its end, or not yet.
func scanValues(b []byte, from int64, f func(valueEntry) error) (damaged []span, end int64, err error) {
	return scanEntries(b, from, valueMeta, f)
}

// scanEntries is scanValues for either kind of file. Behind damage every byte is
// tried; what meta can be spares most of them.
func scanEntries(b []byte, from int64, meta byte, f func(valueEntry) error) (damaged []span, end int64, err error) {
	end = from
	for at := from; at < int64(len(b))-minEntry; {
		var e valueEntry
		var size int64
		if b[at]&^meta == 0 && b[at+1] == 0 {
			e, size = decodeLogEntry(b[at:])
		}
		if size == 0 {
			at += max(zeros(b[at:])-2, 1) // an entry begins with two of them
			continue
		}
		if at > end {
			damaged = append(damaged, span{end, at})
		}
		at += size
		end = at
		if err := f(e); err != nil {
			return damaged, end, err
		}
	}
	return damaged, end, nil
}

// zeros counts the zero bytes that b begins with, in eights: a file is as long
// as it may become before anything is in it.
func zeros(b []byte) int64 {
	n := int64(0)
	for len(b) >= 8 && binary.NativeEndian.Uint64(b) == 0 {
		b, n = b[8:], n+8
	}
	return n
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// decodeLogEntry reads the entry at the beginning of b, which is longer than
// minEntry, and returns its size, 0 where there is no sound one.
func decodeLogEntry(b []byte) (valueEntry, int64) {
	keyLen, n := binary.Uvarint(b[2:])
	at := 2 + n
	if n <= 0 || keyLen <= versionLength || keyLen > maxValueKey {
		return valueEntry{}, 0
	}
	valueLen, n := binary.Uvarint(b[at:])
	at += n
	if n <= 0 || valueLen > uint64(len(b)) {
		return valueEntry{}, 0
	}
	expiry, n := binary.Uvarint(b[at:])
	at += n
	end := uint64(at) + keyLen + valueLen
	if n <= 0 || expiry != 0 || end+crc32.Size > uint64(len(b)) {
		return valueEntry{}, 0
	}
	if crc32.Checksum(b[:end], castagnoli) != binary.BigEndian.Uint32(b[end:]) {
		return valueEntry{}, 0
	}
	key := b[at : uint64(at)+keyLen]
	user := len(key) - versionLength
	return valueEntry{
		meta: b[0], key: key[:user], version: math.MaxUint64 - binary.BigEndian.Uint64(key[user:]), value: b[uint64(at)+keyLen : end],
	}, int64(end + crc32.Size)
}

// valueFiles lists the files of values, the newest last: their names are numbers
// of six digits.
func valueFiles(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.vlog"))
	if err != nil {
		return nil, fmt.Errorf("list values: %w", err)
	}
	slices.Sort(files)
	return files, nil
}

// damagedValues returns the damaged parts of a file of values.
func damagedValues(path string) ([]span, error) {
	var damaged []span
	err := mapped(path, func(m *z.MmapFile) error {
		var err error
		damaged, _, err = scanValues(m.Data, valueHeader, func(valueEntry) error { return nil })
		return err
	})
	return damaged, err
}
