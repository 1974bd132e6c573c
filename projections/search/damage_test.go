package search_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
	"vesti.nixg.ru/ledger/ledgertest"
	"vesti.nixg.ru/projections"
	"vesti.nixg.ru/projections/posts"
	"vesti.nixg.ru/projections/projectiontest"
	"vesti.nixg.ru/projections/search"
)

// session is one run of a search over a ledger.
type session struct {
	search *search.Search
	feed   *projectiontest.Feed
	logged *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func start(t *testing.T, log *badgerlog.Log, dir string) *session {
	t.Helper()
	s := &session{logged: &lockedBuffer{}}
	logger := slog.New(slog.NewTextHandler(s.logged, nil))
	list := posts.New(log.Store)
	s.search = search.New(search.Options{Dir: dir, Texts: log, Posts: list, Logger: logger})
	s.feed = projectiontest.Start(t, projections.Options{
		Log: log, Stores: log.Store, Projections: []projections.Projection{list, s.search}, Logger: logger,
	})
	return s
}

func (s *session) total(t *testing.T, query string) int {
	t.Helper()
	r, err := s.search.Search(t.Context(), search.Request{Query: query})
	if err != nil {
		t.Fatal(err)
	}
	return r.Total
}

// filled is a ledger of some posts, indexed in several segments.
func filled(t *testing.T, dir string) *badgerlog.Log {
	t.Helper()
	log := ledgertest.Open(t)
	s := start(t, log, dir)
	for _, source := range []ledger.Slug{"a", "b", "c"} {
		if _, err := log.Append(t.Context(), ledgertest.Items(source, 40)); err != nil {
			t.Fatal(err)
		}
		s.feed.Settle()
	}
	if got := s.total(t, "новость"); got != 120 {
		t.Fatalf("%d posts found, want 120", got)
	}
	s.feed.Stop()
	return log
}

func segmentsIn(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "1", "*.zap"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no segments in %s: %v", dir, err)
	}
	slices.Sort(found)
	return found
}

func TestDamagedIndexIsRebuilt(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, dir string) error{
		"root overwritten": func(_ *testing.T, dir string) error {
			return overwrite(filepath.Join(dir, "1/root.bolt"), 0, bytes.Repeat([]byte{0xA5}, 4096))
		},
		"root overwritten in the middle": func(_ *testing.T, dir string) error {
			return overwrite(filepath.Join(dir, "1/root.bolt"), 8192, bytes.Repeat([]byte{0xA5}, 4096))
		},
		"root overwritten whole": func(_ *testing.T, dir string) error {
			return os.WriteFile(filepath.Join(dir, "1/root.bolt"), bytes.Repeat([]byte("junk"), 16<<10), 0o600)
		},
		"root cut":       func(_ *testing.T, dir string) error { return os.Truncate(filepath.Join(dir, "1/root.bolt"), 3000) },
		"root empty":     func(_ *testing.T, dir string) error { return os.Truncate(filepath.Join(dir, "1/root.bolt"), 0) },
		"root gone":      func(_ *testing.T, dir string) error { return os.Remove(filepath.Join(dir, "1/root.bolt")) },
		"segments cut":   eachSegment(func(path string) error { return os.Truncate(path, 500) }),
		"segments empty": eachSegment(func(path string) error { return os.Truncate(path, 0) }),
		"segments gone":  eachSegment(os.Remove),
		"bytes of segments changed": eachSegment(func(path string) error {
			return overwrite(path, 200, []byte("changed by a bad disk"))
		}),
		"folder gone": func(_ *testing.T, dir string) error { return os.RemoveAll(filepath.Join(dir, "1")) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			log := filled(t, dir)
			if err := damage(t, dir); err != nil {
				t.Fatal(err)
			}
			s := start(t, log, dir)
			s.feed.Settle()
			if got := s.total(t, "новость"); got != 120 {
				t.Errorf("%d posts found after the rebuild, want 120", got)
			}
			if got := s.total(t, ""); got != 120 {
				t.Errorf("%d posts listed, want 120", got)
			}
		})
	}
}

