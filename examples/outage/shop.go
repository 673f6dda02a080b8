package main

import (
	"context"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
)

const tables = `create table paid (charge text primary key, value numeric(12, 2) not null)`

func migrate(ctx context.Context, pool *pgxpool.Pool) error {
	if err := idem.Migrate(ctx, pool); err != nil {
		return err
	}
	_, err := pool.Exec(ctx, tables)
	return err
}

// newInbox returns the application's receiver.
func newInbox(pool *pgxpool.Pool, token string) *idem.Inbox {
	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(received)
	inbox := idem.NewInbox(pool, events)
	inbox.Logger = slog.New(slog.DiscardHandler) // the timeline says it
	return inbox
}

// received keeps a row for each charge. A chargeback that is won brings PAYMENT_RECEIVED again, as another event.
func received(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
	_, err := tx.Exec(ctx, `insert into paid (charge, value) values ($1, $2) on conflict do nothing`, e.Payment.ID, e.Payment.Value)
	return err
}
