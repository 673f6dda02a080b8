package idem

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

// The rollback, the cancellation and the counting of a delivery whose time is up
// must not have a second each: Asaas waits 10 seconds for all of it.
func TestWhatFollowsTheHandlerEndsTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		p := NewProcessor(nil, &strangers{})
		ctx, cancel := context.WithTimeout(t.Context(), p.Timeout)
		defer cancel()
		end := start.Add(p.Timeout + 1500*time.Millisecond) // as its documentation says
		if end.Sub(start) >= 10*time.Second {
			t.Errorf("the answer may take %s, and Asaas does not wait so long", end.Sub(start))
		}
		for range 3 { // each step takes its time
			<-time.After(p.Timeout/2 + 100*time.Millisecond)
			finish, done := pgtx.Finish(ctx)
			if got, _ := finish.Deadline(); got.After(end) {
				t.Errorf("after %s what follows may last until %s, want %s at the latest", time.Since(start), got.Sub(start), end.Sub(start))
			}
			if finish.Err() != nil && time.Now().Before(end) {
				t.Errorf("after %s there is no time left to finish", time.Since(start))
			}
			done()
		}
	})
}