// eachSegment damages all of them: some may be what a merge has left behind.
func eachSegment(damage func(path string) error) func(*testing.T, string) error {
	return func(t *testing.T, dir string) error {
		for _, path := range segmentsIn(t, dir) {
			err := damage(path)
			if errors.Is(err, fs.ErrNotExist) { // a late merge has taken it away
				merged(t, dir)
				return eachSegment(damage)(t, dir)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

func overwrite(path string, at int64, with []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(with, at)
	return errors.Join(err, f.Close())
}

// TestDamageWhileItServes: an index that is damaged under a running process is
// built anew without a restart and without new events. No search fails
// meanwhile: it finds everything, or says that the index is being built.
func TestDamageWhileItServes(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, dir string) error{
		"segments cut":   eachSegment(func(path string) error { return os.Truncate(path, 500) }),
		"segments empty": eachSegment(func(path string) error { return os.Truncate(path, 0) }),
		"segments gone":  eachSegment(os.Remove),
		"root cut":       func(_ *testing.T, dir string) error { return os.Truncate(filepath.Join(dir, "1/root.bolt"), 3000) },
		"root gone":      func(_ *testing.T, dir string) error { return os.Remove(filepath.Join(dir, "1/root.bolt")) },
		"folder gone":    func(_ *testing.T, dir string) error { return os.RemoveAll(filepath.Join(dir, "1")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			log := filled(t, dir)
			s := start(t, log, dir)
			s.feed.Settle()
			if got := s.total(t, "новость"); got != 120 {
				t.Fatalf("%d posts found before the damage", got)
			}
			merged(t, dir)
			if err := damage(t, dir); err != nil {
				t.Fatal(err)
			}
			noted := false
			for _, query := range []string{"новость", "нов*", `"новость"`} {
				s.untilHealed(t, query, &noted)
			}
			if !noted {
				t.Error("no answer said that the index was being built")
			}
			if _, err := log.Append(t.Context(), ledgertest.Items("d", 10)); err != nil {
				t.Fatal(err)
			}
			s.feed.Settle()
			if got := s.total(t, "новость"); got != 130 {
				t.Errorf("%d posts found after more came, want 130", got)
			}
		})
	}
}

// TestBytesChangeWhileItServes: a search that reads nonsense finds out that it is
// nonsense; it says that the index is being built, and the log has no stack.
func TestBytesChangeWhileItServes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := filled(t, dir)
	s := start(t, log, dir)
	s.feed.Settle()
	merged(t, dir)
	junk := bytes.Repeat([]byte{0xA5}, 1<<20)
	if err := eachSegment(func(path string) error {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		return overwrite(path, 0, junk[:info.Size()])
	})(t, dir); err != nil {
		t.Fatal(err)
	}
	noted := false
	s.untilHealed(t, "новость", &noted)
	if !noted {
		t.Error("no answer said that the index was being built")
	}
	for line := range strings.Lines(s.logged.String()) {
		if len(line) > 500 {
			t.Errorf("a long line in the log: %s", line)
		}
	}
}

// merged waits until an open index has stopped merging segments and removing
// those that it has merged.
func merged(t *testing.T, dir string) {
	t.Helper()
	for before := []string(nil); ; {
		now := segmentsIn(t, dir)
		if slices.Equal(before, now) {
			return
		}
		before = now
		time.Sleep(300 * time.Millisecond) // nothing tells of the end of a merge
	}
}

// untilHealed asks until all is found, and wants an honest answer each time.
func (s *session) untilHealed(t *testing.T, query string, noted *bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		r, err := s.search.Search(ctx, search.Request{Query: query})
		if err != nil {
			t.Fatalf("%q: %v\n%s", query, err, s.logged)
		}
		building := slices.ContainsFunc(r.Notes, func(n search.Note) bool { return n.Reason == search.NoteRebuilding })
		*noted = *noted || building
		if r.Total == 120 && !building {
			return
		}
		if !building {
			t.Fatalf("%q: %d posts found, and nothing is said of it", query, r.Total)
		}
		<-tick.C
	}
}

// TestDamageIsFoundUnasked: nobody has to search for it.
func TestDamageIsFoundUnasked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := filled(t, dir)
	s := start(t, log, dir)
	s.feed.Settle()
	if got := s.total(t, "новость"); got != 120 {
		t.Fatalf("%d posts found before the damage", got)
	}
	merged(t, dir)
	if err := eachSegment(os.Remove)(t, dir); err != nil {
		t.Fatal(err)
	}
	deadline, tick := time.After(time.Minute), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for !strings.Contains(s.logged.String(), "projection has caught up") {
		select {
		case <-deadline:
			t.Fatalf("the index was not built anew\n%s", s.logged)
		case <-tick.C:
		}
	}
	if got := s.total(t, "новость"); got != 120 {
		t.Errorf("%d posts found, want 120", got)
	}
}

