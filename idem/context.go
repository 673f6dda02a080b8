package idem

import (
	"bytes"
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/handling"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

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
