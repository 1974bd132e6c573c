package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Seq is an event's place in the ledger, counted from 1 in commit order. It
// increases and need not be dense. Zero stands before the first event.
type Seq uint64

// PostNum is the number of a post: the Seq of its PostFetched. Events that
// follow name their post by it, being short and in order. Zero is no post.
type PostNum uint64

// Hash is a SHA-256 sum. The zero Hash stands for an absent one.
type Hash [sha256.Size]byte

// IsZero reports whether h is absent.
func (h Hash) IsZero() bool { return h == Hash{} }

// String returns h in lower-case hexadecimal, 64 digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// HashOf returns the SHA-256 of the parts, each preceded by its length, so
// that ("ab","c") and ("a","bc") differ.
func HashOf(parts ...string) Hash {
	d := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(d, "%d:", len(p))
		d.Write([]byte(p))
	}
	var h Hash
	d.Sum(h[:0])
	return h
}

// PostID is the public identity of a post: the hash of its normalised text, or
// of its text and item key where the text is too short to identify it (see
// IdentifyText). A post keeps its ID through every revision.
type PostID Hash

// IsZero reports whether id names no post.
func (id PostID) IsZero() bool { return id == PostID{} }

// String returns id in lower-case hexadecimal, 64 digits.
func (id PostID) String() string { return Hash(id).String() }

// MarshalText implements encoding.TextMarshaler with the form of String.
func (id PostID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler; see ParsePostID.
func (id *PostID) UnmarshalText(b []byte) error {
	p, err := ParsePostID(string(b))
	if err != nil {
		return err
	}
	*id = p
	return nil
}

// ParsePostID reads the form that PostID.String writes, in either case. It
// returns an error matching ErrInvalid for anything else.
func ParsePostID(s string) (PostID, error) {
	var id PostID
	if len(s) != hex.EncodedLen(len(id)) {
		return PostID{}, fmt.Errorf("%w: post id %q: want %d hexadecimal digits", ErrInvalid, s, hex.EncodedLen(len(id)))
	}
	if _, err := hex.Decode(id[:], []byte(s)); err != nil {
		return PostID{}, fmt.Errorf("%w: post id %q: %w", ErrInvalid, s, err)
	}
	return id, nil
}

// ItemKey is the identity of an item at its source: what makes "the same entry
// of the same feed" the same, whatever became of its text. NewItemKey builds
// the form for feeds, crawlers of other kinds build their own under a prefix
// of theirs; the ledger only compares them.
type ItemKey string

// NewItemKey is the key of the item that source calls guid. A feed's item has
// its guid, else the canonical form of its link, else a hash of what it gave.
func NewItemKey(source Slug, guid string) ItemKey {
	return ItemKey(string(source) + "\x1f" + guid)
}

// String returns the key with its separator made visible.
func (k ItemKey) String() string { return strings.ReplaceAll(string(k), "\x1f", "#") }
