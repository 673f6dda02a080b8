package idem

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/paghooks/paghooks/idem/internal/handling"
)

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
