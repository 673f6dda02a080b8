package testkit

import (
	"testing"
	"time"
)

// Patience is a last resort, much longer than anything takes, even on a busy machine: what is awaited comes much
// earlier, or never.
const Patience = time.Minute

// Pace is how often idle workers look for events, beside being woken. A search costs as much as a delivery, and several
// tests run at once.
const Pace = 50 * time.Millisecond

// Pause waits between two looks at what changes by itself: without it, a test would take the CPU from what it waits
// for.
func Pause() { time.Sleep(Pace / 10) }

// Next returns the next value of a channel, or the zero T once the channel is closed. A test that waits for
// more than a minute fails.
func Next[T any](t testing.TB, values <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-values:
	case <-time.After(Patience):
		t.Fatal("waited in vain")
	}
	return v
}
