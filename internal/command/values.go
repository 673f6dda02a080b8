package command

import (
	"errors"
	"flag"
	"math"
	"strings"
	"time"
)

// duration is a flag's value that may also be in days.
type duration struct{ into *time.Duration }

// Duration returns the value of a flag that is a duration above zero, such as 45d or 12h, and
// sets its default; 0 is none.
func Duration(into *time.Duration, byDefault time.Duration) flag.Value {
	*into = byDefault
	return duration{into}
}

// String returns the duration; "" if there is none.
func (d duration) String() string {
	if d.into == nil || *d.into == 0 {
		return ""
	}
	return d.into.String()
}

// Set sets it.
func (d duration) Set(text string) error {
	value, err := parseDuration(text)
	if err != nil || value <= 0 {
		return errors.New("it is no time such as 45d, 12h or 5s")
	}
	*d.into = value
	return nil
}

// Time returns a function that sets a flag that is a time, or how long ago it was. A time without a zone is
// in the one that is given.
func Time(into *time.Time, zone *time.Location) func(string) error {
	return func(text string) (err error) {
		if ago, agoErr := parseDuration(text); agoErr == nil {
			*into = time.Now().Add(-ago)
			return nil
		}
		for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
			if *into, err = time.ParseInLocation(layout, text, zone); err == nil {
				return nil
			}
		}
		return errors.New("it is no time such as 2026-11-20T10:00:00Z or 2026-11-20, nor how long ago, such as 2h or 3d")
	}
}

func parseDuration(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		hours, err := time.ParseDuration(days + "h")
		if hours > math.MaxInt64/24 || hours < math.MinInt64/24 {
			return 0, errors.New("it is longer than 290 years")
		}
		return hours * 24, err
	}
	return time.ParseDuration(text)
}

// List returns the value of a flag that may be repeated, or have several values with commas
// between.
func List(into *[]string) flag.Value { return (*list)(into) }

type list []string

// String returns the values.
func (l *list) String() string { return strings.Join(*l, ",") }

// Set adds values.
func (l *list) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			return errors.New("it is empty")
		}
		*l = append(*l, part)
	}
	return nil
}
