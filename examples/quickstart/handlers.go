package main

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem/optional"
	"github.com/paghooks/paghooks/zeltapay"
)

// A handler writes through tx, and nothing else: its rows and the record that
// the event is done are committed together. It need not ask whether the event
// came before. If it returns an error, the event is tried again. If it returns
// nil, the event is done for good.

func charged(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
	return set(ctx, tx, e.Payment.ExternalReference, `update orders set charge = $2 where id = $1`, e.Payment.ID)
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
		kind:     "received",
		amount:   e.Payment.Value,
		currency: "BRL",
		day:      e.Payment.PaymentDate,
	})
}

func overdue(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
	return set(ctx, tx, e.Payment.ExternalReference, `update orders set overdue_at = now() where id = $1`)
}

func refunded(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
	if err := set(ctx, tx, e.Payment.ExternalReference, `update orders set refunded_at = now() where id = $1`); err != nil {
		return err
	}
	return book(ctx, tx, entry{
		order:    e.Payment.ExternalReference,
		payment:  e.Payment.ID,
		kind:     "refunded",
		amount:   e.Payment.Value.Neg(),
		currency: "BRL",
		day:      e.DateCreated,
	})
}

func succeeded(ctx context.Context, tx pgx.Tx, e *zeltapay.PaymentEvent) error {
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
		payment:  e.LinkID(), // the same in both layouts, which name the transaction differently
		kind:     "received",
		amount:   asaas.Cents(int64(cents)),
		currency: cmp.Or(e.Currency(), "USD"), // the nested layout does not say it
		day:      e.PaidAt(),
	})
}

// orderOf returns the order's id that the shop attached to the payment link.
func orderOf(e *zeltapay.PaymentEvent) optional.Value[string] {
	if id, ok := e.LinkMetadata().String("orderId"); ok {
		return optional.Of(id)
	}
	return optional.Null[string]()
}

func pay(ctx context.Context, tx pgx.Tx, order optional.Value[string]) error {
	// A charge may be confirmed, then received, and both again after a dispute.
	return set(ctx, tx, order, `update orders set paid_at = coalesce(paid_at, now()) where id = $1`)
}

// set updates the order by the id that the shop sent with its charge or link. The order
// is stored before those are made, so that it is there before any event.
func set(ctx context.Context, tx pgx.Tx, order optional.Value[string], update string, args ...any) error {
	id := order.Or("")
	if id == "" {
		return nil // made by hand at the provider, or money without an order
	}
	updated, err := tx.Exec(ctx, update, append([]any{id}, args...)...)
	if err == nil && updated.RowsAffected() == 0 {
		err = errors.New("its order is not stored") // nil would mean that the event is done
	}
	return err
}

// entry is money that came in or, negative, went back.
type entry struct {
	order    optional.Value[string]
	payment  string // the charge at Asaas, the link at Zelta Pay
	kind     string // received or refunded
	amount   asaas.Money
	currency string
	day      driver.Valuer // a provider's date or time, maybe null
}

// book writes an entry under the ledger's next number. An attempt that fails takes
// no number.
//
// Exactly once is per event. That a payment is booked once is the table's own key:
// a chargeback that is won brings PAYMENT_RECEIVED again, and a Zelta Pay payment
// may come in both layouts, each time as another event.
func book(ctx context.Context, tx pgx.Tx, e entry) error {
	var entries int64
	err := tx.QueryRow(ctx, `select entries from ledgers where currency = $1 for update`, e.currency).Scan(&entries)
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("there is no ledger for %s: open one, the event is tried again", e.currency)
	}
	if err != nil {
		return err
	}
	const insert = `
with booked as (
	insert into entries (currency, number, order_id, payment, kind, amount, day) values ($1, $2, $3, $4, $5, $6, $7)
	on conflict (payment, kind) do nothing returning number)
update ledgers set entries = number from booked where currency = $1`
	_, err = tx.Exec(ctx, insert, e.currency, entries+1, e.order, e.payment, e.kind, e.amount, e.day)
	return err
}
