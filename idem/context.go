package idem

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

// handling is what a handler's context carries.
type handling struct {
	event Event
	dry   bool   // its transaction will be rolled back
	after *hooks // nil where nobody runs them

	mu       sync.Mutex
	declared *pgx.Batch // statements for before the commit; nil for none
	returned bool       // the handler has: what is declared now comes too late
}

type handlingKey struct{}

func withHandling(ctx context.Context, s *handling) context.Context {
	return context.WithValue(ctx, handlingKey{}, s)
}

func handlingFrom(ctx context.Context) (*handling, bool) {
	s, ok := ctx.Value(handlingKey{}).(*handling)
	return s, ok
}

// EventFrom returns the event that the handler with this context is processing:
// its Scope (which account), its ID and its Payload as received. ok is false
// outside of a handler.
func EventFrom(ctx context.Context) (e Event, ok bool) {
	s, ok := handlingFrom(ctx)
	if !ok {
		return Event{}, false
	}
	return s.event, true
}

// IsDryRun tells a handler that its transaction will be rolled back, so that it
// can leave out what is not in there: calls, messages, files.
func IsDryRun(ctx context.Context) bool {
	s, ok := handlingFrom(ctx)
	return ok && s.dry
}

// ExecAtCommit declares a statement that is executed in the handler's transaction
// once the handler has returned nil, in one round trip with all others that it
// declared and with COMMIT. It is for what the handler needs no answer to; a
// handler that only declares costs two round trips instead of three.
//
//	events.OnPaymentReceived(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
//		idem.ExecAtCommit(ctx, `update orders set paid_at = now() where charge_id = $1 and paid_at is null`, e.Payment.ID)
//		return nil
//	})
//
// The statements run in their order, after all that the handler executed through
// tx. If one fails, the handler has failed. The number of affected rows is not
// reported: where that matters, use tx. One that a goroutine declares after the
// handler has returned is not executed.
//
// It panics outside of a handler, and for a statement that ends the transaction.
func ExecAtCommit(ctx context.Context, sql string, args ...any) {
	s, ok := handlingFrom(ctx)
	if !ok {
		panic("idem: ExecAtCommit needs the context of a handler")
	}
	if pgtx.EndsTransaction(sql) {
		panic("idem: ExecAtCommit got a statement that ends the transaction: return nil to commit, or an error to roll back")
	}
	s.declare(func(b *pgx.Batch) { b.Queue(sql, args...) })
}

// declare queues statements for before the commit, unless it is too late.
func (s *handling) declare(queue func(*pgx.Batch)) (inTime bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.returned {
		return false
	}
	if s.declared == nil {
		s.declared = &pgx.Batch{}
	}
	queue(s.declared)
	return true
}

// statements returns what the handler declared until it returned; nil if that is
// nothing.
func (s *handling) statements() *pgx.Batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.returned = true
	return s.declared
}
