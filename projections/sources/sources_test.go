package sources_test

import (
	"testing"
	"time"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
	"vesti.nixg.ru/ledger/ledgertest"
	"vesti.nixg.ru/projections"
	"vesti.nixg.ru/projections/projectiontest"
	"vesti.nixg.ru/projections/sources"
)

func run(t *testing.T, log *badgerlog.Log) (s *sources.Sources, settle func()) {
	t.Helper()
	s = sources.New(log.Store)
	return s, projectiontest.Start(t, projections.Options{Log: log, Stores: log.Store, Projections: []projections.Projection{s}}).Settle
}

func record(t *testing.T, log *badgerlog.Log, source ledger.Slug, payloads ...ledger.Payload) {
	t.Helper()
	for _, p := range payloads {
		if _, err := log.Record(t.Context(), ledger.NewEvent(ledger.ActorCrawler, 0, source, p)); err != nil {
			t.Fatal(err)
		}
	}
}

var at = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestDeadSourceIsReset(t *testing.T) {
	log := ledgertest.Open(t)
	s, settle := run(t, log)
	for i := range 7 {
		record(t, log, "a", ledger.SourceFailed{
			Run: ledger.Run{Started: at.Add(time.Duration(i) * time.Hour)}, Cause: ledger.CauseTimeout, Message: "no answer within 30s",
		})
	}
	settle()
	if st := s.State("a"); st.Status != ledger.SourceDead || st.ErrorCount != 7 || st.LastError == "" {
		t.Errorf("after 7 failures: %+v", st)
	}
	record(t, log, "a", ledger.SourceReset{})
	settle()
	if st := s.State("a"); st.Status != ledger.SourceAlive || st.ErrorCount != 0 || st.LastError != "" {
		t.Errorf("after the reset: %+v", st)
	}
	if st := s.State("never"); st.Status != ledger.SourceNew {
		t.Errorf("one that was never crawled: %+v", st)
	}
}

func TestRunsNewestFirstAndBounded(t *testing.T) {
	log := ledgertest.Open(t)
	s, settle := run(t, log)
	const runs = sources.KeptRuns + 50
	for i := range runs {
		r := ledger.Run{Trigger: ledger.TriggerManual, Started: at.Add(time.Duration(i) * time.Minute), Duration: time.Second, HTTPStatus: 200, Fetched: 3, New: i}
		switch i % 3 {
		case 0:
			record(t, log, "a", ledger.SourceCrawled{Run: r})
		case 1:
			record(t, log, "a", ledger.SourceCrawled{Run: r, NotModified: true})
		default:
			record(t, log, "a", ledger.SourceFailed{Run: r, Cause: ledger.CauseHTTP, Message: "500"})
		}
		if i%97 == 0 {
			settle()
		}
	}
	record(t, log, "ab", ledger.SourceThrottled{Run: ledger.Run{Started: at}, Until: at.Add(time.Hour), Message: "429"})
	settle()
	got, err := s.Runs(t.Context(), "a", 1000)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != sources.KeptRuns {
		t.Fatalf("%d runs are kept, want %d", len(got), sources.KeptRuns)
	}
	for i, r := range got {
		if want := runs - 1 - i; r.New != want || !r.Started.Equal(at.Add(time.Duration(want)*time.Minute)) {
			t.Fatalf("run %d is %+v, want the one that found %d", i, r, want)
		}
	}
	if got[0].Result != sources.ResultOK || got[1].Result != sources.ResultFailed || got[1].Error != "500" || got[2].Result != sources.ResultNotModified {
		t.Errorf("results: %+v", got[:3])
	}
	if few, err := s.Runs(t.Context(), "a", 5); err != nil || len(few) != 5 || few[0].Seq != got[0].Seq {
		t.Errorf("5 runs: %v %v", few, err)
	}
	if other, err := s.Runs(t.Context(), "ab", 5); err != nil || len(other) != 1 || other[0].Result != sources.ResultThrottled {
		t.Errorf("the source whose name begins alike: %v %v", other, err)
	}
	if total := s.Totals(); total.Sources != 2 || total.Runs != runs+1 || total.Fetched != 3*runs {
		t.Errorf("totals %+v", total)
	}
}
