package charges

import (
	"context"
	"strings"
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

// Plan returns how Postgres counts unmatched charges.
func Plan(ctx context.Context, u *Unmatched) (string, error) {
	rows, _ := u.DB.Query(ctx, `explain select count(*) from `+named+u.unknown(), u.Scope, u.ofAll())
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return strings.Join(lines, "\n"), err
}

// Disagree compares the clock of this machine with a time of the database's.
func Disagree(at time.Time) error { return disagree("the database", at, time.Now()) }

// SumOf returns the statement that adds up the charges of a name.
func SumOf(k Kind) string { return sums[k] }
