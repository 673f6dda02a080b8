package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

// Explain adds what to do to errors that have one usual cause.
func Explain(err error) error {
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
