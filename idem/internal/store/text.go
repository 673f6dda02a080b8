package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

// MaxError is the length in bytes of an error that is stored.
const MaxError = 1000

// Storable returns text with U+FFFD in place of bytes that Postgres refuses, cut to at most most bytes.
func Storable(text string, most int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}

// Explain adds what to do to errors that have one usual cause.
func Explain(err error) error {
	switch code := pgtx.SQLState(err); {
	case code == "42P01":
		return fmt.Errorf("the tables are missing: call idem.Migrate at start, with the same search_path (with goose: -table idem_goose_version): %w", err)
	case pgtx.Held(err):
		return fmt.Errorf("another process is storing or processing the event, and its transaction does not end: %w", err)
	case errors.Is(err, pgtx.ErrUnknown):
		return fmt.Errorf("look at the events, and do it again if they are as they were: %w", err)
	case code == "" && errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer of Postgres in time: it is unavailable, the pool is too small, or another process is processing the event: %w", err)
	}
	return err
}
