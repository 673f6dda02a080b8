package wire_test

import (
	"testing"
	"time"

	"github.com/paghooks/paghooks/idem/internal/wire"
)

func TestRelayedEventIsMeasuredWhicheverClockIsAhead(t *testing.T) {
	t.Parallel()
	now := time.Now()
	if got := wire.SinceRelayed(t.Context(), now); got != 0 {
		t.Errorf("without a relay: %v, want 0", got)
	}
	for _, c := range []struct {
		why             string
		published, want time.Duration
	}{
		{"as it should be", -time.Second, time.Second},
		{"the same instant", 0, 1},
		{"the relay's clock is ahead", time.Hour, 1},
	} {
		if got := wire.SinceRelayed(wire.WithRelayed(t.Context(), now.Add(c.published)), now); got != c.want {
			t.Errorf("%s: %v, want %v", c.why, got, c.want)
		}
	}
}
