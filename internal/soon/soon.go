// Package soon waits in tests for what happens soon, and fails those that wait in vain.
package soon

import (
	"testing"
	"time"
)

// patience is far more than anything takes, also on a busy machine: only a failure
// waits so long.
const patience = time.Minute

// Next returns the next of what happens; the zero T if nothing will, because the
// channel is closed.
func Next[T any](t testing.TB, happens <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-happens:
	case <-time.After(patience):
		t.Fatal("waited in vain")
	}
	return v
}
