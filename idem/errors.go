package idem

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
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
func explain(err error) error {
	switch code := pgtx.SQLState(err); {
	case code == "42P01":
		return fmt.Errorf("the tables are missing: call idem.Migrate at start, with the same search_path (with goose: -table idem_goose_version): %w", err)
	case pgtx.Held(err):
		return fmt.Errorf("another process is storing or processing the event, and its transaction does not end: %w", err)
	case code == "" && errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer of Postgres in time: it is unavailable, the pool is too small, or another process is processing the event: %w", err)
	}
	return err
}

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
