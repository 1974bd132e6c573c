package badgerlog

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"time"

	badger "github.com/dgraph-io/badger/v4"
	"github.com/klauspost/compress/zstd"

	"vesti.nixg.ru/ledger"
)

// A backup is a zstd stream of records: a kind, and one or two values behind
// their lengths. It holds what cannot be derived: events, texts, items, and the
// namespaces that are not projections. The last record proves the others.
const (
	backupMagic   = "vesti-backup-1\n"
	backupHeader  = 'H' // BackupInfo as JSON
	backupPair    = 'P' // a key and its value
	backupList    = 'L' // in a further link: a prefix and which keys of it there are
	backupTrailer = 'T' // backupProof as JSON
	maxBackupPart = 64 << 20
)

// BackupInfo says what a backup holds; it is its first record.
type BackupInfo struct {
	ID     string     `json:"id"`
	Parent string     `json:"parent,omitempty"` // the backup whose next link it is; "" for a whole one
	Store  string     `json:"store"`            // the store it was made of
	At     time.Time  `json:"at"`
	Format int        `json:"format"`
	Head   ledger.Seq `json:"head"`
	// Version is Badger's, of the newest change that is in it.
	Version uint64 `json:"version"`
}

// backupProof is what a restored chain must come to.
type backupProof struct {
	Pairs  int    `json:"pairs"`  // in this file
	SHA256 string `json:"sha256"` // of all records before this one, unpacked
	Events int    `json:"events"` // in the store
	Texts  int    `json:"texts"`
	Items  int    `json:"items"`
}

// BackupReport is what Backup wrote.
type BackupReport struct {
	BackupInfo
	Pairs int   `json:"pairs"`
	Bytes int64 `json:"bytes"` // as written
}

// ErrBackup is a file that is no backup, is damaged, or does not belong in its
// place in a chain.
var ErrBackup = errors.New("unusable backup")

// Backup writes the store, as it is at this moment, to w, while it is used.
// With since, an earlier backup's info, it writes what changed after that one:
// the next link of its chain. Restoring needs every link in order.
func (l *Log) Backup(ctx context.Context, w io.Writer, since *BackupInfo, progress Progress) (BackupReport, error) {
	if progress == nil {
		progress = func(string, uint64, uint64) {}
	}
	b := &backupWriter{ctx: ctx, log: l, hash: sha256.New(), progress: progress}
	counted := &countingWriter{w: w}
	z, err := zstd.NewWriter(counted)
	if err != nil {
		return BackupReport{}, fmt.Errorf("backup: %w", err)
	}
	b.out = bufio.NewWriterSize(z, 1<<20)
	err = l.view(ctx, func(txn *badger.Txn) error { return b.write(txn, since) })
	if err == nil {
		err = b.out.Flush()
	}
	if err = errors.Join(err, z.Close()); err != nil {
		return BackupReport{}, fmt.Errorf("backup: %w", err)
	}
	return BackupReport{BackupInfo: b.info, Pairs: b.proof.Pairs, Bytes: counted.n}, nil
}

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err //nolint:wrapcheck // a writer's own error
}

type backupWriter struct {
	ctx      context.Context //nolint:containedctx // of the one call that it is made for
	log      *Log
	out      *bufio.Writer
	hash     hash.Hash
	progress Progress
	info     BackupInfo
	proof    backupProof
	steps    uint64
}

func (b *backupWriter) write(txn *badger.Txn, since *BackupInfo) error {
	if err := b.begin(txn, since); err != nil {
		return err
	}
	var after uint64
	if since != nil {
		after = since.Version
	}
	for prefix, n := range map[byte]*int{keyEvent: &b.proof.Events, keyBody: &b.proof.Texts, keyItem: &b.proof.Items} {
		if *n = countPrefix(txn, []byte{prefix}); b.ctx.Err() != nil {
			return context.Cause(b.ctx)
		}
	}
	for _, prefix := range []byte{keyEvent, keyBody, keyItem} {
		if err := b.pairs(txn, prefix, after); err != nil {
			return err
		}
	}
	// What is beside the log is small, and has deletions: it is always whole.
	if err := b.pairs(txn, keyStore, 0); err != nil {
		return err
	}
	if since != nil {
		for _, prefix := range []byte{keyEvent, keyBody} {
			if err := b.lists(txn, prefix); err != nil {
				return err
			}
		}
	}
	b.proof.SHA256 = hex.EncodeToString(b.hash.Sum(nil))
	return b.document(backupTrailer, b.proof)
}

