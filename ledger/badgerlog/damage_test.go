package badgerlog_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
	"vesti.nixg.ru/ledger/ledgertest"
)

// crashDamage set: the child opens a damaged store, uses it, says what it found
// as JSON, and ends.
const crashDamage = "VESTI_CRASH_DAMAGE"

// damageFound is what the child says. The counts are of texts that were there
// before the damage.
type damageFound struct {
	Refused  string // what Open said
	Problems []string
	Lost     int // read as empty, or not at all
	Wrong    int
	After    int // lost once the store was written to, and its garbage collected
}

const damagePosts = 1500

func damageOptions(dir string) badgerlog.Options {
	o := crashOptions(dir)
	o.ValueLogFile = 1 << 20
	return o
}

// damageItem has a text that compression does not make small, so that it stands
// in a file of values.
func damageItem(n int) ledger.Item {
	b := make([]byte, 1500)
	rng := rand.NewChaCha8([32]byte{byte(n), byte(n >> 8)})
	_, _ = rng.Read(b)
	i := ledgertest.Item("a", fmt.Sprint(n))
	i.Text = base64.StdEncoding.EncodeToString(b)
	return i
}

// damages are what becomes of a file.
func damages() map[string]func(rng *rand.Rand, b []byte) []byte {
	spoil := func(n int) func(*rand.Rand, []byte) []byte {
		return func(rng *rand.Rand, b []byte) []byte {
			b = slices.Clone(b)
			at := rng.IntN(len(b))
			for i := at; i < min(at+n, len(b)); i++ {
				b[i] ^= byte(1 + rng.IntN(255))
			}
			return b
		}
	}
	return map[string]func(*rand.Rand, []byte) []byte{
		"a byte":   spoil(1),
		"64 bytes": spoil(64),
		"a page":   spoil(4096),
		"a page of zeros": func(rng *rand.Rand, b []byte) []byte {
			b = slices.Clone(b)
			at := rng.IntN(len(b)) &^ 4095
			clear(b[at:min(at+4096, len(b))])
			return b
		},
		"cut":  func(rng *rand.Rand, b []byte) []byte { return b[:rng.IntN(len(b))] },
		"gone": func(*rand.Rand, []byte) []byte { return nil },
	}
}

