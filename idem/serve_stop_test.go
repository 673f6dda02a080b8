package idem

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// stubborn is a part whose Run does not end with its context.
type stubborn struct{ until chan struct{} }

func (s stubborn) Run(context.Context) error { <-s.until; return nil }

func TestServeWaits15SecondsForPartsThatDoNotEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		parts := newRunning(t.Context())
		until := make(chan struct{})
		defer close(until)
		for range 2 {
			parts.start(stubborn{until}, make(chan error, 1))
		}
		start := time.Now()
		err := parts.end()
		if err == nil || strings.Count(err.Error(), "a part of type idem.stubborn has not ended in time") != 2 {
			t.Errorf("end = %v", err)
		}
		if d := time.Since(start); d != 15*time.Second {
			t.Errorf("it took %s, want 15s", d)
		}
	})
}