func (b *backupWriter) begin(txn *badger.Txn, since *BackupInfo) error {
	store, err := txnGet(txn, []byte(controlStore))
	if err != nil {
		return err
	}
	id := make([]byte, 16)
	rand.Read(id)
	b.info = BackupInfo{
		ID: hex.EncodeToString(id), Store: hex.EncodeToString(store), At: b.log.now().UTC(), Format: formatVersion,
		Head: lastSeq(txn), Version: txn.ReadTs(),
	}
	if since != nil {
		if since.Store != b.info.Store {
			return fmt.Errorf("%w: the earlier backup is of another store (a restored store begins a new chain)", ErrBackup)
		}
		if since.Head > b.info.Head || since.Version > b.info.Version {
			return fmt.Errorf("%w: the earlier backup is ahead of the store", ErrBackup)
		}
		b.info.Parent = since.ID
	}
	if _, err := b.out.WriteString(backupMagic); err != nil {
		return err //nolint:wrapcheck // wrapped by Backup
	}
	b.hash.Write([]byte(backupMagic))
	return b.document(backupHeader, b.info)
}

// pairs writes the keys of a prefix that changed after a version.
func (b *backupWriter) pairs(txn *badger.Txn, prefix byte, after uint64) error {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{prefix}, SinceTs: after})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		key := it.Item().Key()
		if prefix == keyStore && bytes.HasPrefix(key[1:], []byte(ledger.DerivedNamespace)) {
			continue
		}
		if b.steps++; b.steps%10000 == 0 {
			b.progress("backup", b.steps, 0)
		}
		failpoint("backup.pair")
		if err := context.Cause(b.ctx); err != nil {
			return err
		}
		if b.log.closing.Load() {
			return ledger.ErrClosed
		}
		err := readValue(it.Item(), func(v []byte) error { return b.record(backupPair, key, v) })
		if err != nil {
			return fmt.Errorf("%s: %w", printKey(key), err)
		}
		b.proof.Pairs++
	}
	return nil
}

func (b *backupWriter) document(kind byte, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err //nolint:wrapcheck // wrapped by Backup
	}
	return b.record(kind, text)
}

func (b *backupWriter) record(kind byte, parts ...[]byte) error {
	if err := b.put([]byte{kind}); err != nil {
		return err
	}
	for _, p := range parts {
		if err := b.put(binary.AppendUvarint(nil, uint64(len(p)))); err != nil {
			return err
		}
		if err := b.put(p); err != nil {
			return err
		}
	}
	return nil
}

func (b *backupWriter) put(p []byte) error {
	b.hash.Write(p)
	_, err := b.out.Write(p)
	return err //nolint:wrapcheck // wrapped by Backup
}

// lists writes which keys of a prefix there are, as the distances between their
// numbers: what an earlier link has beyond them was removed since.
func (b *backupWriter) lists(txn *badger.Txn, prefix byte) error {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{prefix}})
	defer it.Close()
	last := uint64(0)
	list := []byte{prefix}
	for it.Rewind(); it.Valid(); it.Next() {
		n := seqOf(it.Item().Key())
		list = binary.AppendUvarint(list, n-last)
		last = n
		if len(list) > 1<<20 {
			if err := b.record(backupList, list); err != nil {
				return err
			}
			list = list[:1]
		}
	}
	return b.record(backupList, list)
}

// ReadBackupInfo reads what a backup says of itself. It returns an error
// matching ErrBackup for anything that is none.
func ReadBackupInfo(r io.Reader) (BackupInfo, error) {
	b, err := newBackupReader(r)
	if err != nil {
		return BackupInfo{}, err
	}
	defer b.close()
	return b.info, nil
}

