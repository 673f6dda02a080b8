package idem

import (
	"errors"
	"fmt"
	"strings"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// ErrTxOwned is what Commit and Rollback of a handler's transaction return, and
// statements that would end it: the processor commits when the handler returns
// nil and rolls back when it returns an error.
var ErrTxOwned = pgtx.ErrOwned

// ErrUnhandled is what [Dispatch] returns for an event without handler.
var ErrUnhandled = errors.New("idem: event type has no handler")

// wrap names the event in an error that callers get.
func wrap(e Event, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("idem: %s %s: %w", e.Type, e.ID, err)
}

// explain adds what to do to errors that have one usual cause.
func explain(err error) error { return store.Explain(err) }

// errorText is what of an error is worth a place in the table.
func errorText(err error) *string {
	if err == nil {
		return nil
	}
	return new(storable(err.Error(), maxErrorText))
}

const maxErrorText = 1000

// storable is what Postgres takes of a text, at most so many bytes.
func storable(text string, most int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}
