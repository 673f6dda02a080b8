package brokertest

import (
	"testing"

	"github.com/paghooks/paghooks/internal/testkit"
)

// Next returns the next value of a channel, or the zero T once that is closed. It fails a
// test that waits for more than a minute.
func Next[T any](t testing.TB, happens <-chan T) T {
	t.Helper()
	return testkit.Next(t, happens)
}

// FreePort returns a port of 127.0.0.1 for a server that a test starts, and starts
// again: no server listens on it, and no connection that a program opens takes it
// meanwhile.
func FreePort() (int, error) { return testkit.FreePort() }
