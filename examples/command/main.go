// Command is the command idem with an application's handlers, so that it can replay: DATABASE_URL=postgres://… go run ./examples/command help
package main

import (
	"context"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemcmd"
)

func main() { idemcmd.Main(receiver) }

func receiver(pool *pgxpool.Pool) idem.Receiver { // which is also what the application serves
	events := asaas.NewDispatcher(os.Getenv("ASAAS_WEBHOOK_TOKEN"))
	events.OnPaymentReceived(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
		_, err := tx.Exec(ctx, `update orders set paid_at = now() where charge_id = $1`, e.Payment.ID)
		return err
	})
	return idem.NewInbox(pool, events)
}
