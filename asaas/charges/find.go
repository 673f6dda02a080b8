package charges

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paghooks/paghooks/idem/health/check"
)

// Find returns the charges that carry a name, the newest first, n at most. The name is a customer's id at Asaas, cus_…; the
// application's own external reference; or the id of an installment plan, a subscription or a Checkout. The ID of a charge
// is the entity of its events: idem show -entity prints the events, and idem erase -entity erases them.
func Find(ctx context.Context, db DB, name string, n int) ([]Charge, error) {
	if name == "" {
		return nil, errors.New("asaas/charges: the name to find charges by is empty: give a customer's id, cus_…, or your own reference")
	}
	return list(ctx, db, `where $1 in (external_reference, installment, subscription, checkout_session, customer) order by at desc, id limit $2`, name, n)
}

// named are the charges c. Their names have the database's collation, as the columns of the application have: with
// another one Postgres would not use the indexes of those columns.
var named = func() string {
	list := "scope, id, customer, erased, open, " + columns
	for name := range strings.SplitSeq(nameColumns, ", ") {
		list = strings.Replace(list, name, name+` collate "default" as `+name, 1)
	}
	return "(select " + list + " from asaas_charges) c "
}()

// list reads the charges c that the rest of the query chooses.
func list(ctx context.Context, db DB, rest string, args ...any) ([]Charge, error) {
	rows, _ := db.Query(ctx, `select scope, id, customer, erased, `+columns+` from `+named+rest, args...)
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c Charge, err error) {
		return c, c.scan(row)
	})
	if err != nil {
		return nil, fmt.Errorf("asaas/charges: listing charges: %w", err)
	}
	return all, nil
}

// examine makes a check of what look finds: it fails if bad is above 0, and if Postgres refuses the query, which would
// pass for ever otherwise. refused and slow are the remedies where Postgres refuses the query, and where it takes too long.
func examine(ctx context.Context, limits check.Limits, name, refused, slow string, look func(context.Context) (bad int64, says string, err error)) check.Result {
	if limits.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limits.Timeout)
		defer cancel()
	}
	bad, says, err := look(ctx)
	c := check.Result{Source: "asaas", Name: name, Healthy: bad == 0, Says: says, Cause: err}
	asked, ok := errors.AsType[*pgconn.PgError](err)
	setting, wrong := errors.AsType[settingError](err)
	switch {
	case err == nil:
		c.Count = new(bad)
	case wrong:
		c.Healthy, c.Says = false, strings.TrimPrefix(string(setting), "asaas/charges: ")
	case ok && strings.HasPrefix(asked.Code, "42"):
		c.Healthy, c.Says = false, "Postgres refuses the query, see the cause: "+refused
	default:
		c.Unknown, c.Says = true, fmt.Sprintf("not known: the charges could not be read within %s: %s", limits.Timeout, slow)
	}
	return c
}
