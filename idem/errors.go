package idem

import (
	"errors"
	"fmt"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// ErrTxOwned is returned by Commit and Rollback of a handler's transaction, and by
// statements that would end it: the processor commits when the handler returns
// nil and rolls back when it returns an error.
var ErrTxOwned = pgtx.ErrOwned

// ErrUnhandled is returned by [Dispatch] for an event without a handler.
var ErrUnhandled = errors.New("idem: event type has no handler")

// wrap names the event in an error that callers get.
func wrap(e Event, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("idem: %s %s: %w", e.Type, e.ID, err)
}

// explain adds the remedy to errors that have one usual cause.
func explain(err error) error { return store.Explain(err) }

// errorText returns the text of an error for the table.
func errorText(err error) *string {
	if err == nil {
		return nil
	}
	return new(store.Storable(err.Error(), store.MaxError))
}
