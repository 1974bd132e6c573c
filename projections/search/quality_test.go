package search_test

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"vesti.nixg.ru/ledger/ledgertest/cases"
	"vesti.nixg.ru/ledger/ledgertest/quality"
	"vesti.nixg.ru/projections/search"
)

// TestQuality measures how well the first ten hits answer real questions, typed
// as they stand. It takes a minute and runs on request.
func TestQuality(t *testing.T) {
	quality.Wanted(t)
	root := cases.Corpora(t, "search")
	d := open(t)
	d.addAll(t, readDocs(t, filepath.Join(root, "xquad/docs.ru.jsonl")))
	d.addAll(t, readDocs(t, filepath.Join(root, "xquad/docs.en.jsonl")))
	d.addAll(t, distractors(t))
	for _, set := range []string{"xquad_ru", "xquad_en"} {
		d.measure(t, root, set)
	}
	c := open(t)
	c.addAll(t, readDocs(t, filepath.Join(root, "cranfield/docs.jsonl")))
	c.measure(t, root, "cranfield")
}

func (d *desk) measure(t *testing.T, root, set string) {
	t.Helper()
	judged := readQrels(t, filepath.Join(root, "queries", set+"_qrels.tsv"))
	var ndcg, mrr float64
	n := 0
	for _, q := range readDocs(t, filepath.Join(root, "queries", set+"_queries.jsonl")) {
		grades := judged[q.ID]
		if len(grades) == 0 {
			continue
		}
		r, err := d.search.Search(t.Context(), search.Request{Query: q.Text, Limit: 10})
		if err != nil {
			t.Fatalf("%q: %v", q.Text, err)
		}
		a, b := score(d.named(r), grades)
		ndcg += a
		mrr += b
		n++
	}
	quality.Report(t, map[string]float64{
		"search." + set + ".ndcg10": ndcg / float64(n),
		"search." + set + ".mrr10":  mrr / float64(n),
	})
}

// score returns nDCG and the reciprocal rank of the first good hit among ten.
func score(hits []string, gains map[string]float64) (ndcg, mrr float64) {
	var got, best float64
	for i, id := range hits {
		g := gains[id]
		if g > 0 && mrr == 0 {
			mrr = 1 / float64(i+1)
		}
		got += (math.Exp2(g) - 1) / math.Log2(float64(i+2))
	}
	var ideal []float64
	for _, g := range gains {
		ideal = append(ideal, g)
	}
	slices.Sort(ideal)
	slices.Reverse(ideal)
	for i, g := range ideal[:min(10, len(ideal))] {
		best += (math.Exp2(g) - 1) / math.Log2(float64(i+2))
	}
	if best == 0 {
		return 0, mrr
	}
	return got / best, mrr
}

func readDocs(t *testing.T, path string) []doc {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var docs []doc
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		var d doc
		if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
			t.Fatal(err)
		}
		docs = append(docs, d)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return docs
}

// distractors are posts that answer none of the questions.
func distractors(t *testing.T) []doc {
	t.Helper()
	var all []doc
	for _, name := range []string{"telegram_ru", "agnews_en", "bbc_en"} {
		for i, d := range readDocs(t, filepath.Join(cases.Corpora(t, "classify"), name+".jsonl")) {
			d.ID = name + strconv.Itoa(i)
			all = append(all, d)
		}
	}
	return all
}

// readQrels reads TREC lines. Cranfield grades 1 as the best and 4 as the least;
// the others have 1 alone.
func readQrels(t *testing.T, path string) map[string]map[string]float64 {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	judged := map[string]map[string]float64{}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) != 4 {
			continue
		}
		grade, err := strconv.Atoi(f[3])
		if err != nil {
			t.Fatal(err)
		}
		if grade < 1 {
			continue
		}
		if judged[f[0]] == nil {
			judged[f[0]] = map[string]float64{}
		}
		judged[f[0]][f[2]] = float64(5-grade) / 4
	}
	return judged
}

// addAll appends documents in batches.
func (d *desk) addAll(t *testing.T, docs []doc) {
	t.Helper()
	const batch = 500
	for part := range slices.Chunk(docs, batch) {
		d.append(t, part...)
	}
	d.settle(t)
}