// TestDamage spoils a closed store's files, as failing disks and careless hands
// do, and uses the store in a process of its own. That process ends by itself
// and in good order; what is in use and damaged is named by Verify, or the store
// is refused, and then nothing was touched: with the file as it was all is well
// again. Of texts only those that were hit are lost, also once garbage was
// collected.
func TestDamage(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	l, err := badgerlog.Open(t.Context(), damageOptions(base))
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < damagePosts; n += 100 {
		var items []ledger.Item
		for i := range 100 {
			items = append(items, damageItem(n+i))
		}
		if _, err := l.Append(t.Context(), items); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil { // now they are in tables
		t.Fatal(err)
	}
	if l, err = badgerlog.Open(t.Context(), damageOptions(base)); err != nil {
		t.Fatal(err)
	}
	for range damagePosts / 2 {
		c, err := l.Claim(t.Context(), ledger.ClaimRequest{})
		if err == nil {
			err = l.CompleteLater(t.Context(), c, ledgertest.Decision("linux"), func(error) {})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Append(t.Context(), ledgertest.Items("c", 1)); err != nil { // waits for those before it
		t.Fatal(err)
	}
	killed := readFolder(t, base)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	closed := readFolder(t, base)
	for _, kind := range []string{".vlog", ".sst", "MANIFEST", "KEYREGISTRY", "DISCARD", "killed MANIFEST", "killed .mem"} {
		whole := closed
		kind, isKilled := strings.CutPrefix(kind, "killed ")
		if isKilled {
			whole = killed
		}
		for _, how := range slices.Sorted(maps.Keys(damages())) {
			for round := range rounds(t, 1) {
				damageRound(t, whole, kind, how, round)
			}
		}
	}
}

func damageRound(t *testing.T, whole map[string][]byte, kind, how string, round int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(uint64(round), uint64(len(how)+len(kind))))
	var files []string
	for name := range whole {
		if strings.HasSuffix(name, kind) {
			files = append(files, name)
		}
	}
	slices.Sort(files)
	name := files[rng.IntN(len(files))]
	was := whole[name]
	switch kind { // the rest is not in use
	case "DISCARD":
		was = was[:4096]
	case ".mem":
		was = bytes.TrimRight(was, "\x00")
	}
	damaged := maps.Clone(whole)
	if damaged[name] = damages()[how](rng, was); damaged[name] == nil {
		delete(damaged, name)
	}
	what := fmt.Sprintf("%s of %s, round %d", how, name, round)
	dir := t.TempDir()
	writeFolder(t, dir, damaged)
	found, ok := useDamaged(t, dir, what)
	if !ok {
		return
	}
	t.Logf("%s: lost %d and %d, %.100q %q", what, found.Lost, found.After, found.Problems, found.Refused)
	if found.Refused != "" {
		if !strings.Contains(found.Refused, dir) {
			t.Errorf("%s: the refusal does not name the store: %s", what, found.Refused)
		}
		if err := os.WriteFile(filepath.Join(dir, name), was, 0o600); err != nil {
			t.Fatal(err)
		}
		if found, ok := useDamaged(t, dir, what); ok && (found.Refused != "" || found.Lost > 0 || len(found.Problems) > 0) {
			t.Errorf("%s: refused, and with the file as it was: %+v", what, found)
		}
		return
	}
	if found.Lost > 0 && len(found.Problems) == 0 {
		t.Errorf("%s: %d texts are lost and nobody says so", what, found.Lost)
	}
	if found.Wrong > 0 || found.After > found.Lost {
		t.Errorf("%s: %+v", what, found)
	}
	if spoilt := different(damaged[name], was); spoilt >= 0 && found.Lost > spoilt/1000+2 {
		t.Errorf("%s: %d bytes were spoilt, %d texts are lost", what, spoilt, found.Lost)
	}
}

// different counts the bytes from the first to the last in which a and b
// differ, -1 where they are not of a length.
func different(a, b []byte) int {
	if len(a) != len(b) {
		return -1
	}
	first, last := len(a), 0
	for i := range a {
		if a[i] != b[i] {
			first, last = min(first, i), i+1
		}
	}
	return max(last-first, 0)
}

func writeFolder(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func useDamaged(t *testing.T, dir, what string) (damageFound, bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), crashDir+"="+dir, crashDamage+"=1")
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	var found damageFound
	if err := cmd.Run(); err != nil {
		t.Errorf("%s: the process did not end in good order: %v\n%.3000s", what, err, stderr.String())
		return found, false
	}
	if err := json.Unmarshal(out.Bytes(), &found); err != nil {
		t.Errorf("%s: %v: %s", what, err, out.String())
		return found, false
	}
	return found, true
}

// damageChild uses a damaged store.
func damageChild(dir string) error {
	ctx := context.Background()
	var found damageFound
	l, err := badgerlog.Open(ctx, damageOptions(dir))
	if err != nil {
		found.Refused = err.Error()
		return json.NewEncoder(os.Stdout).Encode(found)
	}
	r, err := l.Verify(ctx, badgerlog.VerifyOptions{})
	if err != nil {
		return errors.Join(err, l.Close())
	}
	for _, p := range r.Found {
		found.Problems = append(found.Problems, p.String())
	}
	found.Lost, found.Wrong = lostTexts(ctx, l)
	if err := workOn(ctx, l); err != nil {
		return errors.Join(err, l.Close())
	}
	found.After, _ = lostTexts(ctx, l)
	return errors.Join(json.NewEncoder(os.Stdout).Encode(found), l.Close())
}

// workOn classifies all posts, which makes garbage, appends, and collects the garbage.
func workOn(ctx context.Context, l *badgerlog.Log) error {
	for {
		c, err := l.Claim(ctx, ledger.ClaimRequest{NoWait: true})
		if errors.Is(err, ledger.ErrQueueEmpty) {
			break
		}
		if err == nil {
			err = l.CompleteLater(ctx, c, ledgertest.Decision("linux"), func(error) {})
		}
		if err != nil {
			return err
		}
	}
	if _, err := l.Append(ctx, ledgertest.Items("b", 500)); err != nil {
		return err
	}
	_, err := l.Compact(ctx)
	return err
}

func lostTexts(ctx context.Context, l *badgerlog.Log) (lost, wrong int) {
	texts := make(map[ledger.ItemKey]string)
	for after := ledger.Seq(0); ; {
		events, err := l.ReadTexts(ctx, after, 500)
		if err != nil || len(events) == 0 {
			break
		}
		for _, e := range events {
			after = e.Seq
			if p, ok := e.Payload.(ledger.PostFetched); ok {
				texts[p.Item.Key] = p.Item.Text
			}
		}
	}
	for n := range damagePosts {
		want := damageItem(n)
		switch got, ok := texts[want.Key]; {
		case !ok || got == "":
			lost++
		case got != want.Text:
			wrong++
		}
	}
	return lost, wrong
}
