package ledger_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/ledgertest/cases"
)

// TestPublicCases: when two texts are one.
func TestPublicCases(t *testing.T) {
	cases.Run(t, cases.Ledger, func(t *testing.T, c cases.Case) error {
		var in struct{ A, B string }
		var want struct {
			Dedup      string
			Normalised *string `json:"normalised_text"`
			SHA256     string
		}
		c.Decode(t, c.Input, &in)
		c.Decode(t, c.Expect, &want)
		a, b := ledger.IdentifyText(in.A, "item a"), ledger.IdentifyText(in.B, "item b")
		if same := a == b; same != (want.Dedup == "same") {
			return fmt.Errorf("one post: %v, want %q", same, want.Dedup)
		}
		normalised := ledger.Normalise(in.A)
		if want.Normalised != nil && normalised != *want.Normalised {
			return fmt.Errorf("normalised to %q, want %q", normalised, *want.Normalised)
		}
		sum := sha256.Sum256([]byte(normalised))
		if got := hex.EncodeToString(sum[:]); want.SHA256 != "" && got != want.SHA256 {
			return fmt.Errorf("sha256 %s, want %s", got, want.SHA256)
		}
		return nil
	})
}
