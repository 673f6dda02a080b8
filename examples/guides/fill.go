package guides

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/charges"
)

// fill makes a row of each charge since the first one, and books nothing: other handlers have done that. It may
// run beside the application, which has charges.Handler(nil).
func fill(ctx context.Context, client *asaas.Client, pool *pgxpool.Pool, first time.Time) error {
	run := charges.Settings{Since: first} // no Apply
	for {
		report, err := charges.Reconcile(ctx, client, pool, run)
		for charge, failure := range report.Failed {
			err = errors.Join(err, fmt.Errorf("%s: %w", charge, failure))
		}
		if err != nil || report.Cursor == nil {
			return err // nil: all are read, and the table knows since when it is complete
		}
		run.Resume = report.Cursor
		select {
		case <-time.After(report.Again): // until Asaas takes further calls
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
