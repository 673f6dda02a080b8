package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/zeltapay"
)

// An application reads its own: os.Getenv("ASAAS_WEBHOOK_TOKEN"), os.Getenv("ZELTAPAY_WEBHOOK_SECRET").
const (
	asaasToken     = "quickstart-asaas-token"
	zeltapaySecret = "quickstart-zeltapay-secret"
)

// The shop's tables, beside those of idem and asaas/charges.
const tables = `
create table orders (
    id       text primary key, -- which the shop sends to Asaas as externalReference, to Zelta Pay as metadata.orderId
    total    numeric(12, 2) not null,
    currency text           not null,
    paid     numeric(12, 2) not null default 0,
    settled  numeric(12, 2) not null default 0 -- of paid, without interest: ship the order once this reaches its total
);
create table zeltapay_payments ( -- said by events in either of its layouts: see examples/zeltapay
    order_id text not null,
    link     text not null,
    nested   boolean not null,
    id       text not null, -- of the transaction
    cents    bigint not null check (cents > 0),
    primary key (link, nested, id)
)`

// shop is the application.
type shop struct{ asaas, zeltapay *idem.Inbox }

// newShop makes the tables, and registers the handlers.
func newShop(ctx context.Context, pool *pgxpool.Pool) (*shop, error) {
	err := idem.Migrate(ctx, pool)
	if err == nil {
		err = charges.Migrate(ctx, pool)
	}
	if err == nil {
		_, err = pool.Exec(ctx, tables)
	}
	if err != nil {
		return nil, err
	}
	payments := asaas.NewDispatcher(asaasToken)
	payments.OnPayment(charges.Orders(paid))
	payments.Ignore(asaas.EventPaymentBankSlipViewed, asaas.EventPaymentCheckoutViewed)
	links := zeltapay.NewDispatcher(zeltapaySecret)
	links.OnPaymentSuccess(succeeded)
	return &shop{asaas: idem.NewInbox(pool, payments), zeltapay: idem.NewInbox(pool, links)}, nil
}

// serve receives webhooks and runs the handlers, until ctx ends. mux may have other pages.
func (s *shop) serve(ctx context.Context, server *http.Server, mux *http.ServeMux) error {
	mux.Handle("POST /webhooks/asaas", s.asaas)
	mux.Handle("POST /webhooks/zeltapay", s.zeltapay)
	mux.Handle("GET /health/webhooks", health.New(s.asaas, s.zeltapay))
	server.Handler = mux
	return idem.Serve(ctx, server, s.asaas, s.zeltapay)
}

// A handler writes through tx: its rows and the record that the event is done are committed together. It
// need not ask whether the event came before. If it returns an error, the event is tried again. If it
// returns nil, the event is done for good.

// paid sets an order to the sum of its charges, whatever happened to them. Money that names no order stays in
// asaas_charges.
func paid(ctx context.Context, tx pgx.Tx, o charges.Order) (orders int64, err error) {
	updated, err := tx.Exec(ctx, `update orders set paid = $1, settled = $2 where id = $3`, o.Paid, o.Settled, o.Reference)
	return updated.RowsAffected(), err
}

// succeeded stores a payment, and sets its order to the sum of its payments. If one payment comes in both of
// Zelta Pay's layouts, that is two events with two transactions: of each link, one layout counts.
func succeeded(ctx context.Context, tx pgx.Tx, e *zeltapay.PaymentEvent) error {
	event, _ := idem.EventFrom(ctx)
	cents, _ := e.Amount()
	order, named := e.LinkMetadata().String("orderId")
	if e.LinkID() == "" || !named {
		return idem.NoRetry(fmt.Errorf("link %q names no order", e.LinkID())) // parked, and health is red
	}
	_, nested := e.PaymentLink.Get()
	locked, err := tx.Exec(ctx, `select from orders where id = $1 and currency = $2 for update`, order, cmp.Or(e.Currency(), "USD"))
	if err := oneOrder(locked.RowsAffected(), err); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `insert into zeltapay_payments values ($1, $2, $3, $4, $5) on conflict do nothing`,
		order, e.LinkID(), nested, cmp.Or(e.TransactionID(), event.ID), cents); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		update orders set (paid, settled) = (select sum(cents) / 100, sum(cents) / 100 from (
			select coalesce(sum(cents) filter (where not nested), sum(cents)) as cents
			from zeltapay_payments where order_id = $1 group by link) as links)
		where id = $1`, order)
	return err
}

// oneOrder returns an error if no order was updated: the event is tried again until the order is there.
func oneOrder(updated int64, err error) error {
	if err == nil && updated == 0 {
		err = errors.New("its order is not stored")
	}
	return err
}
