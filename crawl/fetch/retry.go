package fetch

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Pauses that servers ask for are kept between these.
const (
	minPause = time.Minute
	maxPause = 24 * time.Hour
)

// retryAfter reads the header Retry-After in both forms of RFC 9110, section
// 10.2.3: seconds and a date.
func retryAfter(h http.Header, now time.Time) (time.Time, bool) {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseFloat(value, 64); err == nil && seconds >= 0 {
		seconds = min(seconds, maxPause.Seconds())
		return now.Add(time.Duration(seconds * float64(time.Second))), true
	}
	if t, err := http.ParseTime(value); err == nil {
		return t, true
	}
	return time.Time{}, false
}

func hasRetryAfter(h http.Header) bool {
	_, ok := retryAfter(h, time.Time{})
	return ok
}

func clampPause(until, now time.Time) time.Time {
	if least := now.Add(minPause); until.Before(least) {
		return least
	}
	if most := now.Add(maxPause); until.After(most) {
		return most
	}
	return until
}
