package main

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem"
)

// tables are the orders, the splits of charges, and the platform's part of each charge.
//
//go:embed platform.sql
var tables string

var orders = charges.Orders(paid)

// payment sets the order of a charge, and copies its splits.
func payment(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
	if err := orders(ctx, tx, e); err != nil {
		return err
	}
	return copySplits(ctx, tx, e)
}

// paid sets the order of an account to the sum of its charges.
func paid(ctx context.Context, tx pgx.Tx, o charges.Order) (int64, error) {
	if o.Kind != charges.Reference {
		return 0, nil // of a subscription or a link, say: unmatched lists it once it is paid
	}
	set, err := tx.Exec(ctx, `
		update orders set paid = $1, settled = $2 where scope = $3 and id = $4`,
		o.Paid, o.Settled, o.Scope, o.Name)
	return set.RowsAffected(), err
}

// split is a split as the table has it.
type split struct {
	ID        string      `json:"id"`
	Wallet    string      `json:"wallet"`
	Total     asaas.Money `json:"total"`
	GivenBack asaas.Money `json:"given_back"` // by refunds
	Status    string      `json:"status"`
	Reason    string      `json:"reason"` // of its cancellation
}

// copySplits copies the splits of the newest event, as package charges copies the charge: a
// late event changes nothing, and one that is missed is made good by the next.
func copySplits(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
	splits := []split{}
	for _, s := range e.Payment.AllSplits() {
		one := split{
			ID: s.ID.Or(""), Wallet: s.WalletID.Or(""), Total: s.TotalValue.Or(asaas.Money{}),
			Status: string(s.Status.Or("")), Reason: string(s.CancellationReason.Or("")),
		}
		for _, r := range e.Payment.Refunds.Or(nil) {
			for _, back := range r.RefundedSplits.Or(nil) {
				if back.ID.Or("") == one.ID && back.Done.Or(false) {
					one.GivenBack = one.GivenBack.Add(back.Value.Or(asaas.Money{}))
				}
			}
		}
		splits = append(splits, one)
	}
	at, err := e.DateCreated.Time()
	if err != nil {
		return idem.NoRetry(fmt.Errorf("the event has no time: %w", err))
	}
	_, behind, _ := strings.Cut(e.ID, "&")
	number, _ := strconv.ParseInt(behind, 10, 64) // 0 for none
	event, _ := idem.EventFrom(ctx)
	_, err = tx.Exec(ctx, `
		insert into charge_splits as c (scope, charge, splits, at, number)
		values ($1, $2, $3, $4, $5)
		on conflict (scope, charge) do update
		set splits = excluded.splits, at = excluded.at, number = excluded.number
		where (c.at, c.number) < (excluded.at, excluded.number)`,
		event.Scope, e.Payment.ID, splits, at, number)
	return err
}
