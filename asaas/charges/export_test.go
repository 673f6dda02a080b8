package charges

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
)

// For the tests of package charges_test.
var (
	ChargeOf = chargeOf
	NumberOf = numberOf
)

// FillRead copies a charge as Reconcile does while it fills the table.
func FillRead(ctx context.Context, tx pgx.Tx, scope string, p *asaas.Payment, at time.Time) (Change, error) {
	return copyRead(ctx, tx, scope, p, at, copying{filling: true})
}

// Look makes one of the looks of Run.
func (d *Daily) Look(ctx context.Context) (pause time.Duration, err error) { return d.look(ctx) }
