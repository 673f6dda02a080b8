package main

import (
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
    paid     numeric(12, 2) not null default 0 -- ship it once this reaches its total: interest comes on top
);
create table paid_links ( -- of Zelta Pay
    id       text primary key,
    order_id text   not null,
    cents    bigint not null
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
	payments.OnPayment(charges.Handler(changed))
	payments.Ignore(asaas.EventPaymentBankSlipViewed, asaas.EventPaymentCheckoutViewed)
	links := zeltapay.NewDispatcher(zeltapaySecret)
	links.OnPaymentSuccess(succeeded)
	return &shop{asaas: idem.NewInbox(pool, payments), zeltapay: idem.NewInbox(pool, links)}, nil
}

// serve receives webhooks and runs the handlers, until ctx ends.
func (s *shop) serve(ctx context.Context, server *http.Server) error {
	mux := http.NewServeMux()
	mux.Handle("POST /webhooks/asaas", s.asaas)
	mux.Handle("POST /webhooks/zeltapay", s.zeltapay)
	mux.Handle("GET /health/webhooks", health.New(s.asaas, s.zeltapay))
	server.Handler = mux
	return idem.Serve(ctx, server, s.asaas, s.zeltapay)
}

// A handler writes through tx: its rows and the record that the event is done are committed together. It
// need not ask whether the event came before. If it returns an error, the event is tried again. If it
// returns nil, the event is done for good.

// changed adds what is paid of a charge, or what was given back, to its order. It is right in any order of a
// charge's events.
func changed(ctx context.Context, tx pgx.Tx, c charges.Change) error {
	order := c.After.ExternalReference.Or("")
	if order == "" || c.Paid().IsZero() {
		return nil // money that nobody asked for stays in asaas_charges
	}
	updated, err := tx.Exec(ctx, `update orders set paid = paid + $1 where id = $2`, c.Paid(), order)
	return oneOrder(updated.RowsAffected(), err)
}

// succeeded books a payment link once. A payment that comes in both of Zelta Pay's layouts is two events.
func succeeded(ctx context.Context, tx pgx.Tx, e *zeltapay.PaymentEvent) error {
	cents, _ := e.Amount()
	order, named := e.LinkMetadata().String("orderId")
	if cents <= 0 || !named {
		return idem.NoRetry(fmt.Errorf("link %s names no order, or no amount", e.LinkID())) // parked, and health is red
	}
	added, err := tx.Exec(ctx, `insert into paid_links (id, order_id, cents) values ($1, $2, $3) on conflict do nothing`, e.LinkID(), order, cents)
	if err != nil || added.RowsAffected() == 0 {
		return err
	}
	updated, err := tx.Exec(ctx, `update orders set paid = paid + $1::bigint / 100.0 where id = $2`, cents, order)
	return oneOrder(updated.RowsAffected(), err)
}

// oneOrder returns an error if no order was updated: the event is tried again until the order is there.
func oneOrder(updated int64, err error) error {
	if err == nil && updated == 0 {
		err = errors.New("its order is not stored")
	}
	return err
}
