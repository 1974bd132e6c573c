package badgerlog_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
)

// TestLostPower makes folders as a power cut could leave them. It stops a
// working process, copies its files, lets it run on for some milliseconds and
// copies them again. What the process had acknowledged before the first copy was
// synced, so it is in both; of what was written in between, any page of 4 KiB
// may be on the disk or not. The engine's files have an order that syncs keep: a
// text is synced before the entry that leads to it. So either the files of
// texts are torn and the log's ends at the first copy, or those are whole and
// the log is torn. Rounds in which tables were written in between are taken as
// they are: those syncs are Badger's affair. It does not show whether the disk
// obeys a sync.
func TestLostPower(t *testing.T) {
	t.Parallel()
	if os.Getenv(crashClass) == "relaxed" {
		t.Skip("a relaxed store may lose what it acknowledged")
	}
	torn := 0
	for round := range rounds(t, 6) {
		if powerRound(t, round) {
			torn++
		}
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	t.Logf("%d torn folders", torn)
}

func powerRound(t *testing.T, round int) bool {
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), crashDir+"="+dir, crashSeed+"="+strconv.Itoa(round), crashCalm+"=1")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	var told bytes.Buffer
	drained := make(chan struct{})
	stop := make(chan struct{})
	go func() { // what arrives until the first copy is what was acknowledged before it
		defer close(drained)
		buf := make([]byte, 1<<16)
		for {
			n, err := r.Read(buf)
			select {
			case <-stop:
				if err != nil {
					return
				}
				continue
			default:
			}
			told.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	time.Sleep(time.Duration(100+rand.IntN(400)) * time.Millisecond)
	signal(t, cmd, syscall.SIGSTOP)
	time.Sleep(20 * time.Millisecond) // the pipe runs empty
	close(stop)
	first := readFolder(t, dir)
	signal(t, cmd, syscall.SIGCONT)
	time.Sleep(time.Duration(rand.IntN(15)) * time.Millisecond)
	signal(t, cmd, syscall.SIGSTOP)
	second := readFolder(t, dir)
	signal(t, cmd, syscall.SIGKILL)
	_ = cmd.Wait()
	<-drained

	image, torn := tear(first, second, rand.IntN(2) == 0)
	after := t.TempDir()
	for name, b := range image {
		if err := os.WriteFile(filepath.Join(after, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	seen := acks{posts: make(map[ledger.PostNum]string), classified: make(map[ledger.PostNum]bool)}
	if err := seen.read(&told, func() {}); err != nil {
		t.Fatal(err)
	}
	// More is torn than a power cut can tear: what one sync after another has written
	// since the first copy. The store takes that for a damaged disk, and says so.
	o := crashOptions(after)
	o.AcceptLoss = true
	l, err := badgerlog.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	checkAfterKill(t, after, &seen)
	drain(t, after, &seen)
	return torn
}

func signal(t *testing.T, cmd *exec.Cmd, s syscall.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func readFolder(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string][]byte)
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = b
	}
	return files
}

// tear mixes two copies of a folder, see TestLostPower.
func tear(first, second map[string][]byte, tearTexts bool) (image map[string][]byte, torn bool) {
	for name, b := range second {
		ext := filepath.Ext(name)
		old, ok := first[name]
		if !ok || len(old) != len(b) || ext != ".mem" && ext != ".vlog" && !bytes.Equal(old, b) {
			return second, false
		}
	}
	if len(first) != len(second) {
		return second, false
	}
	image = make(map[string][]byte)
	for name, b := range second {
		switch filepath.Ext(name) {
		case ".vlog":
			image[name] = b
			if tearTexts {
				image[name] = tearPages(first[name], b)
			}
		case ".mem":
			image[name] = first[name]
			if !tearTexts {
				image[name] = tearPages(first[name], b)
			}
		default:
			image[name] = b
		}
		torn = torn || !bytes.Equal(image[name], b)
	}
	return image, torn
}

const pageSize = 4096

func tearPages(old, b []byte) []byte {
	b = slices.Clone(b)
	for at := 0; at < len(b); at += pageSize {
		end := min(at+pageSize, len(b))
		if rand.IntN(2) == 0 {
			copy(b[at:end], old[at:end])
		}
	}
	return b
}
