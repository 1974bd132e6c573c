package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A language model's server that is away when vesti starts, and for as long as
// it is: the page and the metrics say so, posts that need it wait and lose no
// attempt, and all goes on by itself when it is back.
func TestModelAway(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	listener.Close() // nobody is there
	d := newDesk(t)
	d.env = append(d.env, "VESTI_LLM_KIND=ollama", "VESTI_LLM_MODEL=tiny", "VESTI_LLM_URL=http://"+addr, "VESTI_WORK_SETTLE_KEYWORDS=1", "VESTI_WORK_LEARNED=false")
	d.sources(oneSource(staticFeed(t, 12).URL))
	s := d.serve()
	s.login()
	eventually(t, "the pause is shown", func() error {
		page := s.page("/crawlers")
		if n := s.metric("vesti_classify_paused"); n != 1 || !strings.Contains(page, "The language model is away") || !strings.Contains(page, "cannot be reached") {
			return fmt.Errorf("vesti_classify_paused %v", n)
		}
		var st statusResult
		if d.json(exitDone, &st, "status"); st.Queue.Pending != 12 || st.Queue.Parked != 0 || st.Queue.DoneToday != 0 {
			return fmt.Errorf("queue %+v", st.Queue)
		}
		return nil
	})
	var found searchResult
	eventually(t, "the guess is shown meanwhile", func() error {
		if d.json(exitDone, &found, "search", "kernel", "--direction", "linux"); found.Total != 12 {
			return fmt.Errorf("%d posts", found.Total)
		}
		return nil
	})
	startModel(t, addr)
	eventually(t, "all posts are judged", func() error {
		var st statusResult
		d.json(exitDone, &st, "status")
		if n := s.metric("vesti_classify_paused"); n != 0 || st.Queue.DoneToday != 12 {
			return fmt.Errorf("vesti_classify_paused %v, queue %+v", n, st.Queue)
		}
		return nil
	})
	for series, want := range map[string]float64{
		`vesti_classify_settled_total{by="llm"}`: 12, `vesti_classify_settled_total{by="keyword"}`: 0, "vesti_classify_handed_on_total": 12,
		`vesti_classify_duration_seconds_count{stage="keyword"}`: 24, `vesti_classify_duration_seconds_count{stage="learned"}`: 0,
		`vesti_classify_duration_seconds_count{stage="llm"}`: 12, `vesti_classify_failures_total{cause="unavailable",stage="llm"}`: 0,
	} {
		if got := s.metric(series); got != want {
			t.Errorf("%s is %v, want %v", series, got, want)
		}
	}
	if strings.Contains(s.page("/crawlers"), "The language model is away") {
		t.Error("the page still says that the model is away")
	}
	log := d.do(exitDone, "log", found.Hits[0].ID.String()).stdout
	for _, part := range []string{"by llm", "model tiny 0123abcd, prompt ", "confidence 0.90", "rule set ", `keyword linux matched "linux kernel" +`, `reply "{\"direction\":\"linux\"`} {
		if !strings.Contains(log, part) {
			t.Errorf("the post's history lacks %s:\n%s", part, log)
		}
	}
	if strings.Contains(log, "PostFailed") {
		t.Errorf("an attempt was burnt:\n%s", log)
	}
}

// startModel serves what vesti asks of Ollama, at addr.
func startModel(t *testing.T, addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/version", func(w http.ResponseWriter, _ *http.Request) { answer(w, map[string]any{"version": "0.17.4"}) })
	mux.HandleFunc("GET /api/tags", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"models": []any{map[string]any{"name": "tiny:latest", "model": "tiny:latest", "digest": "0123abcd"}}})
	})
	mux.HandleFunc("POST /api/chat", func(w http.ResponseWriter, r *http.Request) {
		var q struct{ Messages []any }
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		said := `{"direction":"linux","relevance":90,"interest":50,"summary":"A post on the kernel.","reason":"kernel"}`
		if len(q.Messages) == 0 {
			said = ""
		}
		answer(w, map[string]any{"message": map[string]any{"role": "assistant", "content": said}, "done": true, "done_reason": "stop", "prompt_eval_count": 200})
	})
	srv := httptest.NewUnstartedServer(mux)
	srv.Listener.Close()
	srv.Listener = listener
	srv.Start()
	t.Cleanup(srv.Close)
}
