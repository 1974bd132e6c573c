package badgerlog

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"vesti.nixg.ru/ledger"
)

func openFor(t *testing.T, dir string) *Log {
	t.Helper()
	l, err := Open(t.Context(), Options{
		Dir: dir, FreeSpaceFloor: -1, GCInterval: -1, Tick: time.Millisecond, MemTable: 2 << 20, ValueLogFile: 1 << 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func closeLog(t *testing.T, l *Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// noise is n bytes that compression makes no smaller.
func noise(seed, n int) string {
	const letters = "абвгдежзийклмнопрстуфхцчшщъыьэюяabcdefghijklmnopqrstuvwxyz0123456789"
	runes := []rune(letters)
	rng := rand.New(rand.NewPCG(uint64(seed), 5))
	var b strings.Builder
	for b.Len() < n {
		b.WriteRune(runes[rng.IntN(len(runes))])
	}
	return b.String()
}

// spoilValue spoils the value of a key in its file, wherever that is.
func spoilValue(t *testing.T, dir string, key []byte) {
	t.Helper()
	files, err := valueFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		spoilt := false
		_, _, err = scanValues(b, valueHeader, func(e valueEntry) error {
			if bytes.Equal(e.key, key) {
				copy(e.value[len(e.value)/2:], "spoilt")
				spoilt = true
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if spoilt {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("%s is in no file of values", printKey(key))
}

// TestDamagedValue: a text that the disk has spoilt is never taken for an empty
// one, and holds up nothing else.
func TestDamagedValue(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := t.TempDir()
	l := openFor(t, dir)
	var items []ledger.Item
	for i := range 3 {
		items = append(items, testItem(fmt.Sprint(i+1), noise(i, 2000)))
	}
	if _, err := l.Append(ctx, items); err != nil {
		t.Fatal(err)
	}
	page := []byte(noise(9, 2000))
	if err := l.Store("desk").Update(ctx, func(tx ledger.Tx) error { return tx.Set([]byte("page"), page) }); err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)
	spoilValue(t, dir, bodyKey(2))
	spoilValue(t, dir, append(storePrefix("desk"), "page"...))

	l = openFor(t, dir)
	events, err := l.ReadTexts(ctx, 0, 0)
	if err != nil || len(events) != 3 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	for i, e := range events {
		want := items[i].Text
		if i == 1 {
			want = ""
		}
		if got := e.Payload.(ledger.PostFetched).Item.Text; got != want {
			t.Errorf("event %d has %.20q, want %.20q", e.Seq, got, want)
		}
	}
	if n := testutil.ToFloat64(l.metrics.unreadable); n != 1 {
		t.Errorf("%v unreadable values are counted", n)
	}
	for range 2 {
		c, err := l.Claim(ctx, ledger.ClaimRequest{})
		if err != nil || c.Post == 2 || c.Item.Text != items[c.Post-1].Text {
			t.Fatalf("claimed post %d, %v", c.Post, err)
		}
		if err := l.Complete(ctx, c, ledger.PostClassified{Classification: ledger.Classification{Direction: "linux"}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Claim(ctx, ledger.ClaimRequest{NoWait: true}); !errors.Is(err, ledger.ErrQueueEmpty) {
		t.Errorf("a post without its text was given out: %v", err)
	}
	if _, err := l.Post(ctx, 2); !errors.Is(err, ledger.ErrUnreadable) {
		t.Errorf("post 2: %v", err)
	}
	err = l.Store("desk").View(ctx, func(tx ledger.Tx) error {
		_, err := tx.Get([]byte("page"))
		return err
	})
	if !errors.Is(err, ledger.ErrUnreadable) {
		t.Errorf("a namespace's value: %v", err)
	}
	if _, err := l.Backup(ctx, io.Discard, nil, nil); err == nil || !strings.Contains(err.Error(), "b/2") {
		t.Errorf("backup: %v", err)
	}
	r, err := l.Verify(ctx, VerifyOptions{})
	if err != nil || r.OK() || len(r.Found) != 2 || r.Found[0].Key != "b/2" || r.Parked != 1 {
		t.Errorf("verify: %+v, %v", r, err)
	}
	repaired(t, l)
	if p, err := l.Post(ctx, 2); err != nil || !p.State.Expired || p.Item.Text != "" {
		t.Errorf("post 2 after the repair: %+v, %v", p, err)
	}
	closeLog(t, l)
}

// repaired has Verify mend all it finds, after which a backup can be made.
func repaired(t *testing.T, l *Log) {
	t.Helper()
	r, err := l.Verify(t.Context(), VerifyOptions{Repair: true})
	if err != nil || !r.OK() || r.Problems == 0 {
		t.Errorf("repair: %+v, %v", r, err)
	}
	if _, err := l.Compact(t.Context()); err != nil {
		t.Error(err)
	}
	if r, err := l.Verify(t.Context(), VerifyOptions{}); err != nil || r.Problems > 0 {
		t.Errorf("after the repair: %+v, %v", r, err)
	}
	if _, err := l.Backup(t.Context(), io.Discard, nil, nil); err != nil {
		t.Errorf("backup after the repair: %v", err)
	}
}

// TestRepairOfLoss: what is lost is given up, whatever state its post is in.
func TestRepairOfLoss(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := t.TempDir()
	l := openFor(t, dir)
	for n := range 900 { // more than a file of values holds
		item := testItem(fmt.Sprint(n+1), noise(n, 2000))
		if _, err := l.Append(ctx, []ledger.Item{item}); err != nil {
			t.Fatal(err)
		}
	}
	revised := testItem("5", noise(1000, 2000))
	out, err := l.Append(ctx, []ledger.Item{revised})
	if err != nil || out[0].Outcome != ledger.OutcomeRevised {
		t.Fatal(out, err)
	}
	for range 3 {
		c, err := l.Claim(ctx, ledger.ClaimRequest{})
		if err == nil {
			err = l.Complete(ctx, c, ledger.PostClassified{Classification: ledger.Classification{Direction: "linux"}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	closeLog(t, l)
	for _, seq := range []ledger.Seq{1, 4, 5} { // classified, pending, an older text
		spoilValue(t, dir, bodyKey(seq))
	}
	l = openFor(t, dir)
	defer closeLog(t, l)
	repaired(t, l)
	for num, want := range map[ledger.PostNum]ledger.Status{1: ledger.StatusClassified, 4: ledger.StatusParked, 5: ledger.StatusPending} {
		p, err := l.Post(ctx, num)
		if err != nil || p.State.Status != want || p.State.Expired != (num != 5) {
			t.Errorf("post %d: %+v, %v", num, p.State, err)
		}
	}
	again := testItem("4", noise(2000, 2000))
	if out, err := l.Append(ctx, []ledger.Item{again}); err != nil || out[0].Post != 4 {
		t.Errorf("a new text of post 4: %+v, %v", out, err)
	}
	if p, err := l.Post(ctx, 4); err != nil || p.Item.Text != again.Text || p.State.Status != ledger.StatusPending {
		t.Errorf("post 4 with a new text: %+v, %v", p.State, err)
	}
}

// TestGarbageBehindDamage: garbage collection takes what stands behind damage
// with it into the new file.
func TestGarbageBehindDamage(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := t.TempDir()
	l := openFor(t, dir)
	const keys = 1500
	set := func(from, to, version int) {
		t.Helper()
		for i := from; i < to; i += 100 {
			err := l.Store("desk").Update(ctx, func(tx ledger.Tx) error {
				for k := i; k < i+100; k++ {
					if err := tx.Set(fmt.Appendf(nil, "%04d", k), []byte(noise(k*10+version, 2000))); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	set(0, keys, 1)
	closeLog(t, l)
	spoilValue(t, dir, append(storePrefix("desk"), "0003"...))

	l = openFor(t, dir)
	defer closeLog(t, l)
	set(100, 500, 2) // the first file is mostly garbage now, its beginning is not
	for testutil.ToFloat64(l.metrics.gc.WithLabelValues(gcFreed)) == 0 {
		if _, err := l.Compact(ctx); err != nil {
			t.Fatal(err)
		}
	}
	err := l.Store("desk").View(context.Background(), func(tx ledger.Tx) error {
		for k := range keys {
			version := 1
			if k >= 100 && k < 500 {
				version = 2
			}
			v, err := tx.Get(fmt.Appendf(nil, "%04d", k))
			if damaged := k == 3; damaged != (err != nil) || !damaged && string(v) != noise(k*10+version, 2000) {
				t.Errorf("%d: %v", k, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestAsideAgain: a process that died before it had put back what was set aside
// leaves that to the next one.
func TestAsideAgain(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := t.TempDir()
	l := openFor(t, dir)
	for n := range 10 {
		if _, err := l.Append(ctx, []ledger.Item{testItem(fmt.Sprint(n+1), noise(n, 2000))}); err != nil {
			t.Fatal(err)
		}
	}
	closeLog(t, l)
	spoilValue(t, dir, bodyKey(4))
	if err := setAside(l.opts, 1<<63); err != nil {
		t.Fatal(err)
	}
	db, _, err := openBadger(l.opts) // cuts the file
	if err != nil {
		t.Fatal(err)
	}
	if err := closeBadger(db); err != nil {
		t.Fatal(err)
	}
	l = openFor(t, dir)
	defer closeLog(t, l)
	if n := testutil.ToFloat64(l.metrics.rescued); n != 6 {
		t.Errorf("%v values were put back, 6 stood behind the damage", n)
	}
	r, err := l.Verify(ctx, VerifyOptions{})
	if err != nil || len(r.Found) != 1 || r.Found[0].Key != "b/4" {
		t.Errorf("%+v, %v", r, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*"+asideExt+"*")); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

// TestLostLog: a durable store whose log has lost changes is refused, untouched,
// until that is accepted; it is then what it was before them. A relaxed one says
// so and goes on.
func TestLostLog(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := t.TempDir()
	l := openFor(t, dir)
	killed := t.TempDir()
	for n := range 60 {
		if _, err := l.Append(ctx, []ledger.Item{testItem(fmt.Sprint(n+1), noise(n, 2000))}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)
	logs, err := filepath.Glob(filepath.Join(killed, "*.mem"))
	if err != nil || len(logs) != 1 {
		t.Fatal(logs, err)
	}
	log := filepath.Base(logs[0])
	for name, spoil := range map[string]func(path string) error{
		"whole": func(string) error { return nil },
		"cut":   func(path string) error { return os.Truncate(path, 8000) },
		"empty": func(path string) error { return os.Truncate(path, 0) },
		"a bit": func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt([]byte{0x55}, 8000)
			return errors.Join(err, f.Close())
		},
	} {
		dir := t.TempDir()
		if err := errors.Join(os.CopyFS(dir, os.DirFS(killed)), spoil(filepath.Join(dir, log))); err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		o := Options{Dir: dir, FreeSpaceFloor: -1, GCInterval: -1, MemTable: 2 << 20, Logger: slog.New(slog.NewTextHandler(&said, nil))}
		if name != "whole" {
			if _, err := Open(ctx, o); !errors.Is(err, errLost) {
				t.Errorf("%s: a durable store was opened: %v", name, err)
			}
			o.AcceptLoss = true
		}
		l, err := Open(ctx, o)
		if err != nil {
			t.Fatal(name, err)
		}
		if told := strings.Contains(said.String(), "changes are lost"); told != (name != "whole") {
			t.Errorf("%s: head %d, said %q", name, l.Head(), said.String())
		}
		r, err := l.Verify(ctx, VerifyOptions{})
		if err != nil || !r.OK() || (r.Posts == 60) != (name == "whole") {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		closeLog(t, l)
		o.AcceptLoss = false
		if l, err = Open(ctx, o); err != nil || l.Head() != r.Head {
			t.Fatal(name, "opened again:", err)
		}
		closeLog(t, l)
	}
}

func appendLogEntry(b []byte, key string, version uint64, value string) []byte {
	from := len(b)
	b = append(b, 0, 0)
	b = binary.AppendUvarint(b, uint64(len(key)+versionLength))
	b = binary.AppendUvarint(b, uint64(len(value)))
	b = binary.AppendUvarint(b, 0)
	b = append(b, key...)
	b = binary.BigEndian.AppendUint64(b, math.MaxUint64-version)
	b = append(b, value...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b[from:], castagnoli))
}

// FuzzScanValues spoils part of a file of values: every entry that was not
// touched is found, and nothing that was not written.
func FuzzScanValues(f *testing.F) {
	f.Add(uint16(30), []byte("spoilt"))
	f.Add(uint16(0), []byte{0, 0, 9, 200, 1, 0})
	f.Add(uint16(900), make([]byte, 300))
	f.Add(uint16(731), append(make([]byte, 150), append([]byte{3}, make([]byte, 52)...)...))
	f.Fuzz(func(t *testing.T, at uint16, spoilt []byte) {
		b := make([]byte, valueHeader)
		type written struct {
			span
			value string
		}
		all := make(map[uint64]written)
		for v := range uint64(10) {
			value, from := noise(int(v), 40+int(v)*10), int64(len(b))
			b = appendLogEntry(b, "key", v, value)
			all[v] = written{span{from, int64(len(b))}, value}
		}
		b = append(b, make([]byte, 100)...) // as long as it may become
		hit := span{min(valueHeader+int64(at), int64(len(b))), 0}
		hit.to = hit.from + int64(copy(b[hit.from:], spoilt))
		var found []uint64
		damaged, end, err := scanValues(b, valueHeader, func(e valueEntry) error {
			if w, ok := all[e.version]; !ok || w.value != string(e.value) || string(e.key) != "key" {
				t.Errorf("%d: %q was never written", e.version, e.value)
			}
			found = append(found, e.version)
			return nil
		})
		if err != nil || end > int64(len(b)) {
			t.Fatal(end, err)
		}
		for v, w := range all {
			if (w.to <= hit.from || w.from >= hit.to) && !slices.Contains(found, v) {
				t.Errorf("%d was not touched and not found; damaged: %v", v, damaged)
			}
		}
	})
}
