package badgerlog_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/badgerlog"
	"vesti.nixg.ru/ledger/ledgertest"
)

// TestModel does random things to a store and to a plain model of it, with the
// store opened anew and time passing in between, and compares them. VESTI_MODEL
// is the number of steps, VESTI_SEED the seed.
func TestModel(t *testing.T) {
	t.Parallel()
	steps := envInt("VESTI_MODEL", 1500)
	seed := uint64(envInt("VESTI_SEED", int(time.Now().UnixNano()&0xffffff)))
	t.Logf("seed %d", seed)
	m := &model{
		t: t, r: rand.New(rand.NewPCG(seed, 1)), dir: t.TempDir(), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		posts: make(map[ledger.PostNum]*modelPost), inHand: make(map[ledger.PostNum]ledger.Claim),
	}
	m.open()
	for n := range steps {
		m.step()
		if n%100 == 99 {
			m.law()
		}
		if t.Failed() {
			t.Fatalf("step %d of seed %d", n, seed)
		}
	}
	m.law()
}

func envInt(name string, def int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return def
}

const (
	modelLease    = time.Minute
	modelAttempts = 3
	modelRetry    = 10 * time.Second
)

type modelPost struct {
	item     ledger.Item
	texts    map[string]bool // that it had
	status   ledger.Status
	attempt  int
	revision int
	delayed  bool
	reviewed bool
}

type model struct {
	t      *testing.T
	r      *rand.Rand
	dir    string
	l      *badgerlog.Log
	mu     sync.Mutex
	now    time.Time
	posts  map[ledger.PostNum]*modelPost
	order  []ledger.PostNum
	inHand map[ledger.PostNum]ledger.Claim
	items  int
}

func (m *model) clock() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

func (m *model) pass(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = m.now.Add(d)
}

func (m *model) open() {
	m.l = ledgertest.Open(m.t, ledgertest.Dir(m.dir), ledgertest.Now(m.clock), ledgertest.Lease(modelLease),
		ledgertest.Retry(modelAttempts, modelRetry, modelRetry), func(o *badgerlog.Options) { o.Tick = time.Millisecond })
}

func (m *model) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *model) step() {
	switch r := m.r.IntN(100); {
	case r < 20:
		m.appendNew()
	case r < 35:
		m.revise()
	case r < 60:
		m.claim()
	case r < 75:
		m.end(m.complete)
	case r < 82:
		m.end(m.fail)
	case r < 87:
		m.end(m.release)
	case r < 91:
		m.replay()
	case r < 93:
		m.review()
	case r < 97:
		m.wait()
	default:
		m.reopen()
	}
}

func (m *model) post() (ledger.PostNum, *modelPost) {
	if len(m.order) == 0 {
		return 0, nil
	}
	n := m.order[m.r.IntN(len(m.order))]
	return n, m.posts[n]
}

func (m *model) appendNew() {
	m.items++
	item := ledgertest.Item("a", fmt.Sprint(m.items))
	item.Lane = ledger.Lane(m.r.IntN(ledger.LaneCount))
	out, err := m.l.Append(m.t.Context(), []ledger.Item{item, item})
	m.must(err)
	if out[0].Outcome != ledger.OutcomeNew || out[1].Outcome != ledger.OutcomeKnown {
		m.t.Errorf("append: %v", out)
	}
	m.posts[out[0].Post] = &modelPost{item: item, texts: map[string]bool{item.Text: true}, status: ledger.StatusPending}
	m.order = append(m.order, out[0].Post)
}

func (m *model) revise() {
	n, p := m.post()
	if p == nil {
		return
	}
	want := ledger.OutcomeRevised
	switch m.r.IntN(4) {
	case 0:
		p.item.Title += "!"
		want = ledger.OutcomeTouched
	case 1:
		p.item.Text += fmt.Sprint(" мелочь", m.r.IntN(1000))
	case 2:
		m.items++
		p.item.Text = ledgertest.Text(fmt.Sprint("другой", m.items))
	case 3:
		want = ledger.OutcomeKnown
	}
	isNew := want == ledger.OutcomeRevised && !p.texts[p.item.Text]
	if want == ledger.OutcomeRevised && !isNew {
		want = ledger.OutcomeTouched
	}
	before, err := m.l.Post(m.t.Context(), n)
	m.must(err)
	out, err := m.l.Append(m.t.Context(), []ledger.Item{p.item})
	m.must(err)
	if out[0].Outcome != want {
		m.t.Errorf("revise post %d: %s, want %s", n, out[0].Outcome, want)
	}
	if isNew {
		p.texts[p.item.Text] = true
		p.revision++
		delete(m.inHand, n)
		if !p.reviewed && ledger.ChangedWords(before.Item.Text, p.item.Text) > 0.1 {
			p.status, p.attempt, p.delayed = ledger.StatusPending, 0, false
		}
	}
	m.same(n)
}

