// Command is the command idem with an application's handlers, so that it can replay: DATABASE_URL=postgres://… go run ./examples/command help
package main

import (
	"context"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/idemcmd"
)

func main() { idemcmd.Main(receiver) }

func receiver(pool *pgxpool.Pool) idem.Receiver { // which the application also serves
	events := asaas.NewDispatcher(os.Getenv("ASAAS_WEBHOOK_TOKEN"))
	events.OnPaymentReceived(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
		_, err := tx.Exec(ctx, `insert into receipts (charge_id) values ($1) on conflict do nothing`, e.Payment.ID) // one for each charge, however often it is received
		return err
	})
	return idem.NewInbox(pool, events)
}
