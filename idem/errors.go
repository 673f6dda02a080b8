package idem

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrTxOwned is what Commit and Rollback of a handler's transaction return:
// the processor commits when the handler returns nil and rolls back when it
// returns an error.
var ErrTxOwned = errors.New("idem: the transaction is not the handler's to end: return nil to commit, or an error to roll back")

var (
	errTwin    = errors.New("another process is working on the same event")
	errEnded   = errors.New("the handler ended the transaction with SQL: return nil to commit, or an error to roll back")
	errAborted = errors.New("the handler returned nil after an SQL error: Postgres has discarded its work; return the error, or run what may fail in tx.Begin")
	errBusy    = errors.New("the handler returned while a query is open: read its rows to the end or close them, and wait for goroutines that use the transaction")
	errLost    = errors.New("the connection was lost while the handler ran")
	errHung    = errors.New("the handler did not return in time")
)

// workError is a failure of the handler, as opposed to one of reaching it.
type workError struct{ err error }

func (w *workError) Error() string { return w.err.Error() }
func (w *workError) Unwrap() error { return w.err }

// retryable tells whether Postgres asked to run the transaction again:
// serialization failure or deadlock.
func retryable(err error) bool {
	code := sqlState(err)
	return code == "40001" || code == "40P01"
}

// away tells whether Postgres could not be asked, or will answer otherwise when
// it is asked again: it is starting, stopping, full or, for now, read-only.
func away(err error) bool {
	switch code := sqlState(err); {
	case code == "", code == "25006":
		return true
	default:
		return slices.Contains([]string{"08", "53", "57"}, code[:2])
	}
}

// sqlState is the error's SQLSTATE, or "" when it is not the database's.
func sqlState(err error) string {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return pgErr.Code
	}
	return ""
}

// explain adds what to do to errors of the mark that have one usual cause.
func explain(err error) error {
	switch sqlState(err) {
	case "55P03":
		return fmt.Errorf("%w: %w", errTwin, err)
	case "42P01":
		return fmt.Errorf("the tables are missing: call idem.Migrate at start, with the same search_path: %w", err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no database connection in time: the pool is too small or Postgres is away: %w", err)
	}
	return err
}