func TestDamageIsSaidAndSetAside(t *testing.T) {
	dir := t.TempDir()
	log := filled(t, dir)
	if err := eachSegment(os.Remove)(t, dir); err != nil {
		t.Fatal(err)
	}
	s := start(t, log, dir)
	s.feed.Settle()
	if said := s.logged.String(); !strings.Contains(said, "damaged") || !strings.Contains(said, "the ledger, which is untouched") {
		t.Errorf("the log does not say what happened:\n%s", said)
	}
	if _, err := os.Stat(filepath.Join(dir, "damaged")); err != nil {
		t.Errorf("the damaged index was not set aside: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "1")); err == nil {
		t.Error("the damaged index is still in its place")
	}
}

func TestLockDoesNotDiscard(t *testing.T) {
	dir := t.TempDir()
	log := filled(t, dir)
	list := posts.New(log.Store)
	first := search.New(search.Options{Dir: dir, Texts: log, Posts: list})
	held, err := first.Open(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	second := search.New(search.Options{Dir: dir, Texts: log, Posts: list})
	if _, err := second.Open(t.Context(), 1); !errors.Is(err, ledger.ErrLocked) || errors.Is(err, projections.ErrDamaged) {
		t.Errorf("opening a locked index: %v, want %v", err, ledger.ErrLocked)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := second.Open(t.Context(), 1)
	if err != nil {
		t.Fatalf("after the lock was given back: %v", err)
	}
	if again.Checkpoint() != log.Head() {
		t.Errorf("checkpoint %d, want %d", again.Checkpoint(), log.Head())
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestForeignFileIsNoDamage: what a backup tool or a file manager leaves in the
// folder is none of the index's business.
func TestForeignFileIsNoDamage(t *testing.T) {
	dir := t.TempDir()
	log := filled(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "1", "._000000000001.zap"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, log, dir)
	s.feed.Settle()
	if got := s.total(t, "новость"); got != 120 {
		t.Errorf("%d posts found, want 120", got)
	}
}

// stopping is a ledger whose reader is stopped as soon as it reads a text.
type stopping struct {
	*badgerlog.Log
	stop context.CancelFunc
}

func (l stopping) Post(ctx context.Context, num ledger.PostNum) (ledger.Post, error) {
	l.stop()
	return l.Log.Post(context.WithoutCancel(ctx), num)
}

// TestStopInTheMiddleOfABatch: a batch that is being written when vesti stops is
// no reason for alarm, and is not lost.
func TestStopInTheMiddleOfABatch(t *testing.T) {
	t.Parallel()
	log := ledgertest.Open(t)
	if _, err := log.Append(t.Context(), ledgertest.Items("a", 200)); err != nil {
		t.Fatal(err)
	}
	events, err := log.Read(t.Context(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		ctx, stop := context.WithCancel(t.Context())
		logged := &lockedBuffer{}
		index := search.New(search.Options{
			Dir: t.TempDir(), Texts: stopping{log, stop}, Posts: posts.New(log.Store), Logger: slog.New(slog.NewTextHandler(logged, nil)),
		})
		fold, err := index.Open(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := fold.Apply(ctx, events, log.Head()); !errors.Is(err, context.Canceled) {
			t.Errorf("the stopped batch: %v", err)
		}
		if err := fold.Close(); err != nil || logged.String() != "" {
			t.Fatalf("closed with %v\n%s", err, logged)
		}
		again, err := index.Open(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if again.Checkpoint() != log.Head() {
			t.Errorf("the batch is lost: checkpoint %d, want %d", again.Checkpoint(), log.Head())
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// torn is a ledger in which one post cannot be read.
type torn struct {
	*badgerlog.Log
	post ledger.PostNum
}

func (l torn) Post(ctx context.Context, num ledger.PostNum) (ledger.Post, error) {
	if num == l.post {
		return ledger.Post{}, ledger.ErrUnreadable
	}
	return l.Log.Post(ctx, num)
}

// TestUnreadablePostStopsNothing: it is missing from the hits and holds up no
// other.
func TestUnreadablePostStopsNothing(t *testing.T) {
	log := ledgertest.Open(t)
	appended, err := log.Append(t.Context(), ledgertest.Items("a", 3))
	if err != nil {
		t.Fatal(err)
	}
	list := posts.New(log.Store)
	index := search.New(search.Options{Dir: t.TempDir(), Texts: torn{log, appended[1].Post}, Posts: list})
	projectiontest.Start(t, projections.Options{Log: log, Stores: log.Store, Projections: []projections.Projection{list, index}}).Settle()
	for query, want := range map[string]int{"новость": 2, "": 3} {
		r, err := index.Search(t.Context(), search.Request{Query: query})
		if err != nil || r.Total != want || len(r.Hits) != want {
			t.Errorf("%q: %d of %d hits, want %d: %v", query, len(r.Hits), r.Total, want, err)
		}
	}
}
