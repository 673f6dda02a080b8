// Package guides has the code of docs/import.md, to copy. Its tests deliver events to the
// schemes that guides and articles show for idempotent webhooks, and to this module, with the same faults: the table of
// docs/from-the-guides.md.
package guides

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
)

// once runs a handler unless the application's version before, which has a table of its own
// of processed ids, has done the event. Both versions may run at the same time.
func once(handle idem.Handler[*asaas.PaymentEvent]) idem.Handler[*asaas.PaymentEvent] {
	return func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
		added, err := tx.Exec(ctx, `insert into processed (id) values ($1) on conflict do nothing`, e.ID)
		if err != nil || added.RowsAffected() == 0 {
			return err // the version before has done it
		}
		return handle(ctx, tx, e)
	}
}
