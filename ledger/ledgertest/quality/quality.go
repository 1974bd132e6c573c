// Package quality is how tests that measure rather than judge report what they
// measured: "make quality" runs each TestQuality and gathers the numbers of all
// packages in one file.
package quality

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"syscall"
	"testing"
)

// Wanted skips the test unless measurements were asked for: by VESTI_QUALITY=1,
// or by naming the file of VESTI_QUALITY_JSON.
func Wanted(t testing.TB) {
	t.Helper()
	if os.Getenv("VESTI_QUALITY") == "" && os.Getenv("VESTI_QUALITY_JSON") == "" {
		t.Skip("a measurement: set VESTI_QUALITY=1, or run make quality")
	}
}

// Report prints the values by name and, where VESTI_QUALITY_JSON names a file,
// merges them into the one flat JSON object in it, with six decimals. Packages
// are tested by processes of their own: a lock on the file keeps them apart.
func Report(t testing.TB, values map[string]float64) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		t.Logf("%-50s %.4f", name, values[name])
	}
	path := os.Getenv("VESTI_QUALITY_JSON")
	if path == "" {
		return
	}
	if err := merge(path, values); err != nil {
		t.Errorf("report quality: %v", err)
	}
}

func merge(path string, values map[string]float64) (err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }() // gives the lock back
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	old, err := io.ReadAll(f)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	all := map[string]float64{}
	if len(old) > 0 {
		if err := json.Unmarshal(old, &all); err != nil {
			return fmt.Errorf("%s: want one flat object of numbers: %w", path, err)
		}
	}
	for name, v := range values {
		all[name] = math.Round(v*1e6) / 1e6
	}
	out, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	if err := f.Truncate(0); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if _, err := f.WriteAt(append(out, '\n'), 0); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