// backupReader reads a backup's records.
type backupReader struct {
	z    *zstd.Decoder
	in   *bufio.Reader
	hash hash.Hash
	info BackupInfo
}

func newBackupReader(r io.Reader) (*backupReader, error) {
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBackup, err)
	}
	b := &backupReader{z: z, in: bufio.NewReaderSize(z, 1<<20), hash: sha256.New()}
	magic := make([]byte, len(backupMagic))
	if _, err := io.ReadFull(b.in, magic); err != nil && !errors.Is(err, zstd.ErrMagicMismatch) {
		z.Close()
		return nil, fmt.Errorf("%w: it is damaged or cut: %w", ErrBackup, err)
	}
	if string(magic) != backupMagic {
		z.Close()
		return nil, fmt.Errorf("%w: the file does not begin like one", ErrBackup)
	}
	b.hash.Write(magic)
	kind, text, _, err := b.next()
	if err == nil && kind != backupHeader {
		err = fmt.Errorf("%w: no header", ErrBackup)
	}
	if err == nil {
		err = json.Unmarshal(text, &b.info)
	}
	if err == nil && b.info.Format > formatVersion {
		err = fmt.Errorf("%w: backup of format %d", ledger.ErrNewer, b.info.Format)
	}
	if err != nil {
		z.Close()
		return nil, fmt.Errorf("read backup: %w", err)
	}
	return b, nil
}

func (b *backupReader) close() { b.z.Close() }

// next reads a record. The trailer's is not hashed: it holds the hash.
func (b *backupReader) next() (kind byte, key, value []byte, err error) {
	if kind, err = b.in.ReadByte(); err != nil {
		return 0, nil, nil, fmt.Errorf("%w: it is cut: %w", ErrBackup, err)
	}
	if kind != backupTrailer {
		b.hash.Write([]byte{kind})
	}
	if key, err = b.part(kind); err != nil {
		return 0, nil, nil, err
	}
	if kind == backupPair {
		value, err = b.part(kind)
	}
	return kind, key, value, err
}

func (b *backupReader) part(kind byte) ([]byte, error) {
	n, err := binary.ReadUvarint(b.in)
	if err != nil || n > maxBackupPart {
		return nil, fmt.Errorf("%w: it is damaged or cut", ErrBackup)
	}
	p := make([]byte, n)
	if _, err := io.ReadFull(b.in, p); err != nil {
		return nil, fmt.Errorf("%w: it is cut: %w", ErrBackup, err)
	}
	if kind != backupTrailer {
		b.hash.Write(binary.AppendUvarint(nil, n))
		b.hash.Write(p)
	}
	return p, nil
}

// pairs calls pair with each key and value and list with each list, and returns
// the trailer once it has proved them.
func (b *backupReader) pairs(pair func(key, value []byte) error, list func([]byte) error) (backupProof, error) {
	var proof backupProof
	for n := 0; ; {
		sum := b.hash.Sum(nil)
		kind, key, value, err := b.next()
		if err != nil {
			return proof, err
		}
		switch kind {
		case backupPair:
			if len(key) == 0 || !strings.ContainsRune("ebis", rune(key[0])) {
				return proof, fmt.Errorf("%w: it holds the key %q", ErrBackup, key)
			}
			if err := pair(key, value); err != nil {
				return proof, err
			}
			n++
		case backupList:
			if err := list(key); err != nil {
				return proof, err
			}
		case backupTrailer:
			if err := json.Unmarshal(key, &proof); err != nil {
				return proof, fmt.Errorf("%w: %w", ErrBackup, err)
			}
			if proof.SHA256 != hex.EncodeToString(sum) || proof.Pairs != n {
				return proof, fmt.Errorf("%w: its hash or its count is not what it says", ErrBackup)
			}
			if _, err := b.in.ReadByte(); !errors.Is(err, io.EOF) {
				return proof, fmt.Errorf("%w: something follows its end; name the files of a chain one by one", ErrBackup)
			}
			return proof, nil
		default:
			return proof, fmt.Errorf("%w: a record of kind %q", ErrBackup, kind)
		}
	}
}
