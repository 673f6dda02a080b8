package idem

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

// maxRuns is the largest number of runs of a transaction, the first time included, when
// Postgres asks to run it again.
const maxRuns = 4

// retryDeadlocks runs a transaction of many rows again when it met another in a deadlock.
func retryDeadlocks(ctx context.Context, f func() error) error {
	for runs := 1; ; runs++ {
		if err := f(); !pgtx.Retryable(err) || runs == maxRuns || !pause(ctx, runs) {
			return err
		}
	}
}

// pause waits a little longer after each try, with jitter so that those that
// met once do not meet again. It reports whether ctx has time for another try.
func pause(ctx context.Context, tries int) bool {
	d := min(10*time.Millisecond<<min(tries, 6), 500*time.Millisecond)
	return sleep(ctx, d/2+rand.N(d))
}

// sleep waits for d. It reports false if ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
