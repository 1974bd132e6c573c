package quality_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"vesti.nixg.ru/ledger/ledgertest/quality"
)

func TestReportMerges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "quality.json")
	t.Setenv("VESTI_QUALITY_JSON", path)
	var reports sync.WaitGroup
	for i := range 20 {
		reports.Go(func() {
			quality.Report(t, map[string]float64{fmt.Sprintf("set%d.f1", i): 1.0 / 3, "shared": 1})
		})
	}
	reports.Wait()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]float64
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	if len(got) != 21 || got["set7.f1"] != 0.333333 {
		t.Errorf("got %v", got)
	}
}
