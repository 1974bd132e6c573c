package classify

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// troubleEvery is how often the log hears of the same trouble.
const troubleEvery = time.Minute

// troubles keep the log short where all workers meet the same trouble with the
// store again and again, such as a full disk. They are safe for concurrent use.
type troubles struct {
	log *slog.Logger
	now func() time.Time

	mu   sync.Mutex
	said map[trouble]*saying
}

// trouble is what failed, and the error at the bottom of why: those above it
// hold what changes, such as how much space is left.
type trouble struct{ what, cause string }

type saying struct {
	at      time.Time
	leftOut int // since then
}

// tell logs what failed, unless that was said just now.
func (t *troubles) tell(level slog.Level, what string, err error, attrs ...slog.Attr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.said == nil {
		t.said = map[trouble]*saying{}
	}
	key, now := trouble{what, innermost(err)}, t.now()
	s := t.said[key]
	if s == nil {
		s = &saying{at: now.Add(-troubleEvery)}
		t.said[key] = s
	}
	if now.Sub(s.at) < troubleEvery {
		s.leftOut++
		return
	}
	if s.leftOut > 0 {
		attrs = append(attrs, slog.Int("times_since_last_said", s.leftOut+1))
	}
	t.log.LogAttrs(context.Background(), level, what, append(attrs, slog.Any("error", err))...)
	*s = saying{at: now}
	const most = 100 // of causes that name what is never the same
	if len(t.said) > most {
		clear(t.said)
	}
}

func innermost(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err.Error()
		}
		err = next
	}
}
