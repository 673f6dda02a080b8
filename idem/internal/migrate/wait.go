package migrate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

const (
	// firstWait is the time of the first wait for a lock. Each later one is twice as long, so
	// that the handlers that are running can end, up to longestWait: a delivery that waits behind it is
	// given up after five seconds.
	firstWait   = 500 * time.Millisecond
	longestWait = 3 * time.Second

	// migrationTime is longer than any migration of another process takes.
	migrationTime = 10 * time.Minute

	lockNotAvailable = "55P03"
	deadlockDetected = "40P01"
)

// untilLocked calls f until it gets its locks. After each wait that was in vain it undoes
// what f did, and pauses for as long: what waited behind it goes on.
func untilLocked(ctx context.Context, tx pgx.Tx, end time.Time, f func(pgx.Tx) error) error {
	var front store.LockHolder
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		err := withLockTimeout(ctx, tx, wait, f)
		switch state := pgtx.SQLState(err); {
		case ctx.Err() != nil && front.PID != 0:
			return inFront(front, err)
		case state != lockNotAvailable && state != deadlockDetected:
			return err
		}
		found, finding := store.FindLockHolder(ctx, tx)
		switch {
		case finding != nil:
			return errors.Join(err, finding)
		case found.PID != front.PID:
			logWait(ctx, found)
		}
		if front = found; !time.Now().Before(end) {
			return inFront(front, err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return inFront(front, errors.Join(ctx.Err(), err))
		}
	}
}

// withLockTimeout calls f in a transaction within tx, in which each wait for a lock has an end.
func withLockTimeout(ctx context.Context, tx pgx.Tx, d time.Duration, f func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
		var before string
		if err := tx.QueryRow(ctx, `show lock_timeout`).Scan(&before); err != nil {
			return err
		}
		if err := setLockTimeout(ctx, tx, strconv.FormatInt(d.Milliseconds(), 10)); err != nil {
			return err
		}
		if err := f(tx); err != nil {
			return err
		}
		return setLockTimeout(ctx, tx, before) // the transaction around this one goes on
	})
}

func setLockTimeout(ctx context.Context, tx pgx.Tx, value string) error {
	_, err := tx.Exec(ctx, `set local lock_timeout = '`+value+`'`) // it takes no snapshot
	return err
}

// inFront is the error of a migration that did not get its locks.
func inFront(front store.LockHolder, err error) error {
	if front.PID == 0 {
		return fmt.Errorf("tables are in use, by transactions that had ended when they were looked for; nothing was changed: "+
			"migrate again, at a time when fewer events are processed: %w", err)
	}
	return fmt.Errorf("%s uses %s, and its transaction does not end; nothing was changed, and events go on being processed: "+
		"migrate again when it has ended, or end it with select pg_terminate_backend(%d): %w", front, front.Table, front.PID, err)
}

// logWait logs who is in front. Migrate has no logger of the application's.
func logWait(ctx context.Context, front store.LockHolder) {
	if front.PID == 0 {
		return
	}
	_ = pgtx.Protect(func() error {
		slog.WarnContext(ctx, "a migration of the webhook tables waits for a transaction; events go on being processed, and it tries again: end that transaction if it does not end by itself",
			slog.Int("pid", int(front.PID)), slog.String("table", front.Table), slog.String("role", front.Role),
			slog.String("application", front.Application), slog.Duration("open_for", front.OpenFor))
		return nil
	})
}
