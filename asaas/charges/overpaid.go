package charges

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/health/check"
)

// Overpaid finds orders that are paid twice, or with more than their total. It is a part for health.New, beside
// [Unmatched].
//
//	overpaid := &charges.Overpaid{DB: pool, Orders: `select id from orders where settled > total`}
//	http.Handle("GET /health/webhooks", health.New(inbox, unmatched, overpaid))
type Overpaid struct {
	DB DB

	// Orders is the SQL query of the orders, whose first column names them. Never make it of input. Compare the price
	// that is settled, because interest comes on top of what is paid; of an order with a column for each of two names,
	// compare their sum. Leave out an order that a person has looked at.
	Orders string

	sometimes sometimes
}

// Examine implements a part of package health: the check overpaid fails while there is one. It asks the database
// every five minutes, and passes or fails as that of [Unmatched] where the database does not answer.
func (o *Overpaid) Examine(ctx context.Context, limits check.Limits) []check.Result {
	return o.sometimes.look(func() check.Result {
		return examine(ctx, limits, "overpaid", "correct Orders, or grant its tables", "give the columns of Orders an index", o.look)
	})
}

func (o *Overpaid) look(ctx context.Context) (bad int64, says string, err error) {
	if o.Orders == "" {
		return 0, "", settingError("asaas/charges: Overpaid has no Orders: give it the query of the orders that got more than their total")
	}
	type found struct {
		Orders int64
		First  string
	}
	var f found
	err = again(ctx, o.DB, func() (err error) {
		rows, _ := o.DB.Query(ctx, `select count(*), coalesce(min(id::text), '') from (`+o.Orders+`) as o (id)`)
		f, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[found])
		return err
	})
	if err != nil || f.Orders == 0 {
		return 0, "no order got more than its total", err
	}
	return f.Orders, fmt.Sprintf("%d orders got more than their total, one of them is %s: give back what is too much, or record that the order is right", f.Orders, f.First), nil
}
