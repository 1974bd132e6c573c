package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// parseDuration reads what time.ParseDuration does, days as "30d", and a bare 0.
func parseDuration(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		const most = 100 * 365
		if err == nil && !(n >= 0 && n <= most) {
			err = errors.New("no number of days")
		}
		return time.Duration(n * float64(24*time.Hour)), err
	}
	d, err := time.ParseDuration(s)
	if err == nil && d < 0 {
		return 0, errors.New("negative duration")
	}
	return d, err
}

// formatDuration writes what parseDuration reads, without zero parts.
func formatDuration(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d == 0:
		return "0"
	case d%day == 0:
		return fmt.Sprintf("%dd", d/day)
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	default:
		return d.String()
	}
}

// plainNumber, inSeconds and inBytes write the values of settings in the forms that
// the configuration reads.
func plainNumber(v float64) string { return strconv.FormatFloat(v, 'g', 15, 64) }

func inSeconds(v float64) string { return formatDuration(time.Duration(v * float64(time.Second))) }

func inBytes(v float64) string { return ByteSize(v).String() }

// ByteSize is a number of bytes, written as 512, 64KiB, 10MiB or 2GiB.
type ByteSize int64

// byteUnits are in falling order: String takes the first that divides.
func byteUnits() []struct {
	name string
	size ByteSize
} {
	return []struct {
		name string
		size ByteSize
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}
}

func parseByteSize(s string) (ByteSize, error) {
	factor := ByteSize(1)
	for _, u := range byteUnits() {
		if n, ok := strings.CutSuffix(s, u.name); ok {
			s, factor = strings.TrimSpace(n), u.size
			break
		}
	}
	n, err := strconv.ParseInt(strings.TrimSuffix(s, "B"), 10, 64)
	if err != nil || n < 0 || n > int64(1<<62/factor) {
		return 0, errors.New("not a size")
	}
	return ByteSize(n) * factor, nil
}

// String writes the form that the configuration reads.
func (b ByteSize) String() string {
	for _, u := range byteUnits() {
		if b > 0 && b%u.size == 0 {
			return fmt.Sprintf("%d%s", b/u.size, u.name)
		}
	}
	return strconv.FormatInt(int64(b), 10)
}
