package main

import (
	"context"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem"
)

// The ledger needs no key: it is idem that books each payment once.
const tables = `create table ledger (charge text not null, paid numeric(12, 2) not null)`

func migrate(ctx context.Context, pool *pgxpool.Pool) error {
	err := idem.Migrate(ctx, pool)
	if err == nil {
		err = charges.Migrate(ctx, pool)
	}
	if err == nil {
		_, err = pool.Exec(ctx, tables)
	}
	return err
}

// newInbox returns the application's receiver.
func newInbox(pool *pgxpool.Pool, token string) *idem.Inbox {
	events := asaas.NewDispatcher(token)
	events.OnPayment(charges.Handler(changed))
	inbox := idem.NewInbox(pool, events)
	inbox.Logger = slog.New(slog.DiscardHandler) // the timeline says it
	return inbox
}

// changed books what is paid of a charge, or given back.
func changed(ctx context.Context, tx pgx.Tx, c charges.Change) error {
	if c.Paid().IsZero() {
		return nil
	}
	_, err := tx.Exec(ctx, `insert into ledger (charge, paid) values ($1, $2)`, c.After.ID, c.Paid())
	return err
}
