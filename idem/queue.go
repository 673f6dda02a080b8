package idem

import (
	"context"
	"regexp"

	"github.com/jackc/pgx/v5"
)

// ExecAtCommit has a statement executed in the handler's transaction once the handler
// has returned nil, in one round trip with all others that it queued and with
// COMMIT. It is for what the handler needs no answer to; a handler that only
// queues costs two round trips instead of three.
//
//	events.OnPaymentReceived(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
//		idem.ExecAtCommit(ctx, `update orders set paid_at = now() where charge_id = $1`, e.Payment.ID)
//		return nil
//	})
//
// The statements run in their order, after all that the handler executed through
// tx. If one fails, the handler has failed. How many rows it changed is not told:
// where that matters, use tx.
//
// It panics outside of a handler, and for a statement that ends the transaction.
func ExecAtCommit(ctx context.Context, sql string, args ...any) {
	s, ok := ctx.Value(scopeKey{}).(*scope)
	if !ok {
		panic("idem: Queue needs the context of a handler")
	}
	if endsTransaction.MatchString(sql) {
		panic("idem: Queue got " + sql + ": return nil to commit, or an error to roll back")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queue == nil {
		s.queue = &pgx.Batch{}
	}
	s.queue.Queue(sql, args...)
}

// endsTransaction matches statements that end the transaction, and the mark with it, before
// COMMIT does: nobody would notice, because its answer is the same then.
var endsTransaction = regexp.MustCompile(`(?i)^\s*(abort|commit|end|prepare|rollback)\b`)

// queued returns what the handler queued; nil if that is nothing.
func (s *scope) queued() *pgx.Batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue
}

// flush executes what the handler queued.
func (s *scope) flush(ctx context.Context, tx pgx.Tx) error {
	b := s.queued()
	if b == nil {
		return nil
	}
	return tx.SendBatch(ctx, b).Close()
}
