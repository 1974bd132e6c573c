package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
	"time"
)

// row compares vesti with a peer in one work of one class.
type row struct {
	Work   string  `json:"work"` // append1, append50, claim or claim_awaited
	Class  class   `json:"class"`
	Peer   string  `json:"peer"`
	Vesti  float64 `json:"vesti_per_s"`
	Theirs float64 `json:"peer_per_s"`
	Ratio  float64 `json:"ratio"`

	mode   string
	spread [2]float64 // the least and the greatest ratio of a round
}

// goal names a target: the least ratio that vesti is to reach.
type goal struct {
	work  string
	class class
	peer  string
	mode  string // "" for any
}

// goals are the targets that the engine was built against.
func goals() map[goal]float64 {
	return map[goal]float64{
		{"append1", classD, "sqlite-go", ""}:          1.5,
		{"append1", classD, "asynq", ""}:              0.6,
		{"append1", classP, "sqlite-go", ""}:          5,
		{"append1", classP, "asynq", ""}:              2.5,
		{"append50", classD, "sqlite-go", ""}:         2.5,
		{"append50", classD, "river", ""}:             3,
		{"append50", classP, "sqlite-go", ""}:         2,
		{"append50", classP, "river", ""}:             6,
		{"claim", classD, "sqlite-go", ""}:            40,
		{"claim", classD, "sqlite-py", ""}:            50,
		{"claim", classD, "river", ""}:                8,
		{"claim", classD, "asynq", ""}:                50,
		{"claim", classD, "jetstream", ""}:            25,
		{"claim", classP, "sqlite-go", ""}:            10,
		{"claim", classP, "sqlite-py", ""}:            12,
		{"claim", classP, "river", ""}:                10,
		{"claim", classP, "asynq", ""}:                15,
		{"claim", classP, "jetstream", "per message"}: 3,
		{"claim", classP, "jetstream", "batched"}:     1.5,
		{"claim_awaited", classD, "sqlite-go", ""}:    3,
		{"claim_awaited", classD, "sqlite-py", ""}:    5,
	}
}

func target(r row) (float64, bool) {
	all := goals()
	for _, mode := range []string{r.mode, ""} {
		if t, ok := all[goal{r.Work, r.Class, r.Peer, mode}]; ok {
			return t, true
		}
	}
	return 0, false
}

// rows compares what has been measured, each way in which a peer works its
// queue on its own.
func (c *contest) rows() []row {
	var rows []row
	for _, cl := range []class{classD, classP} {
		for _, work := range []string{"append1", "append50"} {
			for _, peer := range c.contestants {
				rows = c.compare(rows, work, measure{vesti, cl, work, ""}, measure{peer.name, cl, work, ""})
			}
		}
		for _, work := range []string{"claim", "claim_awaited"} {
			for _, peer := range c.contestants {
				for _, m := range peer.modes {
					if m.both || m.awaited == (work == "claim_awaited") {
						rows = c.compare(rows, work, measure{vesti, cl, "claim", vestiMode(work)}, measure{peer.name, cl, "claim", m.name})
					}
				}
			}
		}
	}
	return rows
}

func vestiMode(work string) string {
	if work == "claim_awaited" {
		return "awaited"
	}
	return "not awaited"
}

func (c *contest) compare(rows []row, work string, ours, theirs measure) []row {
	a, b := c.rates[ours], c.rates[theirs]
	n := min(len(a), len(b))
	if n == 0 || theirs.contestant == vesti {
		return rows
	}
	a, b = a[:n], b[:n] // a run that was cut short may lack the last
	r := row{Work: work, Class: theirs.class, Peer: theirs.contestant, Vesti: median(a), Theirs: median(b), mode: theirs.mode}
	r.Ratio = r.Vesti / r.Theirs
	ratios := make([]float64, n)
	for i := range n {
		ratios[i] = a[i] / b[i]
	}
	r.spread = [2]float64{slices.Min(ratios), slices.Max(ratios)}
	return append(rows, r)
}

// best keeps of each peer's ways to do a work the fastest.
func best(rows []row) []row {
	var kept []row
	for _, r := range rows {
		i := slices.IndexFunc(kept, func(k row) bool { return k.Work == r.Work && k.Class == r.Class && k.Peer == r.Peer })
		switch {
		case i < 0:
			kept = append(kept, r)
		case r.Theirs > kept[i].Theirs:
			kept[i] = r
		}
	}
	return kept
}

// judged reports whether a row's ratio is held against its target: where the
// target is not that of a mode, the peer is taken at its best.
func judged(r row, fastest []row) bool {
	if _, ok := goals()[goal{r.Work, r.Class, r.Peer, r.mode}]; ok && r.mode != "" {
		return true
	}
	return slices.Contains(fastest, r)
}

// printTable writes the rows, class by class, with the targets.
func printTable(w io.Writer, rows []row) error {
	fastest := best(rows)
	titles := map[class]string{
		classD: "Class D: synced before it is acknowledged",
		classP: "Class P: survives the death of the process, not a power cut",
	}
	for _, cl := range []class{classD, classP} {
		fmt.Fprintf(w, "\n%s\n", titles[cl])
		t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
		fmt.Fprintln(t, "work\tpeer\tmode\tvesti/s\tpeer/s\tratio\trounds\ttarget\t")
		for _, r := range rows {
			if r.Class != cl {
				continue
			}
			verdict := ""
			if least, ok := target(r); ok && judged(r, fastest) {
				verdict = fmt.Sprintf("≥ %gx\tmet", least)
				if r.Ratio < least {
					verdict = fmt.Sprintf("≥ %gx\tMISSED", least)
				}
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%.0f\t%.0f\t%.2fx\t%.2f–%.2f\t%s\n",
				r.Work, r.Peer, r.mode, r.Vesti, r.Theirs, r.Ratio, r.spread[0], r.spread[1], verdict)
		}
		if err := t.Flush(); err != nil {
			return fmt.Errorf("print the table: %w", err)
		}
	}
	return nil
}

// writeJSON writes one row for each peer, work and class: the peer at its best.
func writeJSON(name string, rows []row) error {
	b, err := json.MarshalIndent(best(rows), "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := os.WriteFile(name, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

// median of an even number of values is the mean of the middle two.
func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
