package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem"
)

// copiedEffects is a query of the events whose charge was copied, and of the cents of all charges: each charge has
// those of its newest event.
const copiedEffects = `
select (select count(*) from idem_events where state = 'done') + (select count(*) from processed), coalesce(sum(cents), 0)::bigint from orders`

// copies makes the tables of the charges, and has the ledger compare the newest event of each.
func (one *contender) copies(ctx context.Context) error {
	one.newest, one.effects = true, copiedEffects
	return errors.Join(idem.Migrate(ctx, one.pool), charges.Migrate(ctx, one.pool), charges.Filled(ctx, one.pool, "", time.Time{}))
}

// changed books the difference that an event made to its charge.
func changed(ctx context.Context, tx pgx.Tx, c charges.Change) error {
	return bookDifference(ctx, tx, c.After.ID, c.Paid().Cents())
}

func bookDifference(ctx context.Context, tx pgx.Tx, charge string, cents int64) error {
	tag, err := tx.Exec(ctx, `update orders set cents = cents + $2 where charge = $1`, charge, cents)
	if err == nil && tag.RowsAffected() != 1 {
		err = fmt.Errorf("there is no order of %s", charge)
	}
	return err
}

// upsert has the columns of charges.Copy. It locks the old row and returns what was paid before, as one statement that an
// engineer writes by hand: where two events of a new charge come at once, that would be wrong. The insert reads from the
// locked row; else Postgres would look for it after the update, and find nothing.
var upsert = func() string {
	columns := []string{
		"status", "value", "original_value", "net_value", "refunded", "refunding", "paid", "settled", "received", "deleted", "anticipated", "billing_type",
		"created", "due", "credited", "received_on", "customer", "external_reference", "installment", "subscription", "checkout_session",
		"payment_link", "pix_qr_code_id", "installment_number", "at", "number", "event",
	}
	var parameters, excluded []string
	for n, column := range columns {
		parameters, excluded = append(parameters, "$"+strconv.Itoa(n+2)), append(excluded, "excluded."+column)
	}
	return `
with was as (select paid from asaas_charges where id = $1 and apart = '' for update)
insert into asaas_charges as c (scope, apart, id, ` + strings.Join(columns, ", ") + `)
select '', '', $1, ` + strings.Join(parameters, ", ") + ` from (select) as one left join was on true
on conflict (id, apart) do update set (` + strings.Join(columns, ", ") + `) = row (` + strings.Join(excluded, ", ") + `)
where (c.at, c.number, c.event) < (excluded.at, excluded.number, excluded.event)
returning coalesce((select paid from was), 0)`
}()

// copyByHand is a receiver that decodes the whole event and copies its charge: BEGIN; INSERT … ON CONFLICT DO NOTHING;
// the upsert; UPDATE; COMMIT.
func copyByHand(pool *pgxpool.Pool) http.Handler {
	return receive(func(ctx context.Context, _ *handEvent, body []byte) error {
		var e asaas.PaymentEvent
		if err := json.Unmarshal(body, &e); err != nil {
			return err
		}
		at, err := e.DateCreated.Time()
		if err != nil {
			return err
		}
		_, digits, _ := strings.Cut(e.ID, "&")
		number, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return err
		}
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, `insert into processed (id) values ($1) on conflict do nothing`, e.ID)
			if err != nil || tag.RowsAffected() == 0 {
				return err
			}
			p, zero := &e.Payment, asaas.Cents(0)
			var before asaas.Money
			err = tx.QueryRow(ctx, upsert, p.ID, string(p.Status), p.Value, p.OriginalValue.Or(p.Value), p.NetValue, zero, zero, p.Value, p.Value, p.Value,
				p.Deleted, p.Anticipated, string(p.BillingType), p.DateCreated, p.DueDate, p.CreditDate, p.PaymentDate, p.Customer,
				p.ExternalReference, p.Installment, p.Subscription, p.CheckoutSession, p.PaymentLink, p.PixQrCodeID,
				p.InstallmentNumber.Or(0), at, number, e.ID).Scan(&before)
			if errors.Is(err, pgx.ErrNoRows) { // it is late
				return nil
			}
			if err != nil {
				return err
			}
			return bookDifference(ctx, tx, p.ID, p.Value.Sub(before).Cents())
		})
	})
}
