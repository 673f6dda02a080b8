package idem

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// query calls f, which executes a statement of package store, and returns its answer. A delivery or a worker
// waits for the answer: query gives up after 5 seconds. See [pgtx.Ask].
func query[T any](ctx context.Context, pool *pgxpool.Pool, f func(context.Context, store.DB) (T, error)) (answer T, err error) {
	err = exec(ctx, pool, func(ctx context.Context, db store.DB) (err error) {
		answer, err = f(ctx, db)
		return err
	})
	return answer, err
}

// exec calls f, which executes a statement without an answer, as query does.
func exec(ctx context.Context, pool *pgxpool.Pool, f func(context.Context, store.DB) error) error {
	return pgtx.Ask(ctx, pool, func(ctx context.Context, conn *pgxpool.Conn) error { return f(ctx, conn) })
}

// change runs a transaction that changes many rows, within statementTime. It runs the transaction again
// after a deadlock.
func (i *Inbox) change(ctx context.Context, do func(context.Context, pgx.Tx) error) error {
	for runs := 1; ; runs++ {
		limited, cancel := context.WithTimeout(ctx, statementTime)
		err := pgtx.Change(limited, i.pool, do)
		cancel()
		if !pgtx.Retryable(err) || runs == maxRuns || !pause(ctx, runs) {
			return err
		}
	}
}

// statementTime is the time that a statement of an operation on stored events may take. Some statements read
// or change all events that are not done.
const statementTime = 5 * time.Minute

// maxRuns is the largest number of runs of a transaction, the first one included, if Postgres asks to run it
// again.
const maxRuns = 4

// pause waits a little longer after each try, with jitter, so that transactions that met once do not meet
// again. It reports whether ctx has time for another try.
func pause(ctx context.Context, tries int) bool {
	d := min(10*time.Millisecond<<min(tries, 6), 500*time.Millisecond)
	return sleep(ctx, d/2+rand.N(d))
}

// sleep waits for d. It reports false if ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
