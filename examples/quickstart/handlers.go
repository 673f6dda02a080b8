package main

import (
	"cmp"
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem/optional"
	"github.com/paghooks/paghooks/zeltapay"
)

// A handler writes through tx, and nothing else: its rows and the record that
// the event is done are committed together. It need not ask whether the event
// came before, it returns what fails, and the provider delivers again.

func charged(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
	// An ExternalReference that is null or unknown matches no order, which is
	// right: money that nobody asked for is a charge, too.
	_, err := tx.Exec(ctx, `update orders set charge = $1 where id = $2`, e.Payment.ID, e.Payment.ExternalReference)
	return err
}

// confirmed: the order is paid for, though its money comes with PAYMENT_RECEIVED.
func confirmed(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
	return pay(ctx, tx, e.Payment.ExternalReference)
}

func received(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
	if err := pay(ctx, tx, e.Payment.ExternalReference); err != nil {
		return err
	}
	return book(ctx, tx, entry{
		order:    e.Payment.ExternalReference,
		payment:  e.Payment.ID,
		amount:   e.Payment.Value,
		currency: "BRL",
		day:      e.Payment.PaymentDate,
	})
}

func overdue(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
	_, err := tx.Exec(ctx, `update orders set overdue_at = now() where id = $1`, e.Payment.ExternalReference)
	return err
}

func refunded(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
	_, err := tx.Exec(ctx, `update orders set refunded_at = now() where id = $1`, e.Payment.ExternalReference)
	if err != nil {
		return err
	}
	return book(ctx, tx, entry{
		order:    e.Payment.ExternalReference,
		payment:  e.Payment.ID,
		amount:   e.Payment.Value.Neg(),
		currency: "BRL",
		day:      e.DateCreated,
	})
}

func succeeded(ctx context.Context, tx pgx.Tx, e *zeltapay.PaymentEvent) error {
	if e.IsTest() {
		return nil // no money moved
	}
	cents, ok := e.Amount()
	if !ok {
		return fmt.Errorf("payment %s has no amount: see its payload in idem_payloads", e.TransactionID())
	}
	order := orderOf(e)
	if err := pay(ctx, tx, order); err != nil {
		return err
	}
	return book(ctx, tx, entry{
		order:    order,
		payment:  e.TransactionID(),
		amount:   asaas.Cents(int64(cents)),
		currency: cmp.Or(e.Currency(), "USD"), // the nested layout does not say it
		day:      e.PaidAt(),
	})
}

// orderOf is what the shop attached to the payment link.
func orderOf(e *zeltapay.PaymentEvent) optional.Value[string] {
	if id, ok := e.LinkMetadata().String("orderId"); ok {
		return optional.Of(id)
	}
	return optional.Null[string]()
}

func pay(ctx context.Context, tx pgx.Tx, order optional.Value[string]) error {
	// A charge may be confirmed, then received, and both again after a dispute.
	_, err := tx.Exec(ctx, `update orders set paid_at = coalesce(paid_at, now()) where id = $1`, order)
	return err
}

// entry is money that came in or, negative, went back.
type entry struct {
	order    optional.Value[string]
	payment  string // its id at the provider
	amount   asaas.Money
	currency string
	day      driver.Valuer // a provider's date or time, maybe null
}

// book writes an entry under the ledger's next number. A delivery that fails
// takes no number, and one that comes twice takes one.
//
// Once is per event: a chargeback that is won brings PAYMENT_RECEIVED again, as
// another event. A shop that has chargebacks books those, too, or asks its entries
// first whether the payment is booked.
func book(ctx context.Context, tx pgx.Tx, e entry) error {
	const insert = `
with ledger as (update ledgers set entries = entries + 1 where currency = $1 returning entries)
insert into entries (currency, number, order_id, payment, amount, day)
select $1, entries, $2, $3, $4, $5 from ledger`
	tag, err := tx.Exec(ctx, insert, e.currency, e.order, e.payment, e.amount, e.day)
	if err == nil && tag.RowsAffected() == 0 {
		return fmt.Errorf("there is no ledger for %s: open one, the event will come again", e.currency)
	}
	return err
}