func (m *model) claim() {
	c, err := m.l.Claim(m.t.Context(), ledger.ClaimRequest{NoWait: true})
	free := 0
	for n, p := range m.posts {
		if _, held := m.inHand[n]; p.status == ledger.StatusPending && !p.delayed && !held {
			free++
		}
	}
	if errors.Is(err, ledger.ErrQueueEmpty) {
		if free > 0 {
			m.t.Errorf("nothing to claim, the model has %d", free)
		}
		return
	}
	m.must(err)
	p := m.posts[c.Post]
	if _, held := m.inHand[c.Post]; held || p.status != ledger.StatusPending || p.delayed {
		m.t.Errorf("claimed post %d: held %v, model %+v", c.Post, held, p)
	}
	if c.Revision != p.revision || c.Attempt != p.attempt+1 || c.Item.Text != p.item.Text || c.Item.Title != p.item.Title {
		m.t.Errorf("claim %+v, model %+v", c, p)
	}
	m.inHand[c.Post] = c
}

// end ends one of the claims in hand.
func (m *model) end(how func(ledger.Claim, *modelPost)) {
	for n, c := range m.inHand {
		delete(m.inHand, n)
		how(c, m.posts[n])
		m.same(n)
		if err := m.l.Complete(m.t.Context(), c, ledgertest.Decision("tech")); !errors.Is(err, ledger.ErrStale) {
			m.t.Errorf("a claim that had ended: %v", err)
		}
		return
	}
}

func (m *model) complete(c ledger.Claim, p *modelPost) {
	m.must(m.l.Complete(m.t.Context(), c, ledgertest.Decision("linux")))
	p.status, p.attempt = ledger.StatusClassified, 0
}

func (m *model) fail(c ledger.Claim, p *modelPost) {
	parked, err := m.l.Fail(m.t.Context(), c, ledger.Failure{Cause: ledger.CauseBadReply})
	m.must(err)
	p.attempt++
	p.delayed = p.attempt < modelAttempts
	if !p.delayed {
		p.status = ledger.StatusParked
	}
	if parked == p.delayed {
		m.t.Errorf("attempt %d parked: %v", p.attempt, parked)
	}
}

func (m *model) release(c ledger.Claim, _ *modelPost) {
	m.must(m.l.Release(m.t.Context(), c, ledger.PostReturned{Reason: ledger.ReturnShutdown}))
}

func (m *model) replay() {
	n, p := m.post()
	if p == nil || p.status == ledger.StatusPending {
		return
	}
	_, err := m.l.Record(m.t.Context(), ledger.NewEvent(ledger.ActorOperator, n, "", ledger.PostReturned{Reason: ledger.ReturnReplay, Lane: ledger.LaneEditor}))
	m.must(err)
	p.status, p.attempt = ledger.StatusPending, 0
	m.same(n)
}

func (m *model) review() {
	n, p := m.post()
	if p == nil {
		return
	}
	_, err := m.l.Record(m.t.Context(), ledger.NewEvent(ledger.ActorEditor, n, "", ledger.PostReviewed{Verdict: ledger.VerdictPicked}))
	m.must(err)
	p.reviewed = true
	m.same(n)
}

// wait lets delays and leases end.
func (m *model) wait() {
	m.pass(modelRetry * 3 / 2)
	if m.r.IntN(2) == 0 {
		m.pass(modelLease + time.Second)
	}
	now := m.clock()
	for n, c := range m.inHand {
		if now.After(c.Lease) {
			delete(m.inHand, n)
			p := m.posts[n]
			if p.attempt++; p.attempt >= modelAttempts {
				p.status = ledger.StatusParked
			}
		}
	}
	for _, p := range m.posts {
		p.delayed = false
	}
	m.settle()
}

// settle waits until the engine has seen to what time brought.
func (m *model) settle() {
	m.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		q := m.l.Queue()
		if q.Processing == len(m.inHand) && q.Waiting == 0 {
			return
		}
		if time.Now().After(deadline) {
			m.t.Fatalf("the engine has %+v, the model %d in hand", q, len(m.inHand))
		}
	}
}

func (m *model) reopen() {
	m.must(m.l.Close())
	m.open()
	clear(m.inHand)
}

// same compares a post with the model.
func (m *model) same(n ledger.PostNum) {
	m.t.Helper()
	got, err := m.l.Post(m.t.Context(), n)
	m.must(err)
	p := m.posts[n]
	s := got.State
	if s.Status != p.status || s.Attempt != p.attempt && p.status != ledger.StatusParked || s.Revision != p.revision ||
		s.Reviewed != p.reviewed || !s.NotBefore.IsZero() != p.delayed || got.Item.Text != p.item.Text || got.Item.Title != p.item.Title {
		m.t.Errorf("post %d is %+v, model %+v", n, s, p)
	}
}

// law: fetched = pending + processing + classified + parked, in the store, in
// the engine and in the model.
func (m *model) law() {
	m.t.Helper()
	count := make(map[ledger.Status]int)
	for n, p := range m.posts {
		count[p.status]++
		m.same(n)
	}
	report := ledgertest.Check(m.t, m.l)
	processing := m.l.Queue().Processing
	if report.Posts != len(m.posts) || report.Pending != count[ledger.StatusPending] || report.Parked != count[ledger.StatusParked] ||
		report.Classified != count[ledger.StatusClassified] || processing != len(m.inHand) ||
		report.Posts != (report.Pending-processing)+processing+report.Classified+report.Parked {
		m.t.Errorf("%+v with %d in hand; the model has %v with %d", report, processing, count, len(m.inHand))
	}
}
