package httpui_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"vesti.nixg.ru/ledger"
)

// call asks the JSON API as the editor's browser would and decodes the answer.
func (d *desk) call(method, path, body string, status int) map[string]any {
	d.t.Helper()
	res, text := d.send(d.client, method, path, strings.NewReader(body), "Content-Type", "application/json")
	if res.StatusCode != status {
		d.t.Fatalf("%s %s: %s %s, want %d", method, path, res.Status, text, status)
	}
	if kind := res.Header.Get("Content-Type"); kind != "application/json; charset=utf-8" {
		d.t.Errorf("%s %s: Content-Type %q", method, path, kind)
	}
	var answer map[string]any
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		d.t.Fatalf("%s %s: %v in %s", method, path, err, text)
	}
	return answer
}

func TestAPI(t *testing.T) {
	d := newDesk(t, demoSources())
	d.fill()
	queue := d.call(http.MethodGet, "/api/v1/queue", "", http.StatusOK)
	want := map[string]any{
		"pending": 2., "processing": 0., "waiting": 0., "parked": 0., "classified": 7., "done_today": 7., "oldest_pending_s": 240.,
	}
	if !reflect.DeepEqual(queue, want) {
		t.Errorf("queue %v, want %v", queue, want)
	}

	list, _ := d.call(http.MethodGet, "/api/v1/sources", "", http.StatusOK)["sources"].([]any)
	if len(list) != 10 {
		t.Errorf("%d sources, want 10", len(list))
	}
	broken := d.call(http.MethodGet, "/api/v1/sources/broken", "", http.StatusOK)
	runs, _ := broken["runs"].([]any)
	if broken["status"] != "dead" || broken["error_count"] != 7. || broken["last_cause"] != "http" || broken["last_ok"] != nil || len(runs) != 7 {
		t.Errorf("source %v", broken)
	}
	d.call(http.MethodGet, "/api/v1/sources/nobody", "", http.StatusNotFound)

	found := d.call(http.MethodGet, "/api/v1/search?"+url.Values{"q": {"ядро планировщик"}, "limit": {"1"}}.Encode(), "", http.StatusOK)
	hits, _ := found["hits"].([]any)
	if found["total"] != 1. || len(hits) != 1 {
		t.Fatalf("found %v", found)
	}
	hit, _ := hits[0].(map[string]any)
	for field, value := range map[string]any{
		"source": "opennet", "direction": "linux", "lang": "ru", "status": "classified", "verdict": "", "title": "Выпуск ядра Linux 6.20 с новым планировщиком",
		"url": "https://opennet.example.org/2026/03/b?utm_source=rss", "published": "2026-03-02T05:04:00Z",
	} {
		if hit[field] != value {
			t.Errorf("hit's %s is %v, want %v", field, hit[field], value)
		}
	}
	if total := d.call(http.MethodGet, "/api/v1/search?limit=0", "", http.StatusOK)["total"]; total != 9. {
		t.Errorf("everything is %v posts, want 9", total)
	}

	if notes, _ := found["notes"].([]any); notes == nil || len(notes) != 0 {
		t.Errorf("notes on a query that was followed: %v", found["notes"])
	}
	vague := d.call(http.MethodGet, "/api/v1/search?"+url.Values{"q": {"status:zzz before:junk"}}.Encode(), "", http.StatusOK)
	if said := fmt.Sprint(vague["notes"]); !strings.Contains(said, "status:zzz") || !strings.Contains(said, "before:junk") {
		t.Errorf("notes on values that there are not: %s", said)
	}

	id, _ := hit["id"].(string)
	post := d.call(http.MethodGet, "/api/v1/posts/"+id, "", http.StatusOK)
	decision, _ := post["decision"].(map[string]any)
	if post["id"] != id || decision["stage"] != "llm" || len(decision["reasons"].([]any)) != 3 || !strings.Contains(post["text"].(string), "\n\n") {
		t.Errorf("post %v", post)
	}
	d.call(http.MethodPost, "/api/v1/posts/"+id+"/review", `{"verdict":"picked","direction":"tech","note":"n"}`, http.StatusOK)
	post = d.call(http.MethodGet, "/api/v1/posts/"+id, "", http.StatusOK)
	if post["verdict"] != "picked" || post["direction"] != "tech" || post["corrected"] != true {
		t.Errorf("reviewed post %v", post)
	}
	d.call(http.MethodPost, "/api/v1/posts/"+id+"/review", `{}`, http.StatusOK)
	if post = d.call(http.MethodGet, "/api/v1/posts/"+id, "", http.StatusOK); post["verdict"] != "" || post["direction"] != "linux" {
		t.Errorf("taken back: %v", post)
	}
	for body, status := range map[string]int{
		`{"verdict":"adored"}`: http.StatusBadRequest, `{"direction":"gardening"}`: http.StatusBadRequest, `{"verdikt":"picked"}`: http.StatusBadRequest,
		`{`: http.StatusBadRequest, `[]`: http.StatusBadRequest, `{"note":"` + strings.Repeat("x", 1<<20) + `"}`: http.StatusRequestEntityTooLarge,
	} {
		d.call(http.MethodPost, "/api/v1/posts/"+id+"/review", body, status)
	}
	d.call(http.MethodPost, "/api/v1/posts/"+id+"/requeue", "", http.StatusOK)
	if claim := d.claim(); claim.Lane != ledger.LaneEditor {
		t.Errorf("claimed %+v", claim)
	}
	d.call(http.MethodPost, "/api/v1/posts/ffffffff/requeue", "", http.StatusNotFound)

	d.call(http.MethodPost, "/api/v1/crawl", `{"sources":["lwn","tensor"]}`, http.StatusOK)
	d.call(http.MethodPost, "/api/v1/crawl", `{"sources":["nobody"]}`, http.StatusNotFound)
	d.call(http.MethodPost, "/api/v1/work", "", http.StatusOK)
	if got := d.call(http.MethodPost, "/api/v1/reset", "", http.StatusOK); got["reset"] != 1. {
		t.Errorf("reset %v", got)
	}
	if got, want := d.commands(), []string{"crawl lwn tensor", "work", "reset"}; !reflect.DeepEqual(got, want) {
		t.Errorf("asked for %q, want %q", got, want)
	}
	if res, text := d.postAs(d.client, "/api/v1/crawl", url.Values{"sources": {"lwn"}}); res.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("a form to the API: %s %s", res.Status, text)
	}
	if got := d.call(http.MethodGet, "/api/v1/nowhere", "", http.StatusNotFound); got["status"] != 404. {
		t.Errorf("error %v", got)
	}
}
