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
// The context outlives the HTTP client and ends after [Common.Timeout].
// [EventFrom] returns the delivery being handled, [AfterCommit] runs something
// once the transaction is committed.
//
// The transaction is the processor's to end. Its Commit and Rollback fail, and
// so do SQL statements that would end it. tx.Conn() returns the connection
// itself, where nothing is refused: a handler that ends the transaction there
// has failed, but its committed work stays committed.
//
// A handler may set a search_path or a role for the transaction, with SET LOCAL. That
// costs a round trip more in an Inbox, a Replay, or behind Emit of an outbox. In a trigger
// of the database it is not noticed: have that set them back.
type Handler[E any] func(ctx context.Context, tx pgx.Tx, e E) error

// Work is a handler with its decoded event, ready to run in a transaction.
type Work func(ctx context.Context, tx pgx.Tx) error

// EventFrom returns the event that the handler with this context is processing:
// its Scope (which account), its ID and its Payload as received, in a copy. ok is
// false outside of a handler.
func EventFrom(ctx context.Context) (e Event, ok bool) {
	h, ok := handling.From(ctx)
	if !ok {
		return Event{}, false
	}
	e = Event(h.Event)
	e.Payload = bytes.Clone(e.Payload) // the bytes that are stored, or handled again, are those that were received
	return e, true
}

// IsDryRun tells a handler that its transaction will be rolled back, so that it
// can leave out effects that are not in there: calls, messages, files.
func IsDryRun(ctx context.Context) bool {
	h, ok := handling.From(ctx)
	return ok && h.Dry
}

// ErrTxOwned is returned by Commit and Rollback of a handler's transaction, and by
// statements that would end it: the processor commits when the handler returns
// nil and rolls back when it returns an error.
var ErrTxOwned = pgtx.ErrOwned

// ExecAtCommit declares a statement that is executed in the handler's transaction
// once the handler has returned nil, in one round trip with all others that it
// declared and with COMMIT. It is for statements that the handler needs no answer to; a
// handler that only declares costs two round trips instead of three.
//
//	events.OnPaymentReceived(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
//		idem.ExecAtCommit(ctx, `insert into payments (event_id, charge_id, amount) values ($1, $2, $3) on conflict do nothing`,
//			e.ID, e.Payment.ID, e.Payment.Value)
//		return nil
//	})
//
// The statements run in their order, after all that the handler executed through
// tx. If one fails, the handler has failed. The number of affected rows is not
// reported: where that matters, use tx. One that a goroutine declares after the
// handler has returned is not executed.
//
// It panics outside of a handler, and for a statement that ends the transaction. The
// name of a prepared statement, and the text of a [pgx.QueryRewriter], cannot be looked
// at before: those cost two round trips more, to find out whether the transaction has ended.
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

// AfterCommit registers f to be called once the handler's transaction is
// committed, before the provider is answered (if it is not yet), and never if it
// is rolled back: to wake a worker, to drop a cache entry. f gets the handler's
// context.
//
// If the process dies between the commit and f, or the answer to COMMIT is lost, f
// does not run, and the event does not come again. Let a row of the transaction ask
// for work that must happen. If f panics, that is logged; the event is committed all the same.
//
// It panics outside of a handler, and under [Dispatch]. The caller of Dispatch commits, and does
// the work that follows the commit.
func AfterCommit(ctx context.Context, f func(ctx context.Context)) {
	h, ok := handling.From(ctx)
	if !ok || h.After == nil {
		panic("idem: AfterCommit needs the context of a handler; under Dispatch its caller commits, and does what follows")
	}
	h.After.Add(func() { f(ctx) })
}

// NoRetry wraps the error of a handler: its event must not be tried again: it
// is parked immediately, with its payload, for Replay. A nil err stays nil.
func NoRetry(err error) error {
	if err == nil {
		return nil
	}
	return &handling.Final{Err: err}
}

// RetryAt wraps the error of a handler: its event is not to be tried again
// before t, when a bank opens, say. In an [Inbox] that replaces Backoff for this
// time, and does not count towards MaxAttempts; unless t has passed, which counts
// and waits as any other failure does. A [Processor] does not decide when a
// provider delivers again: there it is an error like others. Package health is red once an event
// has been started more than ten times, and came longer than MaxRetrying ago. A nil err stays nil.
func RetryAt(t time.Time, err error) error {
	if err == nil {
		return nil
	}
	return &handling.Later{Err: err, At: t}
}

// Dispatch runs the event's handler in a transaction of the caller's, which
// commits it: for queues and jobs that have their own way of running an event
// once. Nothing is recorded. It returns [ErrUnhandled] when the event has no
// handler and nil when it is ignored. source is a [Source] or [Routes].
//
// Statements declared with [ExecAtCommit] are executed before Dispatch returns.
// [AfterCommit] panics.
func Dispatch(ctx context.Context, tx pgx.Tx, source interface {
	Ignores(eventType string) bool
	Route(Event) (Work, error)
}, e Event,
) error {
	if source.Ignores(e.Type) {
		return nil
	}
	work, err := source.Route(e)
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
