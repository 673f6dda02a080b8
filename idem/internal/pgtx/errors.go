package pgtx

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// The mistakes of a handler, apart from the errors that it returns.
var (
	ErrOwned    = errors.New("idem: the transaction is not the handler's to end: return nil to commit, or an error to roll back")
	ErrEnded    = errors.New("the handler ended the transaction with SQL: return nil to commit, or an error to roll back")
	ErrAborted  = errors.New("the handler returned nil after an SQL error: Postgres has discarded its work; return the error, or run what may fail in tx.Begin")
	ErrBusy     = errors.New("the handler returned while a query is open: read its rows to the end or close them, and wait for goroutines that use the transaction")
	ErrLost     = errors.New("the connection was lost while the handler ran")
	ErrTimedOut = errors.New("the handler did not return in time")
	ErrExited   = errors.New("the handler ended its goroutine: return an error instead")
)

// ErrUnknown is the error of a transaction whose answer to COMMIT was lost, or proves nothing.
var ErrUnknown = errors.New("whether COMMIT has succeeded is unknown")

// WorkError is a failure of the handler's work, as opposed to a failure to reach the database for it.
type WorkError struct {
	err  error
	lost bool // the transaction's connection is lost
}

func (w *WorkError) Error() string { return w.err.Error() }

func (w *WorkError) Unwrap() error { return w.err }

// WorkFailed reports whether an attempt with this error reached its handler. An attempt whose COMMIT was not
// answered did.
func WorkFailed(err error) bool {
	_, ofWork := errors.AsType[*WorkError](err)
	return ofWork || errors.Is(err, ErrUnknown)
}

// Passing reports whether the event is most likely not to blame for a handler's error: the transaction met
// others, or another database, which the handler uses, is being stopped or restarted. The session of the
// transaction itself is alive.
func Passing(err error) bool {
	work, ofWork := errors.AsType[*WorkError](err)
	return ofWork && !work.lost && (Retryable(err) || strings.HasPrefix(SQLState(err), "57P"))
}

// Retryable reports whether Postgres asked to run the transaction again:
// serialization failure or deadlock.
func Retryable(err error) bool {
	code := SQLState(err)
	return code == "40001" || code == "40P01"
}

// TookTooLong reports whether an answer did not come in time, or Postgres gave up a statement, or a wait for
// a lock, because of a time-out of the role or the database.
func TookTooLong(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || Canceled(err) || SQLState(err) == "55P03"
}

// Canceled reports whether Postgres gave up a statement, because of a statement_timeout or because somebody has
// asked it to.
func Canceled(err error) bool { return SQLState(err) == "57014" }

// RowLocked reports whether a statement gave up its wait for a row that another transaction has locked. The
// error of a wait for a whole table names no index entry.
func RowLocked(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == "55P03" && pgErr.Where != ""
}

// Unavailable reports whether Postgres could not be reached, or may answer differently later: it is starting,
// stopping, full or, for now, read-only.
func Unavailable(err error) bool {
	switch code := SQLState(err); {
	case code == "", code == readOnly:
		return true
	default:
		return slices.Contains([]string{"08", "53", "57"}, code[:2])
	}
}

// readOnly is the SQLSTATE of writes that a replica, or a default, refuses.
const readOnly = "25006"

// IsReadOnly reports whether Postgres has refused a write because it is a replica, or because
// transactions are read-only by default.
func IsReadOnly(err error) bool { return SQLState(err) == readOnly }

// SQLState returns the error's SQLSTATE, or "" if Postgres has not sent the error.
func SQLState(err error) string {
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pgErr.Code
	}
	return ""
}

// Start calls f, which is the application's code, in a goroutine of its own, and sends its error. The caller
// need not receive the error. A panic is an error, and so is [ErrExited].
func Start(f func() error) <-chan error {
	result := make(chan error, 1)
	go func() {
		err := ErrExited
		defer func() { result <- err }()
		err = Protect(f)
	}()
	return result
}

// Within calls f, which is the application's code or calls it, and returns its result. If f does not return soon after
// ctx has ended, Within returns without it, with the error late, and undo is called with what f returns later: all that
// come to an inbox would wait for one hook of its pool that hangs.
func Within[T any](ctx context.Context, late error, f func() (T, error), undo func(T)) (T, error) {
	var answer T
	result := Start(func() (err error) {
		answer, err = f()
		return err
	})
	if err, returned := await(ctx, result); returned {
		return answer, err
	}
	go func() {
		if err := <-result; err == nil {
			undo(answer)
		}
	}()
	var none T
	return none, fmt.Errorf("%w: %w", late, ctx.Err())
}

// ErrHookHangs is the error of a hook of the pool that does not return to [Within].
var ErrHookHangs = errors.New("a hook of the pool does not return, although its context has ended")

// Protect turns a panic of application code into an error with its stack. It also
// catches panics of the returned error's methods: Error, Unwrap, As and Is.
func Protect(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	err = f()
	probe(err)
	return err
}

// probe calls the methods of an error that application code has made, so that none panics later, where
// nothing would catch the panic.
func probe(err error) {
	if err != nil {
		_ = err.Error()
		_ = WorkFailed(err)
		_ = errors.Is(err, ErrTimedOut)
	}
}
