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
	d.call(http.MethodPost, "/api/v1/posts/"+id+"/review", `{"verdict":"","direction":""}`, http.StatusOK)
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
	if got := d.call(http.MethodPost, "/api/v1/reset", `{"all":true}`, http.StatusOK); got["reset"] != 1. {
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

// What a review does not name stays as it was: a program that adds a note takes
// no decision back.
func TestReviewKeepsWhatItDoesNotName(t *testing.T) {
	d := newDesk(t, demoSources())
	d.fill()
	found := d.call(http.MethodGet, "/api/v1/search?q=ядро+планировщик", "", http.StatusOK)
	hit, _ := found["hits"].([]any)[0].(map[string]any)
	path := "/api/v1/posts/" + hit["id"].(string)
	d.call(http.MethodPost, path+"/review", `{"verdict":"picked","direction":"tech","note":"first"}`, http.StatusOK)

	word := func() [3]string {
		t.Helper()
		post := d.call(http.MethodGet, path, "", http.StatusOK)
		page := d.get(path[len("/api/v1"):])
		note := ""
		for _, n := range []string{"first", "second"} {
			if strings.Contains(page, ">"+n+"</textarea>") {
				note = n
			}
		}
		return [3]string{post["verdict"].(string), post["direction"].(string), note}
	}
	for _, body := range []string{
		"", `{}`, `null`, " null ", `{"verdict":null}`, `{"verdict":""} {}`, `{"verdict":""}x`, `{"verdict":"","direction":""}]`,
		`{"note":"` + strings.Repeat("ж", 1001) + `"}`,
	} {
		d.call(http.MethodPost, path+"/review", body, http.StatusBadRequest)
		if got, want := word(), [3]string{"picked", "tech", "first"}; got != want {
			t.Fatalf("after %.40q: %q, want %q", body, got, want)
		}
	}
	for _, step := range []struct {
		body string
		want [3]string
	}{
		{`{"note":"second"}`, [3]string{"picked", "tech", "second"}},
		{`{"direction":"llm"}`, [3]string{"picked", "llm", "second"}},
		{`{"verdict":"rejected"}`, [3]string{"rejected", "llm", "second"}},
		{`{"verdict":""}`, [3]string{"", "llm", "second"}},
		{`{"direction":"","verdict":"picked"}`, [3]string{"picked", "linux", "second"}},
		{`{"note":""}`, [3]string{"picked", "linux", ""}},
		{`{"note":"` + strings.Repeat("ж", 1000) + `"}`, [3]string{"picked", "linux", ""}},
	} {
		d.call(http.MethodPost, path+"/review", step.body, http.StatusOK)
		if got := word(); got != step.want {
			t.Errorf("after %.40s: %q, want %q", step.body, got, step.want)
		}
	}
}

func TestActionsWantTheirTargetsNamed(t *testing.T) {
	d := newDesk(t, demoSources())
	d.fill()
	for _, action := range []string{"crawl", "reset"} {
		for _, body := range []string{"", `{}`, `null`, `{"sources":[]}`, `{"sources":null}`, `{"all":false}`, `{"all":true,"sources":["lwn"]}`, `{"all":true}{}`} {
			if got := d.call(http.MethodPost, "/api/v1/"+action, body, http.StatusBadRequest); !strings.Contains(fmt.Sprint(got["detail"]), " ") {
				t.Errorf("%s of %s: %v", action, body, got)
			}
		}
	}
	for _, body := range []string{`{"sources":["lwn"]}`, `[]`, `{}{}`} {
		d.call(http.MethodPost, "/api/v1/work", body, http.StatusBadRequest)
	}
	if got := d.commands(); len(got) != 0 {
		t.Errorf("refused calls did %q", got)
	}
	d.call(http.MethodPost, "/api/v1/work", `{}`, http.StatusOK)
	d.call(http.MethodPost, "/api/v1/crawl", `{"all":true}`, http.StatusOK)
}

// A program is told which parameter it got wrong and what would be right; a page
// shows more instead.
func TestSearchRefusesWhatItDoesNotUnderstand(t *testing.T) {
	d := newDesk(t, demoSources())
	d.fill()
	for query, said := range map[string]string{
		"limit=abc": "200", "limit=-1": "200", "limit=100000": "200", "offset=x": "6000", "offset=6001": "6000", "since=foo": "2026-11-30",
		"until=2026-02-30": "2026-11-30", "sort=foo": "relevance", "tab=foo": "picked", "status=foo": "parked", "direction=foo": "linux",
		"source=nobody": "slug", "source=%00": "slug", "lang=zzzz": "ru", "limt=5": "limit", "sort=date&sort=interest": "more than once",
	} {
		got := d.call(http.MethodGet, "/api/v1/search?"+query, "", http.StatusBadRequest)
		name, _, _ := strings.Cut(query, "=")
		if detail := fmt.Sprint(got["detail"]); !strings.HasPrefix(detail, name+": ") || !strings.Contains(detail, said) {
			t.Errorf("%s: %v", query, got)
		}
		d.get("/?" + query)
	}
	for _, query := range []string{
		"limit=", "sort=interest", "tab=open", "status=parked", "direction=-", "direction=linux", "lang=-", "lang=ru", "source=lwn", "since=2026-01-31",
		"q=ядро&offset=6000", "limit=200",
	} {
		d.call(http.MethodGet, "/api/v1/search?"+query, "", http.StatusOK)
	}
}
