package idem

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/handling"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

// Handler processes one event with the transaction that also records the event.
// E is a pointer to the event's type.
//
// Rows written through tx and the record of the event are committed together
// or not at all. Everything else a handler does (HTTP calls, e-mails, writes
// through another connection) happens at least once: the handler runs again
// after a failure. An error or a panic rolls everything back.
//
// The context outlives the HTTP client and ends after [Inbox.Timeout].
// [EventFrom] returns the delivery being handled, [AfterCommit] runs something
// once the transaction is committed.
//
// The transaction is the receiver's to end. Its Commit and Rollback fail, and
// so do SQL statements that would end it. tx.Conn() returns the connection
// itself, where nothing is refused: a handler that ends the transaction there
// has failed, but its committed work stays committed. Do not keep it: it is
// the next event's.
//
// A handler may set a search_path or a role for the transaction, with SET LOCAL. Each costs one more round
// trip, except in a first try that emits nothing to an outbox. A change that a trigger of the database makes is
// not noticed: the trigger must set both back.
type Handler[E any] func(ctx context.Context, tx pgx.Tx, e E) error

// Work is a handler with its decoded event, ready to run in a transaction.
type Work func(ctx context.Context, tx pgx.Tx) error

// EventFrom returns the event that the handler with this context is processing: its Scope (the account), its
// ID, and a copy of its Payload as received. ok is false outside of a handler.
func EventFrom(ctx context.Context) (e Event, ok bool) {
	h, ok := handling.From(ctx)
	if !ok {
		return Event{}, false
	}
	e = Event(h.Event)
	e.Payload = bytes.Clone(e.Payload) // the bytes that are stored, or handled again, must be the received ones
	return e, true
}

// IsDryRun reports whether the handler's transaction will be rolled back, so that the handler can leave out
// effects outside of the transaction: calls, messages, files.
func IsDryRun(ctx context.Context) bool {
	h, ok := handling.From(ctx)
	return ok && h.Dry
}

// ExecAtCommit declares a statement that is executed in the handler's transaction once the handler has
// returned nil, in one round trip with all other declared statements and with COMMIT. Declare the statements
// that the handler needs no answer to; a handler that only declares costs two round trips instead of three.
//
//	events.OnPaymentOverdue(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
//		idem.ExecAtCommit(ctx, `insert into reminders (charge) values ($1) on conflict do nothing`, e.Payment.ID)
//		return nil
//	})
//
// The statements run in their order, after all that the handler executed through tx. If one fails, the
// handler has failed. The number of affected rows is not reported: where the number matters, use tx. A
// statement that a goroutine declares after the handler has returned is not executed.
//
// ExecAtCommit panics outside of a handler, and for a statement that ends the transaction. The SQL behind the
// name of a prepared statement or a [pgx.QueryRewriter] is not known in advance: such a statement costs two
// more round trips, to find out whether the transaction has ended.
func ExecAtCommit(ctx context.Context, sql string, args ...any) {
	h, ok := handling.From(ctx)
	if !ok {
		panic("idem: ExecAtCommit needs the context of a handler")
	}
	if pgtx.EndsTransaction(sql) {
		panic("idem: ExecAtCommit got a statement that ends the transaction: return nil to commit, or an error to roll back")
	}
	h.Declare(func(b *pgx.Batch) { b.Queue(sql, args...) })
}

// AfterCommit registers f to be called once the handler's transaction is committed, before the provider is
// answered (if the delivery is not answered yet), and never if the transaction is rolled back: to wake a
// worker, to drop a cache entry. f gets the handler's context.
//
// If the process dies between the commit and f, or the answer to COMMIT is lost, f does not run, and the
// event does not come again. Let a row of the transaction ask for work that must happen. A panic of f is
// logged; the event is committed all the same.
//
// AfterCommit panics outside of a handler, and under [Dispatch], where the caller commits and does the work
// that follows the commit.
func AfterCommit(ctx context.Context, f func(ctx context.Context)) {
	h, ok := handling.From(ctx)
	if !ok || h.After == nil {
		panic("idem: AfterCommit needs the context of a handler; under Dispatch its caller commits, and does what follows")
	}
	h.After.Add(func() { f(ctx) })
}

// NoRetry wraps the error of a handler whose event must not be tried again. The event is parked immediately,
// with its payload, for Replay. Only after a first try of WorkFirst do workers run the handler once more, as the try is
// not counted. A nil err stays nil.
func NoRetry(err error) error {
	if err == nil {
		return nil
	}
	return &handling.Final{Err: err}
}

// RetryAt wraps the error of a handler whose event must not be tried again before t, when a bank opens, say.
// t replaces Backoff for this time, and the attempt does not count towards MaxAttempts; if t
// has passed, the attempt counts and waits as any other failure does. In a first try and in a replay the error is
// like any other. Package health is red once an event has been
// started more than ten times, and arrived longer than MaxFailing ago. A nil err stays nil.
func RetryAt(t time.Time, err error) error {
	if err == nil {
		return nil
	}
	return &handling.Later{Err: err, At: t}
}

// Dispatch runs the event's handler in a transaction of the caller, which commits it: for queues and jobs
// that have their own way of running an event once. Nothing is recorded. Dispatch returns [ErrUnhandled] if
// the event has no handler, another error if the body names no event, and nil if the event is ignored. source is a
// [Source] or [Routes].
//
// Statements declared with [ExecAtCommit] are executed before Dispatch returns.
// [AfterCommit] panics.
func Dispatch(ctx context.Context, tx pgx.Tx, source interface {
	Ignores(eventType string) bool
	Route(Event) (Work, error)
}, e Event,
) error {
	if e.Type != "" && source.Ignores(e.Type) {
		return nil
	}
	work, err := routeBy(source, e)
	switch {
	case err != nil:
		return err
	case work == nil:
		return ErrUnhandled
	}
	h := &handling.Handling{Event: e.row()}
	if err := work(handling.With(ctx, h), tx); err != nil {
		return err
	}
	declared, messages := h.Statements()
	declared.QueuedQueries = append(declared.QueuedQueries, messages.QueuedQueries...)
	if declared.Len() == 0 {
		return nil
	}
	return tx.SendBatch(ctx, declared).Close()
}

// ErrUnhandled is returned by [Dispatch] for an event without a handler.
var ErrUnhandled = errors.New("idem: event type has no handler")
