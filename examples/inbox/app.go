package main

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
)

const path = "/webhooks/asaas"

// Everybody can read it. An application takes its own from the environment:
// os.Getenv("ASAAS_WEBHOOK_TOKEN").
const token = "inbox-example-asaas-token"

// app is the application: it keeps a ledger of its customers' payments.
type app struct {
	pool  *pgxpool.Pool
	inbox *idem.Inbox
}

//go:embed app.sql
var tables string

func newApp(ctx context.Context, pool *pgxpool.Pool) (*app, error) {
	if err := idem.Migrate(ctx, pool); err != nil {
		return nil, err
	}
	if _, err := pool.Exec(ctx, tables); err != nil {
		return nil, fmt.Errorf("making the application's tables: %w", err)
	}
	events := asaas.NewDispatcher(token)
	events.OnPaymentCreated(created)
	events.OnPaymentUpdated(advance)
	events.OnPaymentConfirmed(advance)
	events.OnPaymentReceived(received)
	inbox := idem.NewInbox(pool, events)
	inbox.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return &app{pool, inbox}, nil
}

// The handlers are those of an idem.Processor. They count on the order of a
// payment's events: one that came too early would fail.

func created(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
	_, err := tx.Exec(ctx, `insert into payments (id, history) values ($1, array[$2])`, e.Payment.ID, string(e.Event))
	return err
}

func advance(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
	tag, err := tx.Exec(ctx, `update payments set history = history || $2::text where id = $1`, e.Payment.ID, string(e.Event))
	if err == nil && tag.RowsAffected() == 0 {
		return fmt.Errorf("%s of %s, which was not created", e.Event, e.Payment.ID)
	}
	return err
}

func received(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
	if err := advance(ctx, tx, e); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `insert into ledger (payment, amount) values ($1, $2)`, e.Payment.ID, e.Payment.Value)
	return err
}
